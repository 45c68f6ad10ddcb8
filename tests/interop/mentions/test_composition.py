"""One scene, of all that seed 003 says of several agents: a person in a chat, three organisations.

She mentions an agent of Globex and one of Initech. Both answer over A2A, with evidence for each of
them alone. What Initech's says mentions Globex's again, which goes on from hop to hop; the last one
asks for a payment, and concludes when she has paid.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from carnet.cli.chat.history import YOU
from tests.cli.chat.terminal import Terminal, terminal
from tests.faults.stores import move_to
from tests.interop.conftest import Databases
from tests.support.organisation import Organisation, environment

AGENTS = """
import json

import carnet


def seen(visit, words):
    evidence = [
        [each.subject, list(each.audience), list(each.on_behalf_of)] for each in visit.evidence
    ]
    chain = [visit.chain.hop, visit.chain.cap, visit.is_final]
    note = {
        "me": visit.recipient,
        "heard": visit.text,
        "chain": chain,
        "cue": visit.cue,
        "relay": visit.capabilities.mention_relay,
        "evidence": evidence,
        "via": visit.received_via,
    }
    with open("seen.jsonl", "a") as notes:
        notes.write(json.dumps(note) + "\\n")
    return words


async def scheduler(visit: carnet.Visit) -> str:
    if visit.chain.hop == 1:
        return seen(visit, "Tuesday is free.")
    return seen(visit, "Then let @archive@initech.example look it up.")


async def docs(visit: carnet.Visit) -> str:
    return seen(visit, "The runbook is r-7. Is Tuesday long enough, @scheduler@globex.example?")


async def archive(visit: carnet.Visit) -> str:
    return seen(visit, "That costs something: @seller@globex.example sells it.")


async def seller(visit: carnet.Visit) -> str:
    answer = await visit.interrupt(payment="0.5", message="Half a credit for the report.")
    word = "It takes two hours. Ask @docs@initech.example." if answer.accepted else "No report."
    return seen(visit, word)
"""
ELSEWHERE = """
[agents.{0}]
kind = "python"
target = "agents:{0}"

[agents.{1}]
kind = "python"
target = "agents:{1}"

[peers."acme.example"]
url = "{2}"
credit = "5"
"""
HOME = """
[agents.orchestrator]
kind = "orchestrator"

[owner]
orchestrator = "orchestrator"

[peers."globex.example"]
url = "{0}"
dialect = "a2a"
max_cost = "1"

[peers."initech.example"]
url = "{1}"
dialect = "a2a"
auth = "jwt"
"""
SPOKEN = "@scheduler@globex.example @docs@initech.example find a free Tuesday and link the runbook"
FINAL = (
    "You are responding as the FINAL hop (4 of 4). "
    "Synthesize a conclusion \N{EM DASH} do not invite another agent."
)
PAY = "[a]pprove, [d]eny, [r]emember, [l]ater? "


class Three(NamedTuple):
    """The person's own organisation, and two others."""

    acme: Organisation
    globex: Organisation
    initech: Organisation

    def seen(self) -> list[dict[str, Any]]:
        """What each agent saw, by their hops."""
        paths = [each.folder / "seen.jsonl" for each in (self.globex, self.initech)]
        lines = [line for path in paths if path.exists() for line in path.read_text().splitlines()]
        return sorted([json.loads(line) for line in lines], key=lambda note: note["chain"][0])


def begun(folder: Path, domain: str, database: str) -> Organisation:
    folder.mkdir()
    made = Organisation(folder, domain)
    if database:
        move_to(made, database)
    return made


@pytest.fixture(scope="module")
def three(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Three]:
    folder = tmp_path_factory.mktemp("three")
    domains = ("acme.example", "globex.example", "initech.example")
    made = [begun(folder / domain, domain, database()) for domain in domains]
    acme, globex, initech = made
    acme.configure(HOME.format(globex.url, initech.url))
    starter = (acme.folder / "agents.py").read_text()
    for each, names in ((globex, ("scheduler", "seller")), (initech, ("docs", "archive"))):
        each.configure(ELSEWHERE.format(*names, acme.url), agents=f"{starter}\n{AGENTS}")
    for each in made:
        each.start()
    yield Three(*made)
    for each in made:
        each.stop()


@contextmanager
def chat(home: Organisation, *words: str) -> Iterator[Terminal]:
    given = {"CARNET_TOKEN": home.token, "CARNET_URL": home.url, "NO_COLOR": "1"}
    with terminal("chat", *words, at=home.folder.parent, env=environment(given)) as seat:
        seat.shows("/help lists the commands.")
        yield seat


