"""What two gateways post of the same calls: who has little left calls on, and nobody pays twice."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPException
from typing import NamedTuple

import pytest

from carnet.core.money.amount import MICROS
from carnet.testing.wait import until
from tests.faults.stores import end_leases, number, rows
from tests.interop.conftest import Databases
from tests.support.federation import introduce, organisation
from tests.support.http import HeaderList, Reply, request
from tests.support.model import Model
from tests.support.organisation import Organisation
from tests.travel.middlebox import Middlebox, Passing, middlebox
from tests.travel.scene import claims

PRICE = 200  # micro-units, of what `spends` has paid at globex
COUNTS = """

async def counts(visit: carnet.Visit) -> str:
    \"\"\"Use as many tokens as the text says.\"\"\"
    note(visit)
    visit.usage(tokens_out=int(visit.text))
    return visit.text
"""
METERED = """
[agents.counts]
kind = "python"
target = "agents:counts"
price_out = "1"

[agents.dear]
kind = "python"
target = "agents:echo"
price = "0.0002"

[agents.model]
kind = "openai"
url = "{model}/v1"
"""


class Scene(NamedTuple):
    """Two gateways; the first calls the second by its key, or by a token, through the box."""

    acme: Organisation
    globex: Organisation
    box: Middlebox

    def ask(self, agent: str, text: str, token: str, headers: HeaderList = ()) -> Reply:
        return self.acme.chat(text, f"@{agent}@globex.example", token=token, headers=headers)

    def shows(self, agent: str, page: bytes) -> None:
        """Let globex show another page for an agent."""

        def show(passing: Passing) -> None:
            if passing.path == page_of(agent):
                passing.status, passing.body = 200, page

        self.box.show = show


def page_of(agent: str) -> str:
    return f"/agents/{agent}/.well-known/carnet.json"


def started(
    folder: str, database: Databases, factory: pytest.TempPathFactory, held: ExitStack
) -> Scene:
    place = factory.mktemp(folder)
    acme = organisation(place / "acme", "acme.example", database())
    globex = organisation(place / "globex", "globex.example", database())
    model = held.enter_context(Model().serving())
    served = METERED.format(model=model.url)
    globex.configure(served, agents=(globex.folder / "agents.py").read_text() + COUNTS)
    return Scene(acme, globex, held.enter_context(middlebox(globex.port)))


@pytest.fixture(scope="module")
def signed(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Acme signs: globex is told what a call may cost."""
    with ExitStack() as held:
        scene = started("signed", database, tmp_path_factory, held)
        scene.acme.carnet("peers", "add", "globex.example", "--url", scene.box.url)
        listed = ("peers", "add", "acme.example", "--url", scene.acme.url, "--credit", "10")
        scene.globex.carnet(*listed)
        scene.acme.start()
        scene.globex.start()
        yield scene
        assert (scene.acme.stop(), scene.globex.stop()) == (0, 0)


