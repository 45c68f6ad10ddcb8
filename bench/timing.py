"""How long a step takes, on the CPU.

Law 1. What runs in one thread is timed there; what also works in others (the store, the log) is
       timed for the whole process.
Law 2. What shares its work between callers is timed with CALLERS of them at once.
Law 3. A figure is the median of ROUNDS rounds after one that does not count. It is in seconds.
"""

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable

CALLERS = 64
ROUNDS = 7
STEPS = 1000  # of one round of what runs alone
TURNS = 16  # of each caller, in one round of what runs with others


def alone(step: Callable[[], object]) -> float:
    """A step that this thread does by itself."""
    times = []
    for _ in range(ROUNDS + 1):
        begun = time.thread_time_ns()
        for _ in range(STEPS):
            step()
        times.append(time.thread_time_ns() - begun)
    return _middle(times, STEPS)


async def alone_awaited(step: Callable[[], Awaitable[object]]) -> float:
    """The same for a coroutine that waits for nothing."""
    times = []
    for _ in range(ROUNDS + 1):
        begun = time.thread_time_ns()
        for _ in range(STEPS):
            await step()
        times.append(time.thread_time_ns() - begun)
    return _middle(times, STEPS)


async def together(
    step: Callable[[], Awaitable[object]], before: Callable[[int], None] = lambda _: None
) -> float:
    """A step of many callers in a closed loop; `before` is told how many come, and is not timed."""

    async def caller() -> None:
        for _ in range(TURNS):
            await step()

    times, number = [], CALLERS * TURNS
    for _ in range(ROUNDS + 1):
        before(number)
        begun = time.process_time_ns()
        await asyncio.gather(*(caller() for _ in range(CALLERS)))
        times.append(time.process_time_ns() - begun)
    return _middle(times, number)


async def with_thread(
    step: Callable[[], object], is_done: Callable[[], bool], *, steps: int, rest: float
) -> float:
    """A step that leaves work to another thread, which is over `rest` seconds after `is_done`."""
    times = []
    for _ in range(ROUNDS + 1):
        begun = time.process_time_ns()
        for _ in range(steps):
            step()
        while not is_done():  # noqa: ASYNC110 - the other thread sets no event
            await asyncio.sleep(rest)
        await asyncio.sleep(rest)
        times.append(time.process_time_ns() - begun)
    return _middle(times, steps)


def _middle(times: list[int], steps: int) -> float:
    return statistics.median(times[1:]) / steps / 1e9
