"""Stopping a loop: what is cancelled, and what is not swallowed."""

import asyncio

import pytest

from carnet.core.messages.events import Done
from carnet.engine.stop import LoopStop


async def test_the_first_reason_counts() -> None:
    stop = LoopStop()
    assert stop.end is None
    stop.ask("cancelled")
    stop.ask("shutting_down")
    assert stop.end == Done("cancelled")


async def test_asked_as_its_work_ends_it_cancels_nobody_afterwards() -> None:
    stop = LoopStop()
    async with stop:
        stop.ask("cancelled")
    await asyncio.sleep(0)
    assert stop.end == Done("cancelled")


async def test_asked_when_it_is_over_it_cancels_nobody() -> None:
    stop = LoopStop()
    async with stop:
        pass
    stop.ask("cancelled")
    await asyncio.sleep(0)


async def test_an_error_that_came_first_stays_one() -> None:
    stop = LoopStop()

    async def work() -> None:
        async with stop:
            stop.ask("cancelled")
            raise ValueError("first")

    with pytest.raises(ValueError, match="first"):
        await work()
    await asyncio.sleep(0)


async def test_who_is_cancelled_by_both_is_cancelled() -> None:
    stop, begun = LoopStop(), asyncio.Event()

    async def work() -> None:
        async with stop:
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.ensure_future(work())
    await begun.wait()
    stop.ask("cancelled")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
