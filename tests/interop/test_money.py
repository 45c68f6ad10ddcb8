"""What two gateways post of the same calls: who has little left calls on, and nobody pays twice."""

from collections.abc import Iterator
from http.client import HTTPException
from typing import NamedTuple

import pytest

from carnet.core.money.amount import MICROS
from carnet.testing.wait import until
from tests.faults.stores import end_leases, number, rows
from tests.interop.conftest import Databases
from tests.support.federation import introduce, organisation
from tests.support.http import HeaderList, Reply
from tests.support.organisation import Organisation

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
"""


class Scene(NamedTuple):
    """Two gateways; the first calls the second by its key, or by a token."""

    acme: Organisation
    globex: Organisation

    def ask(self, agent: str, text: str, token: str, headers: HeaderList = ()) -> Reply:
        return self.acme.chat(text, f"@{agent}@globex.example", token=token, headers=headers)


def started(folder: str, database: Databases, factory: pytest.TempPathFactory) -> Scene:
    place = factory.mktemp(folder)
    acme = organisation(place / "acme", "acme.example", database())
    globex = organisation(place / "globex", "globex.example", database())
    globex.configure(METERED, agents=(globex.folder / "agents.py").read_text() + COUNTS)
    return Scene(acme, globex)


@pytest.fixture(scope="module")
def signed(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Acme signs: globex is told what a call may cost."""
    scene = started("signed", database, tmp_path_factory)
    scene.acme.carnet("peers", "add", "globex.example", "--url", scene.globex.url)
    listed = ("peers", "add", "acme.example", "--url", scene.acme.url, "--credit", "10")
    scene.globex.carnet(*listed)
    scene.acme.start()
    scene.globex.start()
    yield scene
    assert (scene.acme.stop(), scene.globex.stop()) == (0, 0)


@pytest.fixture(scope="module")
def by_token(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """Acme shows a token: nobody tells globex what a call may cost."""
    scene = started("by_token", database, tmp_path_factory)
    introduce(scene.acme, scene.globex, forwarding=False)
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
