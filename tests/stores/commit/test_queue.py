"""Waiting for a writer that does not come: who is told, when, and what is true of their claim."""

import asyncio

import pytest

from carnet.errors import OutcomeUnknown, Overloaded
from carnet.ports.calls.turns import Claimed
from carnet.stores.commit.queue import Queue
from carnet.stores.database import Lease
from carnet.stores.open import Store
from carnet.testing.wait import until_so
from tests.stores.support.scenes import a_claim, a_finish, claimed

WAIT_SECONDS = 0.2


def a_queue(most_waiting: int = 100) -> Queue:
    """Nobody empties it but the test."""
    return Queue(asyncio.get_running_loop(), lambda: None, most_waiting, WAIT_SECONDS)


async def test_a_claim_that_nobody_begins_with_is_refused_and_never_made() -> None:
    queue = a_queue()
    first = queue.claim(a_claim())
    began = asyncio.get_running_loop().time()
    with pytest.raises(Overloaded) as caught:
        await asyncio.wait_for(first, 30)
    assert caught.value.retry_after == 1
    assert asyncio.get_running_loop().time() - began >= WAIT_SECONDS
    second = queue.claim(a_claim("r2"))
    batch = queue.take()
    assert [job[1] for job in batch.cancelled()] == [first]
    assert [job[1] for job in batch.claims] == [second]


async def test_each_is_answered_when_its_own_time_is_over() -> None:
    queue = a_queue()
    first = queue.claim(a_claim())
    await until_so(first.done)
    second = queue.claim(a_claim("r2"))
    assert isinstance(first.exception(), Overloaded)
    assert not second.done()
    await until_so(second.done)
    assert isinstance(second.exception(), Overloaded)


async def test_a_claim_that_was_begun_with_is_unknown_and_given_back_if_it_was_made(
    store: Store,
) -> None:
    made = claimed(await store.turns.claim(a_claim()))
    queue = a_queue()
    asked = a_claim()
    future = queue.claim(asked)
    batch = queue.take()
    with pytest.raises(OutcomeUnknown):
        await asyncio.wait_for(future, 30)
    queue.settle([(batch.claims[0], Claimed(made))], "")
    (finish, _) = queue.take().finishes[0]
    assert (finish.turn, finish.state) == (made, "unknown")
    assert (await store.turns.finish(finish)).state == "unknown"
    assert isinstance(await store.turns.claim(asked), Claimed)  # so that a repeat runs


async def test_a_question_that_is_not_answered_is_refused_whoever_has_begun_with_it() -> None:
    queue = a_queue()
    asked = queue.poll()
    queue.take()
    with pytest.raises(Overloaded):
        await asyncio.wait_for(asked, 30)


async def test_what_ends_a_turn_waits_as_long_as_it_takes(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    queue = a_queue()
    ending, claim = queue.finish(a_finish(turn)), queue.claim(a_claim("r2"))
    await until_so(claim.done)
    assert isinstance(claim.exception(), Overloaded)
    assert not ending.done()
    (job,) = queue.take().finishes
    queue.settle([(job, turn)], "")
    assert await ending == turn


async def test_only_so_many_wait_and_what_ends_a_turn_is_taken_all_the_same(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    queue = a_queue(most_waiting=2)
    futures = [queue.claim(a_claim(f"r{number}")) for number in range(2)]
    with pytest.raises(Overloaded, match="2 writes are waiting"):
        queue.claim(a_claim("r9"))
    queue.finish(a_finish(turn)).cancel()
    for future in futures:
        future.cancel()


async def test_a_gateway_renews_its_lease_whatever_else_fails(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewed: list[Lease] = []

    async def renew(lease: Lease) -> None:
        renewed.append(lease)

    async def fail() -> int:
        raise Overloaded("the store is busy with others")

    monkeypatch.setattr(store._database, "renew", renew)  # noqa: SLF001
    monkeypatch.setattr(store._database, "changes", fail)  # noqa: SLF001
    monkeypatch.setattr(store, "_renewed", -1000.0)
    with pytest.raises(Overloaded):
        await store.upkeep()
    assert len(renewed) == 1