def test_two_who_are_mentioned_answer_bring_others_in_and_are_paid(three: Three) -> None:
    """Must show 2 of the design, from the first word to the last hop."""
    with chat(three.acme) as seat:
        seat.shows(YOU)
        seat.types(SPOKEN)
        # Both have answered, and stand in their order behind their addresses.
        seat.shows("@scheduler@globex.example:\nTuesday is free.\n\n@docs@initech.example:\n")
        seat.shows("The runbook is r-7. Is Tuesday long enough, @scheduler@globex.example?")
        # What the second has said is relayed at the next hop, and from there on.
        seat.shows("\n@scheduler@globex.example:\nThen let @archive@initech.example look it up.")
        seat.shows("\n@archive@initech.example:\nThat costs something: @seller@globex.example")
        # The last hop asks for money before it concludes.
        seat.shows("? @seller@globex.example asks (payment): Half a credit for the report.\n")
        seat.shows("  amount: 0.5 credits\n")
        seat.shows(PAY)
        assert [note["chain"][0] for note in three.seen()] == [1, 1, 2, 3]
        seat.types("a")
        shown = seat.shows("It takes two hours. Ask @docs@initech.example.")
        assert "@seller@globex.example:\n" in shown
        assert "begins anew" not in seat.screen
        seat.shows(YOU)

    notes = three.seen()
    assert [(note["me"], note["chain"]) for note in notes] == [
        ("@scheduler@globex.example", [1, 4, False]),
        ("@docs@initech.example", [1, 4, False]),
        ("@scheduler@globex.example", [2, 4, False]),
        ("@archive@initech.example", [3, 4, False]),
        ("@seller@globex.example", [4, 4, True]),  # whom it mentions is not asked
    ]
    assert {note["via"] for note in notes} == {"a2a"}
    assert {note["relay"] for note in notes} == {"inline"}
    # Each was given evidence of its own, for itself and for nobody else.
    for note in notes:
        assert note["evidence"] == [
            ["@orchestrator@acme.example", [note["me"]], ["@owner@acme.example"]]
        ]
    # Who brought it in stands before what it was asked; the last one is told to conclude.
    assert notes[2]["heard"].startswith("@docs@initech.example says: The runbook is r-7.")
    assert notes[4]["heard"].startswith("@archive@initech.example says: That costs something")
    assert notes[2]["cue"].endswith("as hop 2 of a chain capped at 4 hops. [2 hops remaining.]")
    assert notes[4]["cue"] == FINAL
    _is_kept_as_messages_of_their_own(three.acme)
    _is_paid_once(three)


def test_a_kill_while_the_last_hop_waits_for_money_asks_nobody_again(three: Three) -> None:
    for each in (three.globex, three.initech):
        (each.folder / "seen.jsonl").unlink(missing_ok=True)
    with chat(three.acme) as seat:
        seat.shows(YOU)
        seat.types(SPOKEN)
        seat.shows(PAY)
    three.acme.kill()
    three.acme.start()
    with chat(three.acme, "--continue") as seat:
        seat.shows("Half a credit for the report.\n")
        seat.shows(PAY)
        seat.types("a")
        seat.shows("It takes two hours.")
        seat.shows(YOU)
    assert [note["chain"][0] for note in three.seen()] == [1, 1, 2, 3, 4]


def _is_kept_as_messages_of_their_own(acme: Organisation) -> None:
    (listed,) = acme.get("/conversations").json["conversations"]
    page = acme.get(f"/conversations/{listed['id']}").json
    kept = [(each["author"], each["state"]) for each in reversed(page["messages"])]
    assert [author for author, _ in kept[1:]] == [
        "orchestrator",
        "@scheduler@globex.example",
        "@archive@initech.example",
        "@seller@globex.example",
    ]
    assert {state for _, state in kept} == {"whole"}


def _is_paid_once(three: Three) -> None:
    """By the person at home, who owes it; and by her organisation at the one that sold."""
    assert paid_to(three.acme, "peer:globex.example") == [("starter@acme.example", "0.5")]
    assert paid_to(three.globex, "agent:seller") == [("starter@acme.example", "0.5")]


def paid_to(at: Organisation, account: str) -> list[tuple[str, str]]:
    """Who was debited what for it."""
    entries = at.json("ledger", "--account", account)["entries"]
    found = [(each["debit"], each["amount"]) for each in entries]
    return [(debit, amount) for debit, amount in found if amount != "0"]
