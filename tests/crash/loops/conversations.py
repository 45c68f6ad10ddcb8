"""A gateway that drives a conversation of six turns, three of which are conversations themselves.

What is looked at after a kill: the transcript is that of a gateway which nobody killed, whoever was
recorded has spoken once, one more at the most was cut off, and all of it is billed once. Each case
gives the faults that it found; none is well.
"""

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from typing import Final

from carnet.testing.wait import until
from tests.crash.loops.kills import TRIGGER, arm, passed
from tests.faults.stores import end_leases, is_sound, move_to, number
from tests.support.http import Reply, request
from tests.support.organisation import Organisation

PRICE: Final = 10_000  # micro-units of one turn of the writer
SPEAKERS: Final = ("writer", "critic", "doubter", "fickle")
AGENTS: Final = (
    """
from pathlib import Path

import carnet

SPOKEN = Path(__file__).with_name("spoken.txt")


def speak(visit: carnet.Visit, name: str) -> str:
    with SPOKEN.open("a") as spoken:
        spoken.write(f"{visit.carnet.run} {visit.carnet.turn}#{len(visit.messages)}\\n")
    return f"{name} after {len(visit.messages)}"


async def echo(visit: carnet.Visit) -> str:
    return visit.text


async def writer(visit: carnet.Visit) -> str:
    return speak(visit, "writer")


async def critic(visit: carnet.Visit) -> str:
    return speak(visit, "critic")


async def doubter(visit: carnet.Visit) -> str:
    return speak(visit, "doubter")


async def fickle(visit: carnet.Visit) -> str:
    raise ConnectionError("not now")


async def inner(visit: carnet.Visit) -> str:
    return await visit.step("inner", speak, visit, "inner")


talk = carnet.Conversation(
    "talk",
    [
        "writer",
        carnet.Participant(target="fickle", on_failure="skip"),
        inner,
    ],
    max_turns=6,
)
"""
    + TRIGGER
)
CONFIG: Final = (
    "".join(f'[agents.{name}]\nkind = "python"\ntarget = "agents:{name}"\n' for name in SPEAKERS)
    + """
[agents.board]
kind = "conversation"
participants = ["critic", "doubter"]
max_turns = 2

[agents.panel]
kind = "conversation"
participants = ["writer", "board"]
max_turns = 6

[agents.talk]
kind = "conversation"
target = "agents:talk"
"""
).replace('"agents:writer"\n', '"agents:writer"\nprice = "0.01"\n')
WRITTEN: Final = 3  # turns of the writer in the panel
COST: Final = "0.03"  # as it is told
LEAVES: Final = 9  # that speak in it in all
# Of one call of the panel. At a number: killed there is the gateway the so-manieth time.
POINTS: Final = (
    "recv.body",
    "parse.ok",
    "t1.begin",
    "t1.before_commit",
    "t1.after_commit",
    "dialogue.before_keep",
    "dialogue.kept",
    "t3.begin",
    "t3.before_commit",
    "t3.after_commit",
    "reply.before_write",
    "reply.after_write",
)
ONCE: Final = {"recv.body", "parse.ok", "reply.before_write", "reply.after_write"}
LAST: Final = "reply.after_write:1"  # whoever asked has the answer by then
MOST_TIMES: Final = 40  # more than any of them is passed


def transcript() -> str:
    """What the panel comes to, where nobody is killed."""
    turns: list[str] = []
    for index in range(0, 6, 2):
        turns += [f"[writer] writer after {index + 1}", "[board] [critic] critic after 1"]
        turns += ["[doubter] doubter after 2"]
    return "\n".join(turns) + "\n"


