"""The small stand-ins behave as what they stand for."""

import asyncio

import pytest

from carnet.gateway.exchange import Disconnected, Watch
from carnet.gateway.light import Few, Line, Signal


async def test_a_signal_wakes_all_who_wait_and_lets_the_next_pass() -> None:
    signal = Signal()
    waiting = [asyncio.create_task(signal.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    signal.set()
    await asyncio.gather(*waiting[1:])
    await signal.wait()
    with pytest.raises(asyncio.CancelledError):
        await waiting[0]


async def test_a_signal_that_was_cleared_before_the_waiter_ran_makes_it_wait_on() -> None:
    signal = Signal(is_set=True)
    signal.clear()
    waiting = asyncio.create_task(signal.wait())
    await asyncio.sleep(0)
    signal.set()
    signal.clear()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not waiting.done()
    signal.set()
    await waiting


def test_a_few_are_taken_from_both_ends() -> None:
    few = Few[int]()
    assert not few
    few.appendleft(1)
    few.appendleft(2)
    few.appendleft(3)
    assert (few.pop(), few.popleft(), list(few)) == (1, 3, [2])


async def test_a_client_that_goes_away_cancels_who_watches_it() -> None:
    line = Line()
    asyncio.get_running_loop().call_soon(line.go)
    with pytest.raises(Disconnected), Watch(line):
        await asyncio.sleep(60)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_client_that_has_gone_before_is_noticed_at_the_first_wait() -> None:
    line = Line()
    line.go()
    with pytest.raises(Disconnected), Watch(line):
        await asyncio.sleep(60)


async def test_a_client_that_goes_away_later_is_nobodys_business() -> None:
    line = Line()
    with Watch(line):
        await asyncio.sleep(0)
    line.go()
    await asyncio.sleep(0)


async def test_a_cancellation_by_others_stays_one() -> None:
    async def watched() -> None:
        with Watch(Line()):
            await asyncio.sleep(60)

    task = asyncio.create_task(watched())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
