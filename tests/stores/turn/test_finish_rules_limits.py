"""What a call has cost above what was reserved for it: debited, or written down as unpaid (R57)."""

import asyncio
from typing import Any

import pytest

from carnet.core.people.identity import Payer
from carnet.ports.calls.turns import Claimed, Debit, Denied
from carnet.stores.open import Store
from tests.stores.support.scenes import (
    ALICE,
    Place,
    a_claim,
    a_finish,
    a_wait,
    an_answer,
    an_interrupt,
    claimed,
)

LIMITED = Payer(account=ALICE.account, quota="token:alice", limit=1000)
QUOTA = "SELECT spent, reserved, unpaid FROM purse"
POSTED = "SELECT credit, amount FROM ledger ORDER BY n"


async def test_what_was_used_is_debited_above_the_reservation(store: Store, place: Place) -> None:
    turn = claimed(await store.turns.claim(a_claim(payer=LIMITED, reserve=1)))
    debits = (Debit("agent:echo", 900),)
    ended = await store.turns.finish(a_finish(turn, payer=LIMITED, debits=debits, exceeds=True))
    assert (ended.cost, ended.run_cost) == (900, 900)
    assert place.rows(QUOTA) == [(900, 0, 0)]
    assert place.rows(POSTED) == [("agent:echo", 900)]


async def test_what_others_have_reserved_is_left_to_them(store: Store, place: Place) -> None:
    turn = claimed(await store.turns.claim(a_claim("r1", payer=LIMITED, reserve=100)))
    other = claimed(await store.turns.claim(a_claim("r2", payer=LIMITED, reserve=600)))
    debits = (Debit("peer:b", 60), Debit("agent:echo", 900))
    ended = await store.turns.finish(a_finish(turn, payer=LIMITED, debits=debits, exceeds=True))
    assert ended.cost == 400
    assert place.rows(QUOTA) == [(400, 600, 560)]
    posted = [("peer:b", 60), ("agent:echo", 340), ("unpaid:token:alice", 560)]
    assert place.rows(POSTED) == posted
    await store.turns.finish(a_finish(other, payer=LIMITED, debits=(Debit("agent:echo", 600),)))
    assert place.rows(QUOTA) == [(1000, 0, 560)]
    assert (await store.verify_ledger()).faults == []


async def test_of_many_that_end_at_once_none_is_debited_twice_for_the_same_money(
    store: Store, place: Place
) -> None:
    claims = [a_claim(f"r{i}", payer=LIMITED, reserve=10) for i in range(6)]
    turns = [claimed(await store.turns.claim(claim)) for claim in claims]
    debits = (Debit("agent:echo", 300),)
    ends = [a_finish(turn, payer=LIMITED, debits=debits, exceeds=True) for turn in turns]
    await asyncio.gather(*[store.turns.finish(end) for end in ends])
    assert place.rows(QUOTA) == [(1000, 0, 800)]
    assert (await store.verify_ledger()).faults == []


async def test_who_has_not_paid_is_refused_what_may_cost_and_nothing_else(
    store: Store, place: Place
) -> None:
    turn = claimed(await store.turns.claim(a_claim("r1", payer=LIMITED, reserve=5)))
    debits = (Debit("agent:echo", 1003),)
    await store.turns.finish(a_finish(turn, payer=LIMITED, debits=debits, exceeds=True))
    unlimited = Payer(account=ALICE.account, quota="token:alice", limit=None)
    for payer in (LIMITED, unlimited):
        dear = a_claim("r2", payer=payer, may_cost=True)
        assert await store.turns.claim(dear) == Denied("unpaid", amount=3)
    assert isinstance(await store.turns.claim(a_claim("free", payer=LIMITED)), Claimed)
    assert place.rows(QUOTA) == [(1000, 0, 3)]


async def test_what_is_disputed_is_written_down_and_spent_by_nobody(
    store: Store, place: Place
) -> None:
    turn = claimed(await store.turns.claim(a_claim(payer=LIMITED, reserve=50)))
    debits = (Debit("peer:b", 50), Debit("disputed:peer:b", 7, "disputed"))
    ended = await store.turns.finish(a_finish(turn, payer=LIMITED, debits=debits, disputed=7))
    assert (ended.cost, ended.disputed) == (50, 7)
    assert place.rows(QUOTA) == [(50, 0, 0)]
    assert place.rows(POSTED) == [("peer:b", 50), ("disputed:peer:b", 7)]
    assert (await store.verify_ledger()).faults == []


async def test_a_turn_that_runs_again_has_cost_what_all_of_its_attempts_have(store: Store) -> None:
    first = claimed(await store.turns.claim(a_claim()))
    spent = (Debit("peer:b", 30),)
    await store.turns.finish(a_finish(first, state="failed", retryable=True, debits=spent))
    again = claimed(await store.turns.claim(a_claim()))
    assert again.cost == 30
    ended = await store.turns.finish(a_finish(again, debits=(Debit("peer:b", 12),)))
    assert (ended.cost, ended.run_cost) == (42, 42)


async def test_children_that_are_answered_from_their_record_are_counted_once(store: Store) -> None:
    first = claimed(await store.turns.claim(a_claim()))
    failed = a_finish(first, state="failed", retryable=True, debits=(), children_cost=70)
    assert (await store.turns.finish(failed)).cost == 70
    again = claimed(await store.turns.claim(a_claim()))
    ended = a_finish(again, debits=(Debit("agent:echo", 5),), children_cost=90)
    assert (await store.turns.finish(ended)).cost == 95


USED = "SELECT owner, used FROM rule ORDER BY n"
FREE: dict[str, Any] = {"state": "failed", "debits": ()}


@pytest.mark.parametrize(
    ("end", "used"),
    [
        (FREE, 0),
        (FREE | {"retryable": True}, 400),  # it may run again, with what was agreed to
        (FREE | {"debits": (Debit("peer:b", 1),)}, 400),
        (FREE | {"children_cost": 1}, 400),
        ({}, 400),
    ],
)
async def test_a_rule_is_given_back_what_was_not_paid(
    store: Store, place: Place, end: dict[str, Any], used: int
) -> None:
    rule = {"agent": "echo", "kind": "payment"}
    for owner in ("token:bob", "token:alice"):
        await store.rules.add(owner=owner, **rule, ceiling=1000, now=1)
    await store.rules.use(owner="token:bob", **rule, amount=400)
    number = await store.rules.use(owner="token:alice", **rule, amount=400)
    answer = a_claim(resolution=an_answer(resolver=f"rule:{number}"))
    waits: dict[str, Any] = {
        "interrupts": (an_interrupt(amount=400, origin=None),),
        "owners": ("token:alice",),
    }
    turn = claimed(await store.turns.claim(a_claim()))
    await store.turns.finish(a_wait(turn, **waits))
    for _ in range(2):  # it is asked for again, and so it was not paid
        turn = claimed(await store.turns.claim(answer))
        await store.turns.finish(a_wait(turn, **waits))
        assert place.rows(USED) == [("token:bob", 400), ("token:alice", 0)]
        await store.rules.use(owner="token:alice", **rule, amount=400)
    turn = claimed(await store.turns.claim(answer))
    await store.turns.finish(a_finish(turn, **end))
    assert place.rows(USED) == [("token:bob", 400), ("token:alice", used)]
