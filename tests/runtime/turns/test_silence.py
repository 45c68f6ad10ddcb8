"""Who waits is told of silence, by one timer for all."""

import asyncio

from carnet.runtime.turns.silence import EARLY_SECONDS, Silence, Waiter, silence_of

LONG = 3600.0


def waiters(count: int) -> list[Waiter]:
    loop = asyncio.get_running_loop()
    return [loop.create_future() for _ in range(count)]


async def test_whoever_received_nothing_is_told_and_whoever_has_time_is_not() -> None:
    silence = Silence(asyncio.get_running_loop())
    patient, first, second = waiters(3)
    silence.watch(patient, LONG)
    silence.watch(first, 0.02)  # before the look that was planned
    silence.watch(second, 0.01)
    assert [await first, await second] == [False, False]
    assert not patient.done()


async def test_those_whose_time_is_near_are_told_by_the_same_look() -> None:
    silence = Silence(asyncio.get_running_loop())
    first, near, far = waiters(3)
    silence.watch(first, 0.01)
    silence.watch(near, EARLY_SECONDS)
    silence.watch(far, 2 * EARLY_SECONDS)
    assert not await first
    assert (near.done(), far.done()) == (True, False)
    assert not await far


async def test_what_has_come_or_is_forgotten_is_left_alone() -> None:
    silence = Silence(asyncio.get_running_loop())
    received, gone, cancelled, waiting = waiters(4)
    for waiter in (received, gone, cancelled, waiting):
        silence.watch(waiter, 0.01)
    received.set_result(True)
    silence.forget(gone)
    silence.forget(gone)
    cancelled.cancel()
    assert not await waiting
    assert received.result()
    assert not gone.done()
    assert cancelled.cancelled()


async def test_an_event_loop_has_one() -> None:
    loop = asyncio.get_running_loop()
    assert silence_of(loop) is silence_of(loop)
    assert silence_of(loop).loop is loop
