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
) -> T:
    """Look again and again until it holds; what was seen then."""
    deadline = time.monotonic() + seconds
    while not holds(seen := look()):
        assert time.monotonic() < deadline, f"it never came true; last seen: {seen!r}"
        time.sleep(PAUSE_SECONDS)
    return seen


@overload
async def until_so(
    look: Callable[[], Awaitable[T]],
    holds: Callable[[T], object] = bool,
    *,
    seconds: float = PATIENCE_SECONDS,
) -> T: ...


@overload
async def until_so(
    look: Callable[[], T],
    holds: Callable[[T], object] = bool,
    *,
    seconds: float = PATIENCE_SECONDS,
) -> T: ...


async def until_so(
    look: Callable[[], Any],
    holds: Callable[[Any], object] = bool,
    *,
    seconds: float = PATIENCE_SECONDS,
) -> Any:
    """The same in a coroutine: the loop runs on between two looks, which may be awaited."""
    deadline = time.monotonic() + seconds
    looks = 0
    while not holds(seen := await _seen(look)):
        assert time.monotonic() < deadline, f"it never came true; last seen: {seen!r}"
        looks += 1
        await asyncio.sleep(0 if looks < AT_ONCE else PAUSE_SECONDS)
    return seen


async def _seen(look: Callable[[], Any]) -> Any:
    seen = look()
    return await seen if inspect.isawaitable(seen) else seen
