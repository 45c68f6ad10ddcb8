"""Claiming: what is new runs once, what is known is not run again, what is refused never was."""

import asyncio

import pytest

from carnet.core.chain.turn import Turn
from carnet.core.people.identity import Payer
from carnet.ports.calls.turns import Claimed, Denied, Known
from carnet.stores.open import Store
from tests.stores.support.scenes import (
    ALICE,
    BOB,
    Place,
    a_claim,
    a_finish,
    a_wait,
    claimed,
    finished,
)


async def test_a_new_turn_is_ours_to_run(store: Store) -> None:
    asked = a_claim(parent_turn="up", speaker="echo", depth=2)
    verdict = await store.turns.claim(asked)
    assert verdict == Claimed(
        Turn(
            n=1,
            key=asked.key,
            agent="echo",
            run="r1",
            turn="r1.t0.echo",
            parent_turn="up",
            speaker="echo",
            depth=2,
            state="running",
            actor="token:alice",
            payer=ALICE.account,
            created=1_800_000_000_000_000,
            worker=store.worker,
            dialect=asked.admitted.dialect,
        )
    )
    assert await store.turns.reload(claimed(verdict)) == claimed(verdict)


async def test_a_run_that_begins_here_is_known_from_then_on(store: Store) -> None:
    begun = claimed(await store.turns.claim(a_claim(is_first=True)))
    assert await store.turns.claim(a_claim()) == Known(begun)
    again = [a_claim("r2", is_first=True), a_claim("r1", turn="r1.t1.echo"), a_claim("r2")]
    first, second, third = await asyncio.gather(*map(store.turns.claim, again))
    assert third == Known(claimed(first))
    assert claimed(second).run == "r1"


async def test_a_done_turn_is_replayed_from_its_record(store: Store) -> None:
    ended = await finished(store)
    assert await store.turns.claim(a_claim(now=1_900_000_000_000_000)) == Known(ended)
    assert ended.state == "done"


