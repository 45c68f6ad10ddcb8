"""An Agent that answers only so many calls at once.

Law. Those beyond wait in order, and not for ever; past `queue` of them the call is refused instead.
     A task waits as long as it must: no connection is held open for it.
"""

import asyncio

from carnet.core.call import Call
from carnet.core.messages.events import End
from carnet.core.messages.output import Output
from carnet.errors import Overloaded
from carnet.ports.calls.agent import Agent

WAIT_SECONDS = 30.0


class Places:
    """The places of one agent, shared by all who call it."""

    def __init__(self, concurrency: int, *, queue: int, seconds: float = WAIT_SECONDS) -> None:
        """`queue` bounds how many may wait, `seconds` how long each of them does."""
        self._free = asyncio.Semaphore(concurrency)
        self._waiting = 0
        self._queue = queue
        self._seconds = seconds

    def leave(self) -> None:
        """Give a place back."""
        self._free.release()

    async def enter(self, call: Call) -> None:
        """Wait for a place, or raise Overloaded."""
        is_patient = call.is_queued or not self._free.locked()
        if self._waiting >= self._queue and not call.is_queued:
            raise Overloaded(retry_after=1)
        self._waiting += 1
        try:
            async with asyncio.timeout(None if is_patient else self._seconds):
                await self._free.acquire()
        except TimeoutError:
            raise Overloaded(f"no place within {self._seconds:g} s", retry_after=1) from None
        finally:
            self._waiting -= 1


class Limited:
    """An agent that answers only as many calls at a time as it has places."""

    def __init__(self, agent: Agent, places: Places) -> None:
        """Whoever shares the places shares the limit."""
        self._agent = agent
        self._places = places

    async def __call__(self, call: Call, out: Output, /) -> End:
        """Wait for a place, then answer."""
        await self._places.enter(call)
        try:
            return await self._agent(call, out)
        finally:
            self._places.leave()
