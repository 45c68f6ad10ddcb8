"""An Agent in a task of its own, so that whoever waits for it can always leave.

For agents that others wrote: they may swallow a cancellation or wait for ever on their way out.

Law 1. Leaving cancels the agent and waits a moment for it; one that does not end is let go, and
       what it still says is heard by nobody.
Law 2. An agent that ends by a cancellation nobody asked for has failed.
Law 3. A listener that is slow slows the agent: only `MOST_WAITING` events wait between the two, and
       a long text counts as many.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

from carnet.core.call import Call
from carnet.core.events import Event, Text
from carnet.errors import AgentFailed
from carnet.ports.agent import Agent
from carnet.runtime.answering import answer_of, answered
from carnet.runtime.closing import closing

logger = logging.getLogger("carnet.agent")

GRACE_SECONDS = 0.5
MOST_WAITING = 256
LONG_TEXT = 256  # characters


class Detached:
    """Runs an agent beside its listener."""

    def __init__(self, agent: Agent, *, grace_seconds: float = GRACE_SECONDS) -> None:
        """`grace_seconds` is what an agent has to end in when it is cancelled."""
        self._agent = agent
        self._answer = answer_of(agent)
        self.answer = None if self._answer is None else self._answer_beside
        self._grace_seconds = grace_seconds
        self._let_go: set[asyncio.Task[Any]] = set()

    async def __call__(self, call: Call, /) -> AsyncIterator[Event]:
        """Give the events as they come."""
        said: asyncio.Queue[Event | None] = asyncio.Queue()
        room = asyncio.Semaphore(MOST_WAITING)
        speaking = asyncio.get_running_loop().create_task(self._speak(call, said, room))
        speaking.add_done_callback(lambda _: said.put_nowait(None))
        try:
            while (event := await said.get()) is not None:
                for _ in range(_weight(event)):
                    room.release()
                yield event
            if speaking.cancelled():
                raise AgentFailed("it ended by a cancellation that nobody asked for")
            await speaking
        finally:
            await self._leave(speaking, call)

    async def _answer_beside(self, call: Call, /) -> list[Event]:
        """The same for an answer in one piece."""
        loop = asyncio.get_running_loop()
        ended = loop.create_future()
        speaking = loop.create_task(answered(self._answer, call))
        speaking.add_done_callback(lambda _: None if ended.done() else ended.set_result(None))
        try:
            await ended
            if speaking.cancelled():
                raise AgentFailed("it ended by a cancellation that nobody asked for")
            return speaking.result()
        finally:
            await self._leave(speaking, call)

    async def _speak(
        self, call: Call, said: "asyncio.Queue[Event | None]", room: asyncio.Semaphore
    ) -> None:
        async with closing(self._agent(call)) as events:
            async for event in events:
                for _ in range(_weight(event)):
                    await room.acquire()
                said.put_nowait(event)

    async def _leave(self, speaking: "asyncio.Task[Any]", call: Call) -> None:
        if speaking.done():
            return
        speaking.cancel()
        await asyncio.wait([speaking], timeout=self._grace_seconds)
        if speaking.done():
            _heard(speaking)
            return
        carnet = call.carnet
        extra = {"run": carnet.run, "turn": carnet.turn, "agent": call.agent}
        logger.warning("the agent ignores its cancellation and is let go", extra=extra)
        self._let_go.add(speaking)
        speaking.add_done_callback(self._let_go.discard)
        speaking.add_done_callback(_heard)


def _weight(event: Event) -> int:
    if type(event) is Text and len(event.text) > LONG_TEXT:
        return min(MOST_WAITING, len(event.text) // LONG_TEXT)
    return 1


def _heard(task: "asyncio.Task[Any]") -> None:
    """Take note of how a task ended that nobody waits for."""
    if not task.cancelled():
        task.exception()