async def test_a_running_turn_is_attached_to(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    assert await store.turns.claim(a_claim()) == Known(turn)


async def test_a_waiting_turn_is_shown_again(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    waiting = await store.turns.finish(a_wait(turn))
    assert waiting.ended is None
    assert await store.turns.claim(a_claim()) == Known(waiting)


async def test_another_request_under_the_same_turn_is_a_mismatch(store: Store) -> None:
    ended = await finished(store)
    assert await store.turns.claim(a_claim(digest=b"other")) == Denied("mismatch")
    assert await store.turns.reload(ended) == ended


@pytest.mark.parametrize("state", ["failed", "unknown"])
async def test_a_turn_that_may_be_repeated_runs_again(store: Store, state: str) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    await store.turns.finish(
        a_finish(turn, state=state, code="provider_error", retryable=True, debits=())
    )
    again = claimed(await store.turns.claim(a_claim()))
    assert (again.n, again.attempt, again.fence, again.state) == (turn.n, 2, 2, "running")
    assert (again.created, again.ended, again.code) == (turn.created, None, None)
    assert await store.turns.reload(again) == again


async def test_a_turn_that_failed_for_good_is_replayed(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    failed = await store.turns.finish(
        a_finish(turn, state="failed", code="peer_refused", retryable=False)
    )
    assert await store.turns.claim(a_claim()) == Known(failed)


async def test_the_events_of_an_earlier_attempt_are_no_longer_part_of_the_answer(
    store: Store,
) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    await store.turns.append(turn, 0, 0, b'[["text","old"]]')
    await store.turns.finish(
        a_finish(turn, state="failed", retryable=True, events=b'[["failed","internal",{}]]')
    )
    again = claimed(await store.turns.claim(a_claim()))
    assert await store.turns.events(again) == []
    await store.turns.append(again, 0, 0, b'[["text","new"]]')
    assert await store.turns.events(again) == [b'[["text","new"]]']
    kinds = [
        entry.kind for entry in await store.records.entries("r1", reader=None, after=0, limit=9)
    ]
    assert kinds == ["accepted", "events", "events", "discard", "events"]


async def test_64_claims_of_one_key_are_one_execution(store: Store) -> None:
    verdicts = await asyncio.gather(*[store.turns.claim(a_claim()) for _ in range(64)])
    assert [type(verdict) for verdict in verdicts] == [Claimed] + [Known] * 63


async def test_64_claims_at_once_are_64_turns(store: Store, place: Place) -> None:
    turns = [
        claimed(verdict)
        for verdict in await asyncio.gather(
            *[store.turns.claim(a_claim(f"r{i}")) for i in range(64)]
        )
    ]
    assert sorted(turn.n for turn in turns) == list(range(1, 65))
    ended = await asyncio.gather(*[store.turns.finish(a_finish(turn)) for turn in turns])
    assert [turn.run for turn in ended] == [turn.run for turn in turns]
    made = place.counts()
    assert (made["run"], made["turn"], made["journal"], made["ledger"]) == (64, 64, 128, 64)


async def test_a_run_makes_as_many_calls_as_it_may(store: Store) -> None:
    claims = [a_claim("r1", turn=f"t{i}", most_run_calls=2) for i in range(3)]
    verdicts = await asyncio.gather(*[store.turns.claim(claim) for claim in claims])
    assert [type(verdict) for verdict in verdicts] == [Claimed, Claimed, Denied]
    assert verdicts[2] == Denied("run_calls")


async def test_a_repeat_does_not_count_as_a_call_of_its_run(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim(most_run_calls=1)))
    await store.turns.finish(a_finish(turn, state="unknown"))
    assert claimed(await store.turns.claim(a_claim(most_run_calls=1))).attempt == 2
    assert await store.turns.claim(a_claim(turn="t1", most_run_calls=1)) == Denied("run_calls")


async def test_another_payer_with_the_same_run_id_neither_sees_nor_disturbs_it(
    store: Store, place: Place
) -> None:
    mine = await finished(store, most_run_calls=1)
    theirs = await finished(store, payer=BOB, actor="token:bob", most_run_calls=1)
    assert (mine.run, mine.turn) == (theirs.run, theirs.turn)  # A41, A42
    assert mine.n != theirs.n
    assert (mine.run_cost, theirs.run_cost) == (200, 200)
    assert place.rows("SELECT id, account, calls, cost FROM run ORDER BY n") == [
        ("r1", "alice", 1, 200),
        ("r1", "bob", 1, 200),
    ]


async def test_a_refused_claim_leaves_no_trace(store: Store, place: Place) -> None:
    poor = Payer(account=ALICE.account, quota="poor", limit=10)
    before = place.counts()
    assert await store.turns.claim(a_claim(payer=poor, reserve=11)) == Denied("spending", amount=10)
    assert await store.turns.claim(a_claim(most_run_calls=0)) == Denied("run_calls")
    assert place.counts() == before


async def test_a_refused_row_does_not_affect_its_neighbours(store: Store, place: Place) -> None:
    poor = Payer(account=BOB.account, quota="poor", limit=10)
    verdicts = await asyncio.gather(
        store.turns.claim(a_claim("r1")),
        store.turns.claim(a_claim("r2", payer=poor, reserve=11)),
        store.turns.claim(a_claim("r3")),
    )
    assert [type(verdict) for verdict in verdicts] == [Claimed, Denied, Claimed]
    assert place.counts()["turn"] == 2


async def test_more_claims_than_one_statement_takes_are_one_batch(store: Store) -> None:
    first = await asyncio.gather(*[store.turns.claim(a_claim(f"r{i}")) for i in range(600)])
    assert {type(verdict) for verdict in first} == {Claimed}
    again = await asyncio.gather(*[store.turns.claim(a_claim(f"r{i}")) for i in range(600)])
    assert [type(verdict) for verdict in again] == [Known] * 600


async def test_the_bound_that_held_and_the_callers_own_name_stay_with_the_turn(
    store: Store,
) -> None:
    asked = a_claim(depth=2, last_depth=4, bound_by="mentionable", correlation="req-7")
    turn = claimed(await store.turns.claim(asked))
    assert (turn.last_depth, turn.bound_by, turn.correlation) == (4, "mentionable", "req-7")
    ended = await store.turns.finish(a_finish(turn, state="failed", retryable=True))
    again = claimed(await store.turns.claim(asked))
    for one in (ended, again, await store.turns.reload(turn)):
        assert (one.last_depth, one.bound_by, one.correlation) == (4, "mentionable", "req-7")
