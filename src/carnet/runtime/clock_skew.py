"""Noticing that the wall clock of the machine was set.

Nothing here waits by the wall clock, so setting it does no harm to a call. It does move what
depends on the time of day (tokens that expire, retention, windows); an operator should know why.

Law 1. Each look is compared with the one before: a clock that is slowly corrected is not reported.
Law 2. Each time it is set is a line of its own, however alike: it tells what the clock says then.
"""

import asyncio
import logging
from typing import Final, NoReturn

from carnet.ports.world.clock import Clock
from carnet.wire.grammar.times import when

logger = logging.getLogger("carnet.clock")

LOOK_SECONDS: Final = 0.5
SMALLEST_SECONDS: Final = 1.0


class ClockSkew:
    """Compares the wall clock with the monotonic clock."""

    def __init__(self, clock: Clock) -> None:
        """Begin with how far apart they are now."""
        self._clock = clock
        self._apart_us = self._apart()

    def _apart(self) -> int:
        return self._clock.wall_us() - self._clock.steady_us()

    def look(self) -> float:
        """By how many seconds the wall clock was set since the last look; 0 if it was not."""
        before, self._apart_us = self._apart_us, self._apart()
        seconds = (self._apart_us - before) / 1_000_000
        if abs(seconds) < SMALLEST_SECONDS:
            return 0.0
        logger.warning(
            "clock skew: the wall clock was set %s",
            "forward" if seconds > 0 else "back",
            extra={
                "code": "clock_skew",
                "seconds": round(seconds, 3),
                "detail": f"it says {when(self._clock.wall_us())} now",
            },
        )
        return seconds


async def watch_clock_skew(clock: Clock) -> NoReturn:
    """Look for as long as the gateway runs."""
    skew = ClockSkew(clock)
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        skew.look()