@pytest.fixture(scope="module")
def by_token(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Acme shows a token: nobody tells globex what a call may cost."""
    with ExitStack() as held:
        scene = started("by_token", database, tmp_path_factory, held)
        introduce(scene.acme, scene.globex, url=scene.box.url, forwarding=False)
        scene.acme.start()
        scene.globex.start()
        yield scene
        assert (scene.acme.stop(), scene.globex.stop()) == (0, 0)


def posted(scene: Scene, run: str) -> tuple[int, int]:
    """What acme owes globex for a run by its own ledger, and by that of globex."""
    ours = "SELECT COALESCE(SUM(amount), 0) FROM ledger WHERE run = ? AND credit = ?"
    theirs = (
        "SELECT COALESCE(SUM(amount), 0) FROM ledger WHERE run = ? AND issuer = ?"
        " AND credit NOT LIKE 'unpaid:%' AND credit NOT LIKE 'disputed:%'"
    )
    return (
        number(scene.acme, ours, run, "peer:globex.example"),
        number(scene.globex, theirs, run, "acme.example"),
    )


def aside(gateway: Organisation, run: str) -> list[tuple[str, int]]:
    """What a gateway has posted of a run that nobody has paid, or owes."""
    sql = (
        "SELECT credit, amount FROM ledger WHERE run = ?"
        " AND (credit LIKE 'unpaid:%' OR credit LIKE 'disputed:%') ORDER BY n"
    )
    return rows(gateway, sql, run)


def in_run(run: str) -> HeaderList:
    return [("x-tangle-runid", run), ("x-tangle-turnid", f"{run}.t0.x")]


@pytest.mark.parametrize("relayed", [False, True], ids=["straight", "by an agent"])
def test_who_has_less_left_than_a_call_may_cost_calls_a_free_agent_of_a_carnet(
    signed: Scene, *, relayed: bool
) -> None:
    """R53: as much is reserved as is left, and the callee is told."""
    token = signed.acme.new_token(f"small-{relayed}", "--limit", "0.05")
    far = "@echo@globex.example"
    for _ in range(2):
        if relayed:
            reply = signed.acme.chat(f"{far} hi", "relay", token=token)
        else:
            reply = signed.ask("echo", "hi", token)
        assert (reply.status, reply.text) == (200, "hi")


def test_a_callee_is_told_what_the_payer_has_left_and_debits_no_more(signed: Scene) -> None:
    """R53, R57: what it used above that is unpaid there, and no matter of ours."""
    token, run = signed.acme.new_token("pinched", "--limit", "0.05"), "run-pinched"
    reply = signed.ask("counts", "80000", token, in_run(run))
    assert reply.json["usage"]["cost"] == "0.05"
    assert posted(signed, run) == (50_000, 50_000)
    assert aside(signed.globex, run) == [("unpaid:peer:acme.example", 30_000)]
    assert aside(signed.acme, run) == []
    refused = signed.ask("counts", "1", signed.acme.new_token("other", "--limit", "5"))
    assert refused.json["error"]["peer_code"] == "bill_unpaid"
    assert signed.ask("echo", "free", signed.acme.token).status == 200
    signed.globex.carnet("ledger", "settle", "peer:acme.example")
    assert signed.ask("counts", "1", signed.acme.token).status == 200
    assert signed.globex.json("ledger", "verify")["ok"]


def test_toward_others_less_than_a_call_may_cost_is_402_with_its_numbers(by_token: Scene) -> None:
    """R53."""
    token = by_token.acme.new_token("numbers", "--limit", "0.05")
    reply = by_token.ask("echo", "hi", token)
    assert (reply.status, reply.code) == (402, "spending_limit_reached")
    assert (reply.json["error"]["needed"], reply.json["error"]["left"]) == ("1", "0.05")
    assert "It may cost 1, and 0.05 is left." in reply.json["error"]["message"]


def test_what_a_peer_says_above_its_limit_is_disputed_and_listed(by_token: Scene) -> None:
    """R57, A33."""
    run = "run-disputed"
    assert by_token.ask("counts", "3000000", by_token.acme.token, in_run(run)).status == 200
    assert posted(by_token, run) == (MICROS, 3 * MICROS)
    assert aside(by_token.acme, run) == [("disputed:peer:globex.example", 2 * MICROS)]
    (listed,) = [
        each
        for each in by_token.acme.json("ledger", "differences")["differences"]
        if each["run"] == run
    ]
    assert (listed["kind"], listed["amount"]) == ("disputed", "2")
    assert by_token.acme.json("ledger", "verify")["ok"]


def test_a_call_that_was_lost_with_us_is_unmatched_until_it_is_made_again(by_token: Scene) -> None:
    """F45: globex has a posting of it, and acme was killed before it had one."""
    acme, run = by_token.acme, "run-lost"
    acme.stop()
    acme.start(env={"CRASH_AT": "upstream.done"})
    with pytest.raises((OSError, HTTPException)):
        by_token.ask("paid", "x", acme.token, in_run(run))
    acme.kill()
    end_leases(acme)
    acme.start()
    assert posted(by_token, run) == (0, PRICE)

    def listed() -> list[tuple[str, str, str | None]]:
        page = acme.json("ledger", "differences")
        found = [each for each in page["differences"] if each["run"] == run]
        return [(each["kind"], each["other"], each["amount"]) for each in found]

    assert until(listed) == [("unmatched", "@paid@globex.example", None)]
    assert run in acme.carnet("ledger", "differences").stdout
    assert by_token.ask("paid", "x", acme.token, in_run(run)).status == 200
    assert posted(by_token, run) == (PRICE, PRICE)
    assert listed() == []


def test_a_call_that_is_made_again_is_debited_once(signed: Scene, by_token: Scene) -> None:
    """R57: it failed after it had cost something, and tells that again with the same id."""
    for scene in (signed, by_token):
        for _ in range(3):
            reply = scene.ask("spends", "x", scene.acme.token, in_run("run-again"))
            assert reply.status >= 500
        assert posted(scene, "run-again") == (PRICE, PRICE)
        assert scene.acme.json("ledger", "verify")["ok"]


def quota_of(gateway: Organisation, account: str) -> list[tuple[int, int]]:
    """What a payer has spent and reserved, if anything was ever held for it."""
    sql = "SELECT spent, reserved FROM purse WHERE name = ?"
    return rows(gateway, sql, f"token:{account}")


def refused(reply: Reply) -> tuple[int, str, str, str]:
    error = reply.json["error"]
    return reply.status, reply.code, error["needed"], error["left"]


@pytest.mark.parametrize("agent", ["echo", "model"])
@pytest.mark.parametrize("relayed", [False, True], ids=["straight", "by an agent"])
def test_who_has_nothing_left_calls_a_free_agent_of_a_carnet(
    signed: Scene, agent: str, *, relayed: bool
) -> None:
    """R53: nothing is reserved, the callee is told, and nobody owes anything."""
    name = f"nothing-{agent}-{relayed}"
    token, run, far = signed.acme.new_token(name, "--limit", "0"), name, f"@{agent}@globex.example"
    model, text = ("relay", f"{far} hi") if relayed else (far, "hi")
    for headers in (in_run(run), ()):
        assert signed.acme.chat(text, model, token=token, headers=headers).status == 200
    assert posted(signed, run) == (0, 0)
    assert all(held == (0, 0) for held in quota_of(signed.acme, name))
    assert signed.acme.json("ledger", "verify")["ok"]


def test_who_has_nothing_left_and_calls_what_has_a_price_is_told_the_numbers(
    signed: Scene, by_token: Scene
) -> None:
    for scene in (signed, by_token):
        token = scene.acme.new_token("no-price", "--limit", "0")
        for agent in ("counts", "paid"):
            answer = refused(scene.ask(agent, "1", token))
            assert answer == (402, "spending_limit_reached", "1", "0")


def test_a_free_agent_that_calls_a_free_agent_spends_nothing_of_nothing(signed: Scene) -> None:
    """The callee was told to spend nothing, and finds out that it need not."""
    token, run = signed.acme.new_token("onward", "--limit", "0"), "run-onward"
    reply = signed.ask("relay", "@words@acme.example well then", token, in_run(run))
    assert (reply.status, reply.text) == (200, "well then ")
    assert posted(signed, run) == (0, 0)
    reply = signed.ask("relay", "paid dear", token)
    assert (reply.status, reply.json["error"]["peer_code"]) == (502, "budget_exceeded")


def test_toward_others_an_agent_is_free_that_cannot_call_anybody(by_token: Scene) -> None:
    """R53: nobody tells it to spend nothing, and it may not charge for what it calls."""
    token, run = by_token.acme.new_token("free", "--limit", "0"), "run-free"
    assert by_token.ask("model", "hi", token, in_run(run)).status == 200
    assert posted(by_token, run) == (0, 0)
    assert refused(by_token.ask("echo", "hi", token))[2:] == ("1", "0")


def test_a_free_agent_that_charges_is_disputed(by_token: Scene) -> None:
    """R53, R57: it has bound itself. Whoever calls it owes nothing, however much is left."""
    by_token.shows("dear", request("GET", by_token.globex.url + page_of("model")).body)
    for limit in ("0", "5"):
        name = f"misled-{limit}"
        token = by_token.acme.new_token(name, "--limit", limit)
        assert by_token.ask("dear", "x", token, in_run(name)).status == 200
        assert posted(by_token, name) == (0, PRICE)
        assert aside(by_token.acme, name) == [("disputed:peer:globex.example", PRICE)]
        assert all(held == (0, 0) for held in quota_of(by_token.acme, name))
    assert by_token.acme.json("ledger", "verify")["ok"]


def test_a_carnet_that_raised_its_price_is_told_to_spend_nothing_and_refuses(signed: Scene) -> None:
    """It charges nobody more than it was told, whatever its page said a moment ago."""
    signed.shows("dear", request("GET", signed.globex.url + page_of("model")).body)
    token, run = signed.acme.new_token("raised", "--limit", "0"), "run-raised"
    reply = signed.ask("dear", "x", token, in_run(run))
    assert (reply.status, reply.json["error"]["peer_code"]) == (502, "budget_exceeded")
    assert posted(signed, run) == (0, 0)
    assert aside(signed.acme, run) == []


def test_a_page_is_not_believed_that_its_peer_has_not_signed(signed: Scene) -> None:
    """One was changed on its way, the other is a page of acme itself."""
    token = signed.acme.new_token("doubts", "--limit", "0")
    forged = request("GET", signed.globex.url + page_of("twice")).json
    forged["terms"]["max_depth"] += 1
    signed.shows("twice", json.dumps(forged).encode())
    assert refused(signed.ask("twice", "x", token))[2:] == ("1", "0")
    signed.shows("half", request("GET", signed.acme.url + page_of("half")).body)
    assert refused(signed.ask("half", "x", token))[2:] == ("1", "0")


def test_a_task_for_a_free_agent_of_a_carnet_needs_no_money(signed: Scene) -> None:
    """What is sealed to run later is bounded by what the callee is told then: nothing."""
    token = signed.acme.new_token("later", "--limit", "0")
    begun = signed.acme.chat("hi", "@echo@globex.example", token=token, path="/tasks")
    assert begun.status == 202
    path = f"/tasks/{begun.json['taskId']}"
    until(lambda: signed.acme.get(path, token=token).json["status"] == "done")
    *_, sent = (each for each in signed.box.asked if "carnet" in each.headers)
    assert claims(sent.headers["carnet"])["bud"]["money"] == "0"
    assert all(held == (0, 0) for held in quota_of(signed.acme, "later"))
