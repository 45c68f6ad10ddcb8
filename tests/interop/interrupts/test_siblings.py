"""Of two siblings asked at once one leads to a question three hops down: a person says yes."""

from collections.abc import Iterator

import pytest

from carnet.core.money.amount import MICROS
from carnet.testing.wait import until
from tests.faults.stores import number
from tests.interop.conftest import Databases
from tests.interop.interrupts.scene import (
    PAYMENT,
    PRICE,
    SELLER,
    SIBLINGS,
    SIBLINGS_COST,
    Scene,
    answer,
    held,
    posted,
    resolution,
    same_turn,
    started,
    state_of,
    world,
)
from tests.support.http import Reply
from tests.support.served import executions


@pytest.fixture(scope="module")
def scene(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    scene = started(database, tmp_path_factory)
    yield scene
    scene.stop()


def again(scene: Scene, waits: Reply, *brought: tuple[str, str], token: str) -> Reply:
    return scene.again(waits, *brought, text=SIBLINGS, agent="front", token=token)


def check_siblings(scene: Scene, run: str) -> None:
    """The one waits, and what the other has answered is recorded."""
    (top,) = scene.acme.json("run", "show", run, "--full")["turns"]
    quick, slow = top["children"]
    assert (quick["agent"], quick["state"]) == ("@paid@globex.example", "done")
    assert quick["answered"] == {"text": "hello"}
    assert (slow["agent"], slow["state"]) == ("@relay@globex.example", "waiting")
    assert top["state"] == "waiting"


def check_money(scene: Scene, run: str) -> None:
    """All ledgers agree to the micro-unit, and nothing is reserved."""
    assert posted(scene, run) == [(cost, cost) for cost in SIBLINGS_COST]
    assert [held(gateway) for gateway in scene] == [[], [], []]
    for gateway in scene:
        assert gateway.json("ledger", "verify")["ok"]
        assert gateway.json("ledger", "differences")["differences"] == []


def test_a_payment_that_one_of_two_siblings_leads_to_is_approved_in_the_inbox_of_the_origin(
    scene: Scene,
) -> None:
    """A46, R45: it is asked while the other sibling's answer is kept, paid once, answered once."""
    alice = scene.acme.new_token("alice", "--limit", "100")
    waits = scene.ask(SIBLINGS, "front", token=alice)
    assert (waits.status, waits.code) == (402, "payment_required")
    run = waits.headers["x-tangle-runid"]

    (question,) = scene.acme.get("/approvals", token=alice).json["approvals"]
    assert scene.acme.json("inbox", "list", "--as", alice)["approvals"] == [question]
    assert (question["asked_by"], question["agent"], question["run"]) == (SELLER, "front", run)
    assert (question["kind"], question["amount"]) == ("payment", "0.02")
    assert question["chain"] == f"front > @relay@globex.example > {SELLER}"
    check_siblings(scene, run)

    approved = scene.acme.json("inbox", "approve", question["id"], "--as", alice)
    assert (approved["status"], approved["outcome"]) == ("resolved", "accepted")
    done = until(lambda: again(scene, waits, token=alice), lambda reply: reply.status == 200)
    assert (done.text, done.json["usage"]["cost"]) == ("hello and sold hi", "0.0204")
    assert len(executions(scene.globex.folder, "paid")) == 1  # its answer is given from the record
    assert scene.acme.get("/approvals", token=alice).json["approvals"] == []

    check_money(scene, run)
    left = world(scene, run)
    same = answer(scene.acme, question["id"], token=alice)
    assert (same.status, same.json) == (200, approved)
    other = answer(scene.acme, question["id"], "rejected", token=alice)
    assert (other.status, other.code) == (409, "answered_otherwise")
    used = again(scene, waits, resolution(state_of(waits)), token=alice)
    assert (used.status, used.code) == (409, "policy_state_invalid")
    assert again(scene, waits, token=alice).body == done.body
    assert world(scene, run) == left


def test_siblings_that_somebody_between_asks_at_once_are_paid_once(scene: Scene) -> None:
    """What it tells to have cost is what its ledger has: the answer that was kept costs no more."""
    text = f"@paid@initech.example hello | {SELLER} hi"
    scene.acme.carnet("peers", "add", "globex.example", "--max-cost", "3")  # enough for both
    shown = "SELECT COALESCE(MAX(money), 0) FROM budget"
    until(  # else they are asked with enough for one
        lambda: scene.ask("echo hi", "@front@globex.example"),
        lambda _: number(scene.globex, shown) == 3 * MICROS,
    )
    waits = scene.ask(text, "@front@globex.example")
    assert waits.status == 402
    done = scene.ask(
        text, "@front@globex.example", headers=[*same_turn(waits), resolution(state_of(waits))]
    )
    assert (done.text, done.json["usage"]["cost"]) == ("hello and sold hi", "0.0204")
    assert posted(scene, waits.headers["x-tangle-runid"]) == [(PAYMENT + 2 * PRICE,) * 2] * 2
    assert [held(gateway) for gateway in scene] == [[], [], []]
    assert scene.acme.json("ledger", "differences")["differences"] == []
