"""An Agent that answers only so many calls at once.

Law. Those beyond wait in order; past `queue` of them the call is refused instead.
"""

import asyncio
from collections.abc import AsyncIterator

from carnet.core.call import Call
from carnet.core.events import Event
from carnet.errors import Overloaded
from carnet.ports.agent import Agent
from carnet.runtime.closing import closing


class Limited:
    """At most `concurrency` calls of one agent at a time."""

    def __init__(self, agent: Agent, *, concurrency: int, queue: int) -> None:
        """`queue` bounds how many may wait."""
        self._agent = agent
        self._free = asyncio.Semaphore(concurrency)
        self._waiting = 0
        self._queue = queue

    async def __call__(self, call: Call, /) -> AsyncIterator[Event]:
        """Wait for a place, then answer."""
        if self._waiting >= self._queue:
            raise Overloaded(retry_after=1)
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1
        try:
            async with closing(self._agent(call)) as events:
                async for event in events:
                    yield event
        finally:
            self._free.release()
