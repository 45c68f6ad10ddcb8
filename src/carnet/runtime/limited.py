"""An Agent that answers only so many calls at once.

Law. Those beyond wait in order, and not for ever; past `queue` of them the call is refused instead.
     A task waits as long as it must: nobody stands at the door for it.
"""

import asyncio
from collections.abc import AsyncIterator

from carnet.core.call import Call
from carnet.core.events import Event
from carnet.errors import Overloaded
from carnet.ports.agent import Agent
from carnet.runtime.answering import answer_of, answered
from carnet.runtime.closing import closing

WAIT_SECONDS = 30.0


class Limited:
    """At most `concurrency` calls of one agent at a time."""

    def __init__(
        self, agent: Agent, *, concurrency: int, queue: int, seconds: float = WAIT_SECONDS
    ) -> None:
        """`queue` bounds how many may wait, `seconds` how long each of them does."""
        self._agent = agent
        self._answer = answer_of(agent)
        self.answer = None if self._answer is None else self._answer_in_turn
        self._free = asyncio.Semaphore(concurrency)
        self._waiting = 0
        self._queue = queue
        self._seconds = seconds

    async def __call__(self, call: Call, /) -> AsyncIterator[Event]:
        """Wait for a place, then answer."""
        await self._enter(call)
        try:
            async with closing(self._agent(call)) as events:
                async for event in events:
                    yield event
        finally:
            self._free.release()

    async def _answer_in_turn(self, call: Call, /) -> list[Event]:
        """The same for an answer in one piece."""
        await self._enter(call)
        try:
            return await answered(self._answer, call)
        finally:
            self._free.release()

    async def _enter(self, call: Call) -> None:
        is_patient = call.task is not None or not self._free.locked()
        if self._waiting >= self._queue and call.task is None:
            raise Overloaded(retry_after=1)
        self._waiting += 1
        try:
            async with asyncio.timeout(None if is_patient else self._seconds):
                await self._free.acquire()
        except TimeoutError:
            raise Overloaded(f"no place within {self._seconds:g} s", retry_after=1) from None
        finally:
            self._waiting -= 1
