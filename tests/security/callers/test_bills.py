"""What is used is debited: no caller bounds its own bill, and no limit gives tokens away."""

import json
from typing import Any

import pytest

from tests.security.support.scene import RUN, Scene, bills, fresh, nothing_done, postings, query

MILLION = 1_000_000  # micro-units; the model costs one unit a million tokens


def used(tokens: int) -> str:
    """What the model is told to say that it has used."""
    return json.dumps({"completion_tokens": tokens})


@pytest.mark.parametrize(
    "bounds",
    [
        {"max_tokens": 1},
        {"max_completion_tokens": 1},
        {"max_tokens": 1, "max_completion_tokens": 1},
    ],
    ids=str,
)
def test_a_caller_that_promises_little_is_billed_what_was_used(
    scene: Scene, bounds: dict[str, Any]
) -> None:
    """A80, R57."""
    token, run = scene.acme.new_token(fresh("small"), "--limit", "10"), fresh("bounded")
    reply = scene.acme.chat(used(MILLION), "model", token=token, headers=[(RUN, run)], **bounds)
    assert reply.status == 200
    assert reply.json["usage"]["cost"] == "1"
    assert [amount for _, _, amount in bills(scene.acme, run)] == [MILLION]


def test_a_limit_bounds_what_is_debited_and_not_less(scene: Scene) -> None:
    """A80, R57: 4,096 tokens were reserved for, and twenty million are in the bill."""
    token, run = scene.acme.new_token(fresh("large"), "--limit", "30"), fresh("whole")
    reply = scene.acme.chat(used(20 * MILLION), "model", token=token, headers=[(RUN, run)])
    assert reply.json["usage"]["cost"] == "20"
    assert [amount for _, _, amount in bills(scene.acme, run)] == [20 * MILLION]


def test_what_no_limit_covers_is_unpaid_and_refuses_what_may_cost_until_it_is_settled(
    scene: Scene,
) -> None:
    """A80, R57."""
    name, run = fresh("over"), fresh("unpaid")
    token = scene.acme.new_token(name, "--limit", "2")
    reply = scene.acme.chat(used(5 * MILLION), "model", token=token, headers=[(RUN, run)])
    assert reply.json["usage"]["cost"] == "2"
    payer = f"{name}@acme.example"
    assert postings(scene.acme, run) == [
        (payer, "agent:model", 2 * MILLION),
        (payer, f"unpaid:token:{name}", 3 * MILLION),
    ]
    assert scene.acme.json("ledger", "verify")["ok"]
    with nothing_done(scene):
        refused = scene.acme.chat("{}", "model", token=token, max_tokens=1)
    assert (refused.status, refused.code) == (402, "bill_unpaid")
    assert refused.json["error"]["unpaid"] == "3"
    assert scene.acme.chat("free", "echo", token=token).status == 200
    (row,) = query(scene.acme, "SELECT spent, unpaid FROM purse WHERE name = ?", f"token:{name}")
    assert row == (2 * MILLION, 3 * MILLION)
    listed = scene.acme.json("ledger", "differences")
    assert listed["unpaid"][f"token:{name}"] == "3"
    assert ("unpaid", run, "3") in [
        (d["kind"], d["run"], d["amount"]) for d in listed["differences"]
    ]
    too_much = scene.acme.try_carnet("ledger", "settle", f"token:{name}", "--amount", "4")
    assert too_much.returncode == 2
    scene.acme.carnet("ledger", "settle", f"token:{name}", "--amount", "1")
    assert scene.acme.chat("{}", "model", token=token).code == "bill_unpaid"
    scene.acme.carnet("ledger", "settle", f"token:{name}", "--forgive")
    assert scene.acme.chat("{}", "model", token=token).code == "spending_limit_reached"
    assert scene.acme.json("ledger", "verify")["ok"]
