"""Tasks of several tenants: whoever has many that wait holds up nobody who has one (A88)."""

from collections.abc import Callable, Iterator

import pytest

from carnet.runtime.tasks.worker import AWAY_EACH
from carnet.testing.wait import until
from tests.faults.stores import rows
from tests.interop.conftest import Databases
from tests.support.federation import organisation
from tests.support.http import chat_body, request
from tests.support.organisation import Organisation
from tests.support.served import AGENTS

MANY = 20
PEERS = ("globex", "initech")
AGENT = "\n[agents.{0}]\nkind = 'python'\ntarget = 'agents:held'\n"
ASKS = "\n[agents.asks]\nkind = 'python'\ntarget = 'agents:asks'\n"
NAMES = ("one", "two", "three", "four")
# It ends when a file of the name that it was asked with is there.
HELD = """

async def held(visit: carnet.Visit) -> str:
    note(visit)
    while not RAN.with_name(visit.text).exists():
        await asyncio.sleep(0.01)
    return "let go"


async def asks(visit: carnet.Visit) -> str:
    await visit.interrupt(approval="May I?")
    return await held(visit)
"""


def begun(gateway: Organisation) -> list[str]:
    """The runs in which agents of a gateway were begun, in order."""
    trace = gateway.folder / "ran.txt"
    lines = trace.read_text().splitlines() if trace.exists() else []
    return [line.split()[1].partition(".")[0] for line in lines]


class Desk:
    """A gateway that runs few tasks at once, and its tenants."""

    def __init__(self, gateway: Organisation, most: int, per_agent: int) -> None:
        self.gateway = gateway
        limits = f"[limits]\ntasks = {most}\ntasks_per_agent = {per_agent}\n"
        agents = "".join(AGENT.format(name) for name in NAMES) + ASKS
        gateway.configure(limits + agents, agents=AGENTS + HELD)
        gateway.start()
        self.mallory = gateway.new_token("mallory")
        self.alice = gateway.new_token("alice")

    def ask(self, token: str, run: str, file: str, agent: str = "one") -> str:
        fields = [
            ("authorization", f"Bearer {token}"),
            ("content-type", "application/json"),
            ("x-tangle-runid", run),
            ("x-tangle-turnid", f"{run}.t0.x"),
        ]
        reply = request("POST", f"{self.gateway.url}/tasks", fields, chat_body(file, agent))
        assert reply.status == 202, reply.body
        return str(reply.json["taskId"])

    def answer(self, token: str, run: str) -> None:
        """Call an agent that asks for leave, and give it: the call is run on as a task."""
        ids = [("x-tangle-runid", run), ("x-tangle-turnid", f"{run}.t0.x")]
        waits = self.gateway.chat("gate", "asks", headers=ids, token=token)
        assert waits.status == 403, waits.body
        name = waits.json["error"]["interrupt"]["id"]
        fields = [("authorization", f"Bearer {token}"), ("content-type", "application/json")]
        url = f"{self.gateway.url}/approvals/{name}"
        reply = request("POST", url, fields, b'{"outcome": "accepted"}')
        assert reply.status == 200, reply.body

    def let_go(self, file: str) -> None:
        (self.gateway.folder / file).touch()

    def ran(self) -> list[str]:
        """The runs whose tasks were begun, in order."""
        return begun(self.gateway)

    def unfinished(self) -> int:
        sql = "SELECT COUNT(*) FROM turn WHERE state NOT IN ('done', 'failed')"
        return int(rows(self.gateway, sql)[0][0])


Opening = Callable[[int, int], Desk]


@pytest.fixture
def opening(tmp_path_factory: pytest.TempPathFactory, database: Databases) -> Iterator[Opening]:
    opened: list[Desk] = []

    def desk(most: int, per_agent: int) -> Desk:
        folder = tmp_path_factory.mktemp("fair") / "acme"
        opened.append(Desk(organisation(folder, "acme.example", database()), most, per_agent))
        return opened[-1]

    yield desk
    for each in opened:
        assert each.gateway.stop() == 0


