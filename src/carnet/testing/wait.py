"""Waiting in a test for what another process, thread or task does.

Law. The bound is for a machine that is busy, never a measure of speed: what a test claims is what
     it sees, not how soon.
"""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar, overload

T = TypeVar("T")

PATIENCE_SECONDS: Final = 60.0
PAUSE_SECONDS: Final = 0.01
AT_ONCE: Final = 100  # looks with no pause, for what only waits for its turn on the loop


def until(
    look: Callable[[], T],
    holds: Callable[[T], object] = bool,
    *,
    seconds: float = PATIENCE_SECONDS,
    pause: float = PAUSE_SECONDS,
) -> T:
    """Look again and again until it holds; what was seen then."""
    deadline = time.monotonic() + seconds
    while not holds(seen := look()):
        assert time.monotonic() < deadline, f"it never came true; last seen: {seen!r}"
        time.sleep(pause)
    return seen


@overload
async def until_so(
    look: Callable[[], Awaitable[T]],
    holds: Callable[[T], object] = bool,
    *,
    seconds: float = PATIENCE_SECONDS,
    pause: float = PAUSE_SECONDS,
) -> T: ...


@overload
async def until_so(
    look: Callable[[], T],
    holds: Callable[[T], object] = bool,
    *,
    seconds: float = PATIENCE_SECONDS,
    pause: float = PAUSE_SECONDS,
) -> T: ...


async def until_so(
    look: Callable[[], Any],
    holds: Callable[[Any], object] = bool,
    *,
    seconds: float = PATIENCE_SECONDS,
    pause: float = PAUSE_SECONDS,
) -> Any:
    """The same in a coroutine: the loop runs on between two looks, which may be awaited."""
    deadline = time.monotonic() + seconds
    left = AT_ONCE
    while True:
        seen = look()
        if inspect.isawaitable(seen):
            seen, left = await seen, 0
        if holds(seen):
            return seen
        assert time.monotonic() < deadline, f"it never came true; last seen: {seen!r}"
        await asyncio.sleep(0 if left > 0 else pause)
        left -= 1