class ConversationScene:
    """The gateway."""

    def __init__(self, acme: Organisation) -> None:
        self.acme = acme

    def ask(self, run: str, agent: str = "panel") -> Reply:
        ids = [("x-tangle-runid", run), ("x-tangle-turnid", "t1")]
        return self.acme.chat("Is it ready?", agent, headers=ids)

    def try_ask(self, run: str, agent: str = "panel") -> Reply | None:
        """None if no whole answer came."""
        try:
            return self.ask(run, agent)
        except (OSError, HTTPException):
            return None

    def send(self, run: str, agent: str = "panel") -> str:
        """Have it taken on as a task; its id."""
        fields = [
            ("authorization", f"Bearer {self.acme.token}"),
            ("content-type", "application/json"),
            ("x-tangle-runid", run),
            ("x-tangle-turnid", "t1"),
        ]
        body = {"model": agent, "messages": [{"role": "user", "content": "Is it ready?"}]}
        begun = request("POST", f"{self.acme.url}/tasks", fields, json.dumps(body).encode())
        assert begun.status == 202, begun.body
        return str(begun.json["taskId"])

    def arm(self, plan: str) -> None:
        """Let it die at a point; it is started if it does not run."""
        if self.acme.process is None:
            self.restart()
        arm(self.acme, plan)

    def restart(self) -> None:
        """Start it after it died, and what it held has run out."""
        self.acme.kill()
        end_leases(self.acme)
        self.acme.start()

    def passed(self) -> set[str]:
        """The points that were passed since it was armed."""
        return passed(self.acme)

    def spoken(self, run: str) -> Counter[str]:
        """How often each turn was spoken."""
        file = self.acme.folder / "spoken.txt"
        lines = file.read_text().splitlines() if file.exists() else []
        return Counter(line.split()[1] for line in lines if line.split()[0] == run)

    def billed(self, run: str) -> int:
        """What the writer was credited for a run."""
        sql = "SELECT COALESCE(SUM(amount), 0) FROM ledger WHERE run = ? AND credit = ?"
        return number(self.acme, sql, run, "agent:writer")

    def is_sound(self) -> bool:
        return is_sound(self.acme) and bool(self.acme.json("ledger", "verify")["ok"])


@contextmanager
def conversation_scene(folder: Path, database: str) -> Iterator[ConversationScene]:
    """A gateway that is started when it is first armed."""
    acme = Organisation(folder, "acme.example")
    if database:
        move_to(acme, database)
    acme.configure(CONFIG, agents=AGENTS)
    try:
        yield ConversationScene(acme)
    finally:
        acme.kill()


class ConversationCase:
    """One kill at one point, and everything that is looked at afterwards."""

    def __init__(self, scene: ConversationScene, point: str, time: int, whole: str) -> None:
        """`whole` is the answer of a gateway that nobody killed."""
        self.kills = 0
        self.is_passed = True
        self._scene = scene
        self._plan = f"{point}:{time}"
        self._run = f"at_{point.replace('.', '_')}_{time:03}"
        self._whole = whole

    def faults(self) -> list[str]:
        """Die at the point, and look."""
        return [f"{self._plan}: {fault}" for fault in self._act()]

    def _act(self) -> Iterator[str]:
        scene = self._scene
        scene.arm(self._plan)
        reply = scene.try_ask(self._run)
        self.is_passed = reply is None or self._plan == LAST
        if not self.is_passed:
            return
        assert scene.acme.died()
        self.kills += 1
        before = scene.spoken(self._run)
        scene.restart()
        again = until(lambda: scene.ask(self._run), lambda reply: reply.status == 200)
        if again.text != self._whole:
            yield f"another transcript: {again.text!r}"
        if again.json["usage"]["cost"] != COST:
            yield f"it says that it cost {again.json['usage']['cost']}, and not {COST}"
        if scene.ask(self._run).body != again.body:
            yield "two repeats differ"
        yield from self._counted(before)

    def _counted(self, before: Counter[str]) -> Iterator[str]:
        spoken = self._scene.spoken(self._run)
        if len(spoken) != LEAVES:
            yield f"{len(spoken)} turns were spoken, and not {LEAVES}"
        twice = {turn: times for turn, times in spoken.items() if times > 1}
        if len(twice) > 1 or any(times > 2 for times in twice.values()):
            yield f"spoken again: {twice}"
        if not before.keys() <= spoken.keys():
            yield f"turns that are none any more: {before.keys() - spoken.keys()}"
        billed = self._scene.billed(self._run)
        if billed != WRITTEN * PRICE:
            yield f"was billed {billed}, and not {WRITTEN * PRICE}"
