"""Rates and quotas: exact, also within one batch."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.people.identity import Payer
from carnet.ports.calls.turns import Claimed, Debit, Denied, Rate
from carnet.stores.open import Store
from carnet.stores.turn.claim_rules import next_arrival
from tests.stores.support.scenes import ALICE, Place, a_claim, a_finish, claimed

SECOND = 1_000_000
NOW = 1_800_000_000_000_000
TEN_A_MINUTE = Rate(bucket="token:alice", calls=10, seconds=60)
LIMITED = Payer(account=ALICE.account, quota="token:alice", limit=1000)


def at(seconds: float) -> int:
    return NOW + round(seconds * SECOND)


async def test_as_many_calls_as_the_rate_allows_may_come_at_once(store: Store) -> None:
    claims = [a_claim(f"r{i}", rates=(TEN_A_MINUTE,)) for i in range(12)]
    verdicts = await asyncio.gather(*[store.turns.claim(claim) for claim in claims])
    assert [type(verdict) for verdict in verdicts] == [Claimed] * 10 + [Denied] * 2
    assert verdicts[10:] == [Denied("rate", 6, "token:alice")] * 2


async def test_retry_after_is_when_the_next_call_is_free(store: Store) -> None:
    for i in range(10):
        claimed(await store.turns.claim(a_claim(f"r{i}", rates=(TEN_A_MINUTE,))))
    late = a_claim("late", rates=(TEN_A_MINUTE,), now=at(2.5))
    refused = await store.turns.claim(late)
    assert refused == Denied("rate", 4, "token:alice")  # 3.5 s, in whole seconds
    claimed(await store.turns.claim(a_claim("late", rates=(TEN_A_MINUTE,), now=at(6))))
    assert await store.turns.claim(a_claim("next", rates=(TEN_A_MINUTE,), now=at(6))) == Denied(
        "rate", 6, "token:alice"
    )


async def test_refused_calls_are_not_counted(store: Store) -> None:
    rate = Rate(bucket="b", calls=1, seconds=10)
    claimed(await store.turns.claim(a_claim("r0", rates=(rate,))))
    for _ in range(5):
        refused = await store.turns.claim(a_claim("r1", rates=(rate,), now=at(1)))
        assert refused == Denied("rate", 9, "b")
    claimed(await store.turns.claim(a_claim("r1", rates=(rate,), now=at(10))))


async def test_a_call_must_pass_all_its_rates_and_where_one_refuses_none_is_charged(
    store: Store, place: Place
) -> None:
    wide = Rate(bucket="agent", calls=2, seconds=60)
    first, second = (Rate(bucket=name, calls=1, seconds=10) for name in ("a", "b"))
    claimed(await store.turns.claim(a_claim("r0", rates=(wide, first))))
    refused = a_claim("r1", rates=(wide, second, first))
    assert await store.turns.claim(refused) == Denied("rate", 10, "a")
    assert place.rows("SELECT bucket FROM rate ORDER BY bucket") == [("a",), ("agent",)]
    claimed(await store.turns.claim(a_claim("r2", rates=(wide, second))))
    # Both are full: the caller is told when the later of them has room again.
    for rates in ((first, wide), (wide, first)):
        refusal = await store.turns.claim(a_claim("r3", rates=rates))
        assert refusal == Denied("rate", 30, "agent")
    claimed(await store.turns.claim(a_claim("r3", rates=(wide, first), now=at(30))))


async def test_two_rates_of_one_bucket_are_both_counted_in_it(store: Store) -> None:
    rate = Rate(bucket="a", calls=4, seconds=60)
    for i in range(2):
        claimed(await store.turns.claim(a_claim(f"r{i}", rates=(rate, rate))))
    assert isinstance(await store.turns.claim(a_claim("r2", rates=(rate, rate))), Denied)


async def test_a_replay_is_not_counted(store: Store) -> None:
    rate = Rate(bucket="b", calls=1, seconds=10)
    turn = claimed(await store.turns.claim(a_claim(rates=(rate,))))
    await store.turns.finish(a_finish(turn))
    assert not isinstance(await store.turns.claim(a_claim(rates=(rate,))), Denied)


async def test_a_call_refused_for_its_price_is_not_counted_by_its_rate(
    store: Store, place: Place
) -> None:
    claim = a_claim(payer=LIMITED, reserve=2000, rates=(TEN_A_MINUTE,))
    assert await store.turns.claim(claim) == Denied("spending", amount=1000)
    assert place.counts()["rate"] == 0


async def test_a_clock_that_was_set_back_blocks_for_one_window_at_most(store: Store) -> None:
    rate = Rate(bucket="b", calls=2, seconds=60)
    for i in range(2):
        claimed(await store.turns.claim(a_claim(f"r{i}", rates=(rate,), now=at(86_400))))
    back = a_claim("back", rates=(rate,), now=at(0))
    assert await store.turns.claim(back) == Denied("rate", 30, "b")


@given(
    calls=st.integers(1, 50),
    seconds=st.integers(1, 3600),
    steps=st.lists(st.integers(0, 10 * SECOND), max_size=200),
)
def test_no_window_admits_more_than_a_burst_and_its_refill(
    calls: int, seconds: int, steps: list[int]
) -> None:
    rate = Rate(bucket="b", calls=calls, seconds=seconds)
    now, tat = NOW, 0
    admitted: list[int] = []
    for step in steps:
        now += step
        mark, wait = next_arrival(rate, tat, now)
        if wait is None:
            tat = mark
            admitted.append(now)
        else:
            # What is told is enough, and not a second more than needed.
            assert next_arrival(rate, tat, now + wait * SECOND)[1] is None
            assert next_arrival(rate, tat, now + (wait - 1) * SECOND)[1] is not None
    for first in range(len(admitted)):
        in_window = [
            moment for moment in admitted[first:] if moment - admitted[first] < seconds * SECOND
        ]
        assert len(in_window) <= 2 * calls


async def test_a_reservation_is_held_until_the_finish(store: Store, place: Place) -> None:
    turn = claimed(await store.turns.claim(a_claim("r1", payer=LIMITED, reserve=700)))
    too_much = a_claim("r2", payer=LIMITED, reserve=700)
    assert await store.turns.claim(too_much) == Denied("spending", amount=300)
    await store.turns.finish(
        a_finish(turn, payer=LIMITED, reserve=700, debits=(Debit("agent:echo", 300),))
    )
    assert place.rows("SELECT name, spent, reserved FROM purse") == [("token:alice", 300, 0)]
    claimed(await store.turns.claim(a_claim("r2", payer=LIMITED, reserve=700)))
    assert place.rows("SELECT name, spent, reserved FROM purse") == [("token:alice", 300, 700)]


async def test_what_is_left_is_reserved_where_the_callee_is_told_of_it(
    store: Store, place: Place
) -> None:
    """R53: as far as it may shrink, and never to nothing."""
    claimed(await store.turns.claim(a_claim("r1", payer=LIMITED, reserve=700)))
    dear = a_claim("r2", payer=LIMITED, reserve=900, shrinks=500)
    assert await store.turns.claim(dear) == Denied("spending", amount=300)
    verdict = await store.turns.claim(a_claim("r2", payer=LIMITED, reserve=800, shrinks=500))
    assert isinstance(verdict, Claimed)
    assert verdict.reserved == 300
    assert place.rows("SELECT reserve FROM turn ORDER BY n") == [(700,), (300,)]
    assert place.rows("SELECT spent, reserved FROM purse") == [(0, 1000)]
    nothing = a_claim("r3", payer=LIMITED, reserve=10, shrinks=10)
    assert await store.turns.claim(nothing) == Denied("spending", amount=0)


async def test_a_batch_cannot_overshoot_the_limit(store: Store) -> None:
    claims = [a_claim(f"r{i}", payer=LIMITED, reserve=300) for i in range(5)]
    verdicts = await asyncio.gather(*[store.turns.claim(claim) for claim in claims])
    assert [type(verdict) for verdict in verdicts] == [Claimed] * 3 + [Denied] * 2


async def test_what_costs_nothing_is_not_refused_for_money(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim("r1", payer=LIMITED, reserve=1000)))
    await store.turns.finish(a_finish(turn, payer=LIMITED, debits=(Debit("peer:b", 5000),)))
    claimed(await store.turns.claim(a_claim("free", payer=LIMITED, reserve=0)))
    assert await store.turns.claim(a_claim("dear", payer=LIMITED, reserve=1)) == Denied("spending")


async def test_the_finish_releases_what_the_row_holds(store: Store, place: Place) -> None:
    turn = claimed(await store.turns.claim(a_claim(payer=LIMITED, reserve=700)))
    await store.turns.finish(a_finish(turn, payer=LIMITED, reserve=1, debits=()))
    assert place.rows("SELECT reserved FROM purse") == [(0,)]


@pytest.mark.parametrize("state", ["unknown", "failed"])
async def test_running_again_reserves_again_once(store: Store, place: Place, state: str) -> None:
    turn = claimed(await store.turns.claim(a_claim(payer=LIMITED, reserve=700)))
    await store.turns.finish(a_finish(turn, payer=LIMITED, state=state, retryable=True, debits=()))
    again = claimed(await store.turns.claim(a_claim(payer=LIMITED, reserve=600)))
    assert place.rows("SELECT reserved FROM purse") == [(600,)]
    await store.turns.finish(a_finish(again, payer=LIMITED))
    assert place.rows("SELECT spent, reserved FROM purse") == [(200, 0)]


async def test_running_again_may_be_refused_and_leaves_the_turn_as_it_was(store: Store) -> None:
    rate = Rate(bucket="b", calls=1, seconds=10)
    turn = claimed(await store.turns.claim(a_claim(payer=LIMITED, rates=(rate,))))
    ended = await store.turns.finish(a_finish(turn, state="unknown", debits=(), events=b""))
    again = a_claim(payer=LIMITED, rates=(rate,))
    assert await store.turns.claim(again) == Denied("rate", 10, "b")
    dear = a_claim(payer=LIMITED, reserve=1001)
    assert await store.turns.claim(dear) == Denied("spending", amount=1000)
    assert await store.turns.reload(turn) == ended
    entries = await store.records.entries("r1", reader=None, after=0, limit=9)
    assert [entry.kind for entry in entries] == ["accepted", "ended"]


async def test_what_an_attempt_held_that_nobody_ended_is_released_by_the_next(
    store: Store, place: Place
) -> None:
    claimed(await store.turns.claim(a_claim(payer=LIMITED, reserve=700)))
    place.rows("UPDATE turn SET worker = 'gone'")  # as after a lease that ran out
    claimed(await store.turns.claim(a_claim(payer=LIMITED, reserve=900)))
    assert place.rows("SELECT reserved FROM purse") == [(900,)]
