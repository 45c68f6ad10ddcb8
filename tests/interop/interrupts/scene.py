"""Three organisations, each listing the next; an agent of the last one asks for something."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.faults.stores import number, rows
from tests.interop.conftest import Databases
from tests.support.federation import organisation
from tests.support.http import HeaderList, Reply, request
from tests.support.organisation import Organisation

PAYMENT = 20_000  # micro-units: what `seller` asks for
PRICE = 200  # of a call to `seller`
SELLER = "@seller@initech.example"
AT_GLOBEX = f"@relay@globex.example {SELLER} hi"
SIBLINGS = f"@paid@globex.example hello | {AT_GLOBEX}"  # for `front`; the first answers at once
SIBLINGS_COST = [PAYMENT + 2 * PRICE, PAYMENT + PRICE]  # of Acme at Globex, of Globex at Initech

ASKS = """

async def seller(visit: carnet.Visit) -> str:
    note(visit)
    answer = await visit.interrupt(payment="0.02", message="The archive costs two cents.")
    return f"sold {visit.text}" if answer.accepted else "not sold"


async def dear(visit: carnet.Visit) -> str:
    note(visit)
    answer = await visit.interrupt(payment="12", message="All of it costs twelve.")
    return f"sold {visit.text}" if answer.accepted else "not sold"


async def teller(visit: carnet.Visit) -> AsyncIterator[str]:
    note(visit)
    yield "looking "
    answer = await visit.interrupt(payment="0.02", message="The archive costs two cents.")
    yield "sold" if answer.accepted else "not sold"


async def clerk(visit: carnet.Visit) -> str:
    note(visit)
    answer = await visit.interrupt(
        input="Which one?", options=["red", "blue"], schema={"type": "string"}, expires=3600
    )
    return f"{answer.outcome} {answer.value}"


async def wide(visit: carnet.Visit) -> str:
    note(visit)
    shape = {"enum": [f"word number {number:04}" for number in range(600)]}
    answer = await visit.interrupt(input="Which of the words?", schema=shape)
    return f"{answer.value}"


async def hasty(visit: carnet.Visit) -> str:
    note(visit)
    answer = await visit.interrupt(approval="Now?", expires=0.3)
    return answer.outcome


async def guard(visit: carnet.Visit) -> str:
    note(visit)
    answers = [await visit.interrupt(approval="Go on?"), await visit.interrupt(consent="Share?")]
    return " ".join(answer.outcome for answer in answers)


async def both(visit: carnet.Visit) -> str:
    note(visit)
    one, other = visit.text.split()
    asked = [visit.peer(name).ask("hi") for name in (one, other)]
    return " and ".join(await asyncio.gather(*asked))


async def front(visit: carnet.Visit) -> str:
    note(visit)
    asked = [each.split(" ", 1) for each in visit.text.split(" | ")]
    return " and ".join(await asyncio.gather(*(visit.peer(to).ask(text) for to, text in asked)))


asks = carnet.agent("asks")


@asks.skill("later", modes=["async"])
async def later(text: str, visit: carnet.Visit) -> dict[str, str]:
    note(visit)
    answer = await visit.interrupt(payment="0.02", message="The archive costs two cents.")
    return {"text": f"sold {text}" if answer.accepted else "not sold"}
