"""The clock of a test's event loop, which can be set forward."""

import asyncio


class LoopClock:
    """Of the loop that runs, for all that waits in it from now on."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._now = self._loop.time
        self._ahead = 0.0
        self._loop.time = self._time  # type: ignore[method-assign]

    async def sleep(self, seconds: float) -> None:
        """Sleep so long, which is over at once; so is whatever would have ended before."""
        self._loop.call_soon(self._forward, seconds)
        await asyncio.sleep(seconds)

    def _time(self) -> float:
        return self._now() + self._ahead

    def _forward(self, seconds: float) -> None:
        self._ahead += seconds
