"""A call that a peer makes stands where its parent stands: its depth cannot be set anew (A40)."""

import asyncio
from typing import Any

import pytest

from carnet.ports.calls.turns import Denied, Known, TurnClaim
from carnet.stores.open import Store
from tests.stores.support.scenes import BOB, Place, a_claim, a_finish, claimed, finished

MISPLACED = Denied("chain")
MOVED = Denied("moved")


def below(parent: str | None, depth: int, turn: str = "t9", **changes: Any) -> TurnClaim:  # noqa: ANN401, RUF100
    """A claim of run r1 whose parent a peer named."""
    return a_claim("r1", turn=turn, parent_turn=parent, depth=depth, wire_parent=True, **changes)


@pytest.mark.parametrize(("depth", "fits"), [(0, False), (2, False), (3, False), (4, True)])
async def test_a_call_is_one_below_the_record_of_its_parent(
    store: Store,
    depth: int,
    fits: bool,  # noqa: FBT001
) -> None:
    await finished(store, turn="t1", depth=3)
    verdict = await store.turns.claim(below("t1", depth))
    assert (verdict != MISPLACED) == fits


@pytest.mark.parametrize(("depth", "fits"), [(0, False), (3, True), (4, False)])
async def test_a_call_is_as_deep_as_its_siblings(store: Store, depth: int, fits: bool) -> None:  # noqa: FBT001
    """The parent itself ran elsewhere."""
    claimed(await store.turns.claim(below("far", 3, "t1")))
    verdict = await store.turns.claim(below("far", depth))
    assert (verdict != MISPLACED) == fits


async def test_what_is_refused_leaves_no_trace_and_a_true_depth_is_admitted_after_it(
    store: Store, place: Place
) -> None:
    await finished(store, turn="t1", depth=3)
    before = place.counts()
    assert await store.turns.claim(below("t1", 0)) == MISPLACED
    assert place.counts() == before
    claimed(await store.turns.claim(below("t1", 4)))


async def test_other_branches_other_runs_and_other_payers_are_not_compared(store: Store) -> None:
    claimed(await store.turns.claim(below("far", 3, "t1")))
    claimed(await store.turns.claim(below("other", 1, "t2")))
    claimed(await store.turns.claim(below(None, 0, "t3")))
    claimed(await store.turns.claim(below("far", 1, "t4", payer=BOB)))
    elsewhere = a_claim("r2", turn="t5", parent_turn="far", depth=1, wire_parent=True)
    claimed(await store.turns.claim(elsewhere))


async def test_only_a_parent_that_a_peer_named_is_compared(store: Store) -> None:
    claimed(await store.turns.claim(below("far", 3, "t1")))
    claimed(await store.turns.claim(a_claim("r1", turn="t2", parent_turn="far", depth=1)))


async def test_a_turn_that_is_sent_again_stands_where_it_stood(store: Store) -> None:
    turn = claimed(await store.turns.claim(below("far", 3, "t1")))
    assert await store.turns.claim(below("far", 0, "t1")) == MOVED
    ended = await store.turns.finish(a_finish(turn))
    assert await store.turns.claim(below("far", 0, "t1")) == MOVED
    assert await store.turns.claim(below("far", 3, "t1")) == Known(ended)


async def test_a_turn_that_failed_does_not_run_again_from_another_depth(store: Store) -> None:
    turn = claimed(await store.turns.claim(below("far", 3, "t1")))
    await store.turns.finish(a_finish(turn, state="failed", code="x", retryable=True))
    assert await store.turns.claim(below("far", 0, "t1")) == MOVED
    claimed(await store.turns.claim(below("far", 3, "t1")))


async def test_claims_of_one_batch_are_compared_with_one_another(store: Store) -> None:
    verdicts = await asyncio.gather(
        store.turns.claim(below("far", 3, "t1")),
        store.turns.claim(below("far", 0, "t2")),
        store.turns.claim(below("t1", 4, "t3")),
        store.turns.claim(below("t1", 1, "t4")),
        store.turns.claim(below("far", 3, "t5")),
    )
    assert [verdict == MISPLACED for verdict in verdicts] == [False, True, False, True, False]
