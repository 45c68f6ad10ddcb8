"""One call through four organisations, each called in a dialect of its own."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from tests.faults.stores import number
from tests.interop.interrupts.scene import PAYMENT, resolution, same_turn, state_of
from tests.support.federation import organisation
from tests.support.http import Reply
from tests.support.organisation import Organisation

AGENTS: Final = """

async def seller(visit: carnet.Visit) -> str:
    answer = await visit.interrupt(payment="0.02", message="The archive costs two cents.")
    return f"sold {visit.text}" if answer.accepted else "not sold"


async def traced(visit: carnet.Visit) -> str:
    return visit.carnet.trace.trace_id
"""
CONFIG: Final = """
[agents.seller]
target = "agents:seller"
trust = "public"

[agents.traced]
target = "agents:traced"
trust = "public"
"""

DOMAINS: Final = ("acme.example", "globex.example", "initech.example", "umbrella.example")
LINKS: Final = ("tangle", "samvad", "a2a")  # in which each calls the next
THROUGH: Final = "@relay@globex.example @relay@initech.example"
TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"


class Four(NamedTuple):
    """Each lists the next one as a peer, known by its key."""

    acme: Organisation
    globex: Organisation
    initech: Organisation
    umbrella: Organisation

    def ask(self, text: str, *fields: tuple[str, str]) -> Reply:
        """Ask the agent of Acme that passes on what follows an address."""
        return self.acme.chat(text, "relay", headers=fields)


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Four]:
    place: Path = tmp_path_factory.mktemp("four")
    made = Four(*[organisation(place / domain, domain) for domain in DOMAINS])
    for each in made:
        each.configure(CONFIG, agents=(each.folder / "agents.py").read_text() + AGENTS)
    for (caller, callee), dialect in zip(pairwise(made), LINKS, strict=True):
        caller.carnet("peers", "add", callee.domain, "--url", callee.url, "--dialect", dialect)
        callee.carnet("peers", "add", caller.domain, "--url", caller.url, "--credit", "10")
    made.umbrella.carnet("peers", "add", "acme.example", "--url", made.acme.url)
    for each in made:
        each.start()
    yield made
    assert [each.stop() for each in made] == [0, 0, 0, 0]


def test_it_keeps_one_run_and_one_payer_and_each_hop_is_one_deeper(four: Four) -> None:
    done = four.ask(f"{THROUGH} @echo@umbrella.example hello")
    assert (done.status, done.text) == (200, "hello")
    run = done.headers["x-tangle-runid"]
    turns = [each.json("run", "show", run)["turns"][0] for each in four]
    assert [turn["depth"] for turn in turns] == [0, 1, 2, 3]
    assert [turn["agent"] for turn in turns] == ["relay", "relay", "relay", "echo"]
    callers = [f"peer:{domain}" for domain in DOMAINS[:3]]
    assert [turn["actor"] for turn in turns[1:]] == callers
    # The first calls in a run of its own, whose turns have no parent elsewhere.
    assert [turn["parent_turn"] for turn in turns[1:]] == [None, *[t["turn"] for t in turns[1:3]]]
    # The same person pays everywhere, and each organisation answers for her to the next.
    payers = ["starter@acme.example", "starter@acme.example"]
    payers += [f"{payers[0]}@globex.example", f"{payers[0]}@globex.example@initech.example"]
    assert [turn["payer"] for turn in turns] == payers


def test_it_belongs_to_one_trace(four: Four) -> None:
    parent = ("traceparent", f"00-{TRACE}-00f067aa0ba902b7-01")
    assert four.ask(f"{THROUGH} @traced@umbrella.example x", parent).text == TRACE


def test_the_fifth_hop_is_refused_with_the_limit_and_whose_it_is(four: Four) -> None:
    refused = four.ask(f"{THROUGH} @relay@umbrella.example @echo@acme.example hello")
    assert (refused.status, refused.code) == (429, "bridge_depth_exceeded")
    run = refused.headers["x-tangle-runid"]
    last = four.umbrella.json("run", "show", run)["turns"][0]
    assert (last["code"], last["depth"]) == ("bridge_depth_exceeded", 3)
    error = refused.json["error"]
    assert (error["observed"], error["limit"], error["stamp"]) == (4, 4, "chain")
    assert "max_depth" in error["hint"]


def test_what_the_last_asks_for_is_seen_and_paid_at_the_origin(four: Four) -> None:
    text = f"{THROUGH} @seller@umbrella.example hi"
    waits = four.ask(text)
    assert (waits.status, waits.code) == (402, "payment_required")
    asked = waits.json["error"]["interrupt"]
    assert (asked["amount"], asked["origin"]) == ("0.02", "@seller@umbrella.example")
    run = waits.headers["x-tangle-runid"]
    listed = four.acme.get("/approvals").json["approvals"]
    (question,) = [each for each in listed if each["run"] == run]
    assert question["asked_by"] == "@seller@umbrella.example"
    done = four.ask(text, *same_turn(waits), resolution(state_of(waits)))
    assert (done.status, done.text, done.json["usage"]["cost"]) == (200, "sold hi", "0.02")
    for each in four:
        assert each.json("ledger", "verify")["ok"]
        assert each.json("ledger", "differences")["differences"] == []
    owed = "SELECT SUM(amount) FROM ledger WHERE run = ? AND credit = ?"
    due = "SELECT SUM(amount) FROM ledger WHERE run = ? AND issuer = ?"
    for caller, callee in pairwise(four):
        assert number(caller, owed, run, f"peer:{callee.domain}") == PAYMENT
        assert number(callee, due, run, caller.domain) == PAYMENT
