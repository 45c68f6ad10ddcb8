"""The watchdog of the event loop, on a loop that is really held."""

import asyncio
import gc
import inspect
import logging
import sys
import threading
import time

import pytest
import uvloop

from carnet.runtime.watchdog import BEAT_SECONDS, HELD_SECONDS, Watchdog, runner_of


def work(seconds: float) -> None:
    """Work for so long, by the clock of this thread."""
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        pass


async def test_work_that_holds_the_loop_is_counted_and_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    held: list[float] = []
    with caplog.at_level(logging.WARNING), Watchdog(held.append):
        await asyncio.sleep(0)
        work(BEAT_SECONDS + 2 * HELD_SECONDS)
        while not held:  # noqa: ASYNC110  the beat is a timer of this loop
            await asyncio.sleep(BEAT_SECONDS)
    assert len(held) == 1
    assert held[0] > HELD_SECONDS
    (line,) = [record for record in caplog.records if record.name == "carnet.loop"]
    assert "work" in vars(line)["detail"]
    assert vars(line)["cpu"] > HELD_SECONDS


async def test_a_loop_that_goes_round_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    held: list[float] = []
    with caplog.at_level(logging.WARNING), Watchdog(held.append):
        for _ in range(50):
            work(HELD_SECONDS / 50)
            await asyncio.sleep(0)
    times = [vars(record)["cpu"] for record in caplog.records if record.name == "carnet.loop"]
    assert [cpu for cpu in times if cpu > HELD_SECONDS] == []


async def test_nothing_is_left_of_it() -> None:
    before = list(gc.callbacks)
    with Watchdog(lambda _: None):
        assert len(gc.callbacks) == len(before) + 1
    assert gc.callbacks == before


def test_a_loop_that_waits_shows_what_runs_it_and_nothing_else() -> None:
    loop, thread = uvloop.new_event_loop(), threading.get_ident()

    def look(runner: object) -> None:
        while sys._current_frames()[thread].f_code is not runner:  # noqa: SLF001  as it looks
            time.sleep(0)  # until the loop has gone to rest

    async def rest() -> None:
        runner = runner_of(inspect.currentframe())
        assert runner is run.__code__
        await asyncio.to_thread(look, runner)

    def run() -> None:
        loop.run_until_complete(rest())

    run()
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