"""

NAMES = ("seller", "dear", "teller", "clerk", "wide", "hasty", "guard", "both", "front")
CONFIG = "\n".join(
    f'[agents.{name}]\nkind = "python"\ntarget = "agents:{name}"\ntrust = "public"\n'
    + 'price = "0.0002"\n' * (name == "seller")
    for name in NAMES
)
SKILLED = '\n[agents.asks]\ntarget = "agents:asks"\ntrust = "public"\nprice = "0.0002"\n'


class Scene(NamedTuple):
    """Acme calls Globex, and Globex calls Initech."""

    acme: Organisation
    globex: Organisation
    initech: Organisation

    def ask(
        self, text: str = AT_GLOBEX, agent: str = "relay", headers: HeaderList = (), **more: Any
    ) -> Reply:
        return self.acme.chat(text, agent, headers=headers, **more)

    def again(
        self, waits: Reply, *resolution: tuple[str, str], text: str = AT_GLOBEX, **more: Any
    ) -> Reply:
        """Repeat the turn of an answer, perhaps with a resolution."""
        return self.ask(text, headers=[*same_turn(waits), *resolution], **more)

    def stop(self) -> None:
        assert [gateway.stop() for gateway in self] == [0, 0, 0]


def same_turn(answer: Reply) -> list[tuple[str, str]]:
    return [(name, answer.headers[name]) for name in ("x-tangle-runid", "x-tangle-turnid")]


def resolution(state: str, outcome: str = "accepted", value: str = "") -> tuple[str, str]:
    return "carnet-resolution", f"{state};outcome={outcome}" + (
        f";value=:{value}:" if value else ""
    )


def answer(
    gateway: Organisation, name: str, outcome: str = "accepted", token: str | None = None
) -> Reply:
    """Answer a question in an inbox as a person would."""
    fields = [
        ("authorization", f"Bearer {token or gateway.token}"),
        ("content-type", "application/json"),
    ]
    body = json.dumps({"outcome": outcome}).encode()
    return request("POST", f"{gateway.url}/approvals/{name}", fields, body)


def state_of(waits: Reply) -> str:
    return str(waits.json["error"]["interrupt"]["state"])


def three(
    place: Path,
    database: Databases,
    *,
    dialect: str = "tangle",
    credit: str = "10",
    config: str = "",
    agents: str = "",
) -> Scene:
    """Three organisations that know one another by their keys, not yet started.

    `config` and `agents` are added to what each of them has.
    """
    names = ("acme", "globex", "initech")
    all_three = [organisation(place / name, f"{name}.example", database()) for name in names]
    for gateway in all_three:
        whole = (gateway.folder / "agents.py").read_text() + ASKS + agents
        gateway.configure(CONFIG + SKILLED + config, agents=whole)
    scene = Scene(*all_three)
    for caller, callee in ((scene.acme, scene.globex), (scene.globex, scene.initech)):
        how = ("--url", callee.url, "--dialect", dialect)
        caller.carnet("peers", "add", callee.domain, *how)
        callee.carnet("peers", "add", caller.domain, "--url", caller.url, "--credit", credit)
    return scene


def started(
    database: Databases, factory: pytest.TempPathFactory, *, dialect: str = "tangle"
) -> Scene:
    """The same, and they serve."""
    scene = three(factory.mktemp("three"), database, dialect=dialect)
    for gateway in scene:
        gateway.start()
    return scene


def posted(scene: Scene, run: str) -> list[tuple[int, int]]:
    """What each caller owes for a run by its own ledger, and by that of whom it called."""
    ours = "SELECT COALESCE(SUM(amount), 0) FROM ledger WHERE run = ? AND credit = ?"
    theirs = "SELECT COALESCE(SUM(amount), 0) FROM ledger WHERE run = ? AND issuer = ?"
    pairs = ((scene.acme, scene.globex), (scene.globex, scene.initech))
    return [
        (
            number(caller, ours, run, f"peer:{callee.domain}"),
            number(callee, theirs, run, caller.domain),
        )
        for caller, callee in pairs
    ]


def held(gateway: Organisation) -> list[tuple[str, int]]:
    """What is reserved at a gateway."""
    return rows(gateway, "SELECT name, reserved FROM purse WHERE reserved <> 0")


_LEDGER = "SELECT n, turn, issuer, account, credit, amount FROM ledger WHERE run = ? ORDER BY n"
_TURNS = (
    "SELECT t.n, t.state, t.attempt, t.fence, t.cost FROM turn t JOIN run r ON r.n = t.run"
    " WHERE r.id = ? ORDER BY t.n"
)
_QUESTIONS = (
    "SELECT i.n, i.status, i.outcome, i.resolver, i.resolved FROM interrupt i"
    " JOIN turn t ON t.n = i.turn JOIN run r ON r.n = t.run WHERE r.id = ? ORDER BY i.n"
)
# How many wait is counted too, and the count of those who wait no more is forgotten in time.
_QUOTAS = "SELECT name, spent, reserved FROM purse WHERE name NOT LIKE 'waits/%' ORDER BY name"


def world(scene: Scene, run: str) -> list[list[tuple[Any, ...]]]:
    """Everything that an answer could change: money, turns and questions of all three."""
    found = [
        rows(gateway, look, run) for gateway in scene for look in (_LEDGER, _TURNS, _QUESTIONS)
    ]
    return found + [rows(gateway, _QUOTAS) for gateway in scene]


def poll(scene: Scene, task: str) -> dict[str, Any]:
    """A task of Acme, as its owner sees it."""
    fields = [("authorization", f"Bearer {scene.acme.token}")]
    page: dict[str, Any] = request("GET", f"{scene.acme.url}/tasks/{task}", fields).json
    return page
