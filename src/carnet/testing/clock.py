"""A Clock that stands still until it is moved, and Ids that can be foretold.

Nothing here waits: `FakeClock.sleep` moves the time and notes by how much, so that a scene of
backoff and cooldown runs at once.
"""

import asyncio


class FakeClock:
    """Time that moves only when told to; all three clocks move together."""

    def __init__(self, *, wall_us: int = 1_800_000_000_000_000, monotonic: float = 1000.0) -> None:
        self._wall_us = wall_us
        self._monotonic = monotonic
        self._steady_us = wall_us
        self.slept: list[float] = []

    def wall_us(self) -> int:
        return self._wall_us

    def monotonic(self) -> float:
        return self._monotonic

    def steady_us(self) -> int:
        return self._steady_us

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._wall_us += round(seconds * 1_000_000)
        self._steady_us += round(seconds * 1_000_000)
        self._monotonic += seconds

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back, as an operator would; durations do not notice."""
        self._wall_us += round(seconds * 1_000_000)

    async def sleep(self, seconds: float) -> None:
        """Stand in for `asyncio.sleep`: the time passes at once. It can be cancelled as well."""
        self.slept.append(seconds)
        self.advance(seconds)
        await asyncio.sleep(0)


class FakeIds:
    """Ids counted from one, and one chance for every throw."""

    def __init__(self, *, fraction: float = 0.0) -> None:
        self._fraction = fraction
        self._drawn = 0

    def uuid(self) -> str:
        return f"00000000-0000-4000-8000-{self._next():012d}"

    def ordered_uuid(self) -> str:
        return self.uuid()

    def token(self) -> str:
        return f"token-{self._next():038d}"

    def fraction(self) -> float:
        return self._fraction

    def _next(self) -> int:
        self._drawn += 1
        return self._drawn
