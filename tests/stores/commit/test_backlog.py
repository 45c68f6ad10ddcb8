"""Of one caller, a batch holds its share; nobody waits for what another has queued (A99)."""

import asyncio
from itertools import count
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carnet.core.people.identity import Payer
from carnet.errors import Overloaded
from carnet.stores.commit.backlog import SHARE, UNIT_BYTES, Backlog
from carnet.stores.commit.batch import Job
from carnet.testing.wait import until_so
from tests.stores.commit.test_queue import a_queue
from tests.stores.support.scenes import ALICE, a_claim

_serial = count()


def jobs(loop: asyncio.AbstractEventLoop, caller: str, number: int, size: int = 0) -> list[Job]:
    return [((caller, size, next(_serial)), loop.create_future()) for _ in range(number)]


def a_backlog() -> Backlog:
    return Backlog(lambda payload: payload[:2])


def callers(taken: list[Job]) -> list[str]:
    return [payload[0] for payload, _ in taken]


async def test_who_has_queued_much_is_given_its_share_of_each_batch() -> None:
    loop, backlog = asyncio.get_running_loop(), a_backlog()
    greedy, modest = jobs(loop, "greedy", 2 * SHARE + 3), jobs(loop, "modest", 2)
    assert backlog.share(greedy + modest) == greedy[:SHARE] + modest
    late, later = jobs(loop, "greedy", 1), jobs(loop, "modest", 1)
    assert backlog.share(late + later) == greedy[SHARE : 2 * SHARE] + later
    assert backlog.share([]) == greedy[2 * SHARE :] + late
    assert (backlog.share([]), backlog.waiting) == ([], set())


async def test_what_is_large_counts_for_more_and_goes_alone() -> None:
    loop, backlog = asyncio.get_running_loop(), a_backlog()
    large = jobs(loop, "one", 2, UNIT_BYTES * SHARE * 4)
    half = jobs(loop, "two", 3, UNIT_BYTES * (SHARE // 2 - 1))
    assert backlog.share(large + half) == [large[0], *half[:2]]
    assert backlog.share([]) == [large[1], half[2]]


async def test_all_of_it_can_be_had_at_once() -> None:
    loop, backlog = asyncio.get_running_loop(), a_backlog()
    greedy = jobs(loop, "greedy", SHARE + 5)
    backlog.share(greedy)
    assert backlog.rest() == greedy[SHARE:]
    assert (backlog.share([]), backlog.waiting) == ([], set())


@given(st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=60)))
def test_every_job_comes_once_and_those_of_a_caller_in_their_order(
    arrivals: list[list[tuple[str, int]]],
) -> None:
    loop = asyncio.new_event_loop()
    backlog, taken = a_backlog(), list[Job]()
    sent: list[Job] = []
    for some in [*arrivals, *[[]] * 200]:
        new = [job for caller, units in some for job in jobs(loop, caller, 1, units * UNIT_BYTES)]
        sent += new
        batch = backlog.share(new)
        assert all(callers(batch).count(caller) <= SHARE for caller in "abc")
        taken += batch
    loop.close()
    for caller in "abc":
        assert [job for job in taken if job[0][0] == caller] == [
            job for job in sent if job[0][0] == caller
        ]


async def test_a_claim_that_waits_behind_its_callers_others_is_refused_and_never_made() -> None:
    queue = a_queue()
    bob = queue.claim(a_claim("bob", payer=replace(ALICE, quota="token:bob")))
    alice = queue.claim(a_claim())
    queue.settle([(job, None) for job in queue.take().claims], "")
    assert bob.done()  # so that there are two
    assert alice.done()
    futures = [queue.claim(a_claim(f"a{number}")) for number in range(2 * SHARE)]
    begun = queue.take()
    assert [future for _, future in begun.claims] == futures[:SHARE]
    assert not queue.is_empty
    await until_so(lambda: all(future.done() for future in futures))
    assert isinstance(futures[-1].exception(), Overloaded)  # and not unknown, as those begun with
    queue.settle([(job, None) for job in begun.claims], "")
    left = queue.take()
    assert len(left.cancelled()) == SHARE
    assert left.claims == []
    for future in futures[:SHARE]:
        future.exception()


async def test_who_writes_alone_has_whole_batches_and_beside_others_its_share() -> None:
    queue = a_queue(1000)
    bob = replace(ALICE, quota="token:bob")
    futures: list[asyncio.Future[Any]] = []

    def ask(payer: Payer, number: int) -> None:
        names = [f"r{len(futures) + at}" for at in range(number)]
        futures.extend(queue.claim(a_claim(name, payer=payer)) for name in names)

    ask(ALICE, 3 * SHARE)
    assert len(queue.take().claims) == 3 * SHARE
    ask(ALICE, 3 * SHARE)
    assert len(queue.take().claims) == 3 * SHARE  # nobody was there before her
    ask(ALICE, 3 * SHARE)
    ask(bob, 1)
    queue.take()  # from now on there are two
    ask(ALICE, 3 * SHARE)
    ask(bob, 1)
    batch = queue.take().claims
    assert len(batch) == SHARE + 1
    assert futures[-1] in [future for _, future in batch]
    ask(bob, 1)
    assert len(queue.take().claims) == SHARE + 1
    for future in futures:
        future.cancel()
