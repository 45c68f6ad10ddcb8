"""Everything that one caller may do, each at its limit and without a pause.

An attack is a coroutine that goes on for ever; so many of each run at once. Who is refused waits a
moment and comes again: what is bounded is used up to the bound.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import cache
from typing import NamedTuple, NoReturn

from tests.worst.line import Answer, Line, chat, request

MIB = 1 << 20
OK = 200
ACCEPTED = 202
REFUSED_SECONDS = 0.05  # before the next attempt
DEAF_SECONDS = 40.0  # longer than the gateway puts up with it
PIPELINED = 32
CANCELLED = 0.3  # of the tasks
CHAT = "/v1/chat/completions"


@cache
def body_of(word: str, size: int, model: str) -> bytes:
    """A body about as large as that, of one word again and again."""
    return chat(word * (size // len(word)), model)


@cache
def body_of_members() -> bytes:
    return chat("x", "brief", metadata=[{"a": n} for n in range(49_000)])


class Tenant:
    """The caller: its token, where its webhooks go, and what came of its requests."""

    def __init__(self, port: int, token: str, callbacks: list[str]) -> None:
        self.port = port
        self.token = token
        self.callbacks = callbacks
        self.seen: Counter[str] = Counter()
        self.chance = random.Random(1)  # noqa: S311  the same load every time
        self.runs: list[str] = []  # its own, with a long journal
        self._serial = 0

    def name(self, kind: str) -> str:
        """A new name for a run or a turn."""
        self._serial += 1
        return f"{kind}_{self._serial}"

    def post(self, path: str, body: bytes = b"", **fields: str) -> bytes:
        named = {f"x-tangle-{name}": value for name, value in fields.items()}
        return request("POST", path, self.token, body, named)

    def get(self, path: str) -> bytes:
        return request("GET", path, self.token)

    async def note(self, attack: str, answer: Answer) -> bool:
        """Count it; whether it was done. A refusal takes a moment."""
        self.seen[f"{attack}: {answer.code}"] += 1
        if answer.status in {OK, ACCEPTED}:
            return True
        await asyncio.sleep(REFUSED_SECONDS)
        return False


async def flood(tenant: Tenant, line: Line) -> None:
    """Small calls, one after the other."""
    data = tenant.post(CHAT, chat("hello", "echo"))
    while await tenant.note("flood", await line.ask(data)):
        pass


async def bodies(tenant: Tenant, line: Line) -> None:
    """The largest body there may be, to an agent that says little."""
    data = tenant.post(CHAT, body_of("a b ", 10 * MIB - 1000, "brief"))
    while await tenant.note("bodies", await line.ask(data)):
        pass


async def half_bodies(tenant: Tenant, line: Line) -> None:
    """A large body but for its last byte: it is held as long as bodies may take."""
    size = tenant.chance.choice((10 * MIB - 1000, MIB, 128 * 1024))
    data = tenant.post(CHAT, body_of("a b ", size, "brief"))
    await tenant.note("half_bodies", await line.ask(data[:-1]))


async def members(tenant: Tenant, line: Line) -> None:
    """A body of as many small members as there may be."""
    data = tenant.post(CHAT, body_of_members())
    while await tenant.note("members", await line.ask(data)):
        pass


async def answers(tenant: Tenant, line: Line) -> None:
    """A long answer of small words, recorded and read."""
    data = tenant.post(CHAT, body_of("a b ", 3 * MIB, "echo"))
    while await tenant.note("answers", await line.ask(data)):
        pass


async def pieces(tenant: Tenant, line: Line) -> None:
    """A long answer that comes word by word."""
    data = tenant.post(CHAT, chat("20000", "words", stream=True))
    while await tenant.note("pieces", await line.ask(data)):
        pass


async def streams(tenant: Tenant, line: Line) -> None:
    """A stream without end that nobody reads."""
    await line.send(tenant.post(CHAT, chat("", "endless", stream=True)))
    tenant.seen["streams: sent"] += 1
    await asyncio.sleep(DEAF_SECONDS)


async def tasks(tenant: Tenant, line: Line) -> None:
    """Tasks of some size, with callbacks to receivers that answer 410 and 500."""
    while True:
        callback = tenant.chance.choice(tenant.callbacks) + tenant.name("/task")
        agent = tenant.chance.choice(("sleeper", "brief", "echo"))
        data = tenant.post("/tasks", chat("a b " * 4096, agent, callback=callback))
        answer = await line.ask(data)
        if not await tenant.note("tasks", answer):
            return
        if tenant.chance.random() < CANCELLED:
            path = f"/tasks/{answer.json['taskId']}/cancel"
            await tenant.note("tasks cancelled", await line.ask(tenant.post(path)))


async def runs(tenant: Tenant, line: Line) -> None:
    """Lists of runs and of tasks, and single runs."""
    paths = ["/runs?limit=200", "/runs?limit=200&agent=echo&state=failed", "/tasks?limit=200"]
    paths += [f"/runs/{run}" for run in tenant.runs[:4]]
    data = [tenant.get(path) for path in paths]
    while await tenant.note("runs", await line.ask(tenant.chance.choice(data))):
        pass


async def deaf_runs(tenant: Tenant, line: Line) -> None:
    """As many lists of runs as one connection may ask for, never read."""
    await line.send(tenant.get("/runs?limit=200") * PIPELINED)
    tenant.seen["deaf_runs: sent"] += PIPELINED
    await asyncio.sleep(DEAF_SECONDS)


async def deaf_events(tenant: Tenant, line: Line) -> None:
    """The journal of a run with a long answer, never read."""
    await line.send(tenant.get(f"/runs/{tenant.chance.choice(tenant.runs)}/events"))
    tenant.seen["deaf_events: sent"] += 1
    await asyncio.sleep(DEAF_SECONDS)


async def events(tenant: Tenant, line: Line) -> None:
    """The same, read as fast as it comes, again and again."""
    data = [tenant.get(f"/runs/{run}/events") for run in tenant.runs]
    while await tenant.note("events", await line.ask(tenant.chance.choice(data))):
        pass


async def cancels(tenant: Tenant, line: Line) -> None:
    """A call that would go on for long, and its end as soon as it has begun."""
    while True:
        run = tenant.name("cancelled")
        async with Line(tenant.port) as beside:
            await beside.send(tenant.post(CHAT, chat("", "endless", stream=True), runid=run))
            await asyncio.sleep(REFUSED_SECONDS)
            answer = await line.ask(tenant.post(f"/runs/{run}/cancel"))
        if not await tenant.note("cancels", answer):
            return


async def replays(tenant: Tenant, line: Line) -> None:
    """A call with a long answer, repeated under its own turn."""
    run = tenant.chance.choice(tenant.runs)
    data = tenant.post(CHAT, body_of("a b ", MIB, "echo"), runid=run, turnid=run)
    while await tenant.note("replays", await line.ask(data)):
        pass


class Attack(NamedTuple):
    """What is done, and how many do it at once."""

    act: Callable[[Tenant, Line], Awaitable[None]]
    at_once: int
    deaf: bool = False


ATTACKS = {
    "flood": Attack(flood, 128),
    "bodies": Attack(bodies, 16),
    "half_bodies": Attack(half_bodies, 128),
    "members": Attack(members, 8),
    "answers": Attack(answers, 8),
    "pieces": Attack(pieces, 8),
    "streams": Attack(streams, 160, deaf=True),
    "tasks": Attack(tasks, 16),
    "runs": Attack(runs, 32),
    "deaf_runs": Attack(deaf_runs, 64, deaf=True),
    "deaf_events": Attack(deaf_events, 128, deaf=True),
    "events": Attack(events, 8),
    "cancels": Attack(cancels, 16),
    "replays": Attack(replays, 16),
}


async def prepare(tenant: Tenant, number: int = 16) -> None:
    """Make the runs with a long journal."""
    data = body_of("a b ", MIB, "echo")
    async with Line(tenant.port) as line:
        for _ in range(number):
            run = tenant.name("long")
            answer = await line.ask(tenant.post(CHAT, data, runid=run, turnid=run))
            if answer.status == OK:
                tenant.runs.append(run)


async def go_on(tenant: Tenant, name: str) -> NoReturn:
    """One attacker of a kind: a new connection whenever the last one has ended."""
    attack = ATTACKS[name]
    while True:
        try:
            async with Line(tenant.port, deaf=attack.deaf) as line:
                await attack.act(tenant, line)
        except (OSError, EOFError):  # an IncompleteReadError is one
            tenant.seen[f"{name}: hung up"] += 1
            await asyncio.sleep(REFUSED_SECONDS)