def test_one_task_does_not_wait_behind_all_of_another_tenant(opening: Opening) -> None:
    """A88: it is the next one but one, however many came before it."""
    desk = opening(8, 1)
    desk.ask(desk.mallory, "first", "gate")
    until(lambda: desk.ran() == ["first"])
    for number in range(MANY):
        desk.ask(desk.mallory, f"m{number}", "gate")
    desk.ask(desk.alice, "a0", "gate")
    desk.ask(desk.alice, "a1", "gate")
    desk.let_go("gate")
    until(lambda: len(desk.ran()) == MANY + 3)
    order = desk.ran()
    assert order.index("a0") <= 2
    assert order.index("a1") <= 4
    hers = [run for run in order if run.startswith("m")]
    assert hers == [f"m{number}" for number in range(MANY)]  # those of one in their order
    until(lambda: desk.unfinished() == 0)


def test_one_answered_call_does_not_wait_behind_all_of_another_tenant(opening: Opening) -> None:
    """A88: nor behind calls that were answered, by whoever made them."""
    desk = opening(8, 1)
    desk.answer(desk.mallory, "first")
    until(lambda: desk.ran() == ["first"])
    for number in range(MANY):
        desk.answer(desk.mallory, f"m{number}")
    desk.answer(desk.alice, "a0")
    desk.answer(desk.alice, "a1")
    desk.let_go("gate")
    until(lambda: len(desk.ran()) == MANY + 3)
    order = desk.ran()
    assert order.index("a0") <= 2
    assert order.index("a1") <= 4
    hers = [run for run in order if run.startswith("m")]
    assert hers == [f"m{number}" for number in range(MANY)]  # those of one in their order
    until(lambda: desk.unfinished() == 0)
    held = "SELECT COUNT(*) FROM purse WHERE name LIKE 'waits/%' AND spent <> 0"
    assert rows(desk.gateway, held) == [(0,)]


def test_who_has_tasks_at_many_agents_does_not_take_every_place(opening: Opening) -> None:
    """A88: a place that becomes free goes to whoever has the fewest."""
    desk = opening(2, 2)
    desk.ask(desk.mallory, "h0", "gate0", "one")
    desk.ask(desk.mallory, "h1", "gate1", "two")
    until(lambda: len(desk.ran()) == 2)
    for number in range(MANY):
        desk.ask(desk.mallory, f"m{number}", "gate", NAMES[number % 3])
    desk.ask(desk.alice, "a0", "gate", "four")
    desk.ask(desk.alice, "a1", "gate", "one")
    desk.let_go("gate0")
    until(lambda: len(desk.ran()) == 3)
    assert desk.ran()[2] in {"a0", "a1"}
    desk.let_go("gate")
    until(lambda: {"a0", "a1"} <= set(desk.ran()[:6]))
    desk.let_go("gate1")
    until(lambda: desk.unfinished() == 0)


@pytest.fixture
def peers(
    tmp_path_factory: pytest.TempPathFactory, database: Databases
) -> Iterator[list[Organisation]]:
    """Two other organisations, whose agents end when they are let go."""
    folder = tmp_path_factory.mktemp("peers")
    found = [organisation(folder / name, f"{name}.example", database()) for name in PEERS]
    for each in found:
        each.configure("".join(AGENT.format(name) for name in NAMES), agents=AGENTS + HELD)
    yield found
    assert [each.stop() for each in found] == [0, 0]


def test_whose_tasks_are_slow_elsewhere_keeps_nobody_elses_from_starting(
    opening: Opening, peers: list[Organisation]
) -> None:
    """A88: neither by how many it has sent, nor by how many names it has sent them to."""
    desk, (globex, initech) = opening(4, 2), peers
    for peer, name in zip(peers, PEERS, strict=True):
        desk.gateway.carnet("peers", "add", f"{name}.example", "--url", peer.url)
        peer.carnet("peers", "add", "acme.example", "--url", desk.gateway.url, "--credit", "10")
        peer.start()
    for number in range(4 * MANY):
        desk.ask(desk.mallory, f"m{number}", "gate", f"@{NAMES[number % 4]}@globex.example")
    until(lambda: len(begun(globex)) == AWAY_EACH)
    desk.ask(desk.alice, "a0", "gate", "@one@globex.example")
    desk.ask(desk.alice, "a1", "gate", "@one@initech.example")
    desk.ask(desk.mallory, "here", "gate", "one")
    until(lambda: "a0" in begun(globex))
    until(lambda: begun(initech) == ["a1"])
    until(lambda: begun(desk.gateway) == ["here"])
    assert len(begun(globex)) == AWAY_EACH + 1
    for each in (desk.gateway, *peers):
        (each.folder / "gate").touch()
    until(lambda: desk.unfinished() == 0)
    assert len(begun(globex)) == 4 * MANY + 1
