"""An answer that is pushed, as an asynchronous iterator for whoever would rather pull.

Law 1. Only `MOST_WAITING` events wait between the two: a reader that is slow slows the answer.
Law 2. Whoever stops reading ends the answer.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Final

from carnet.core.messages.events import End, Event, Usage
from carnet.core.messages.output import Sink

MOST_WAITING: Final = 64


async def pulled(say: Callable[[Sink], Awaitable[End]]) -> AsyncGenerator[Event, None]:
    """The events of an answer and what it used, as they come, the last of them its end."""
    queue = _Queue()

    async def speak() -> None:
        queue.put(await say(queue))

    speaking = asyncio.get_running_loop().create_task(speak())
    speaking.add_done_callback(lambda _: queue.put(None))
    try:
        while (event := await queue.get()) is not None:
            yield event
        await speaking
    finally:
        speaking.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await speaking


class CollectedAnswer:
    """A Sink that keeps an answer until it is complete."""

    __slots__ = ("events", "used")

    def __init__(self) -> None:
        """Nothing has come yet."""
        self.events: list[Event] = []
        self.used: list[Usage] = []

    async def write(self, event: Event, /) -> None:
        """Keep an event."""
        self.events.append(event)

    def usage(self, usage: Usage, /) -> None:
        """Keep what was used."""
        self.used.append(usage)


class _Queue:
    """What has been said and not been read yet."""

    __slots__ = ("_events", "_room")

    def __init__(self) -> None:
        self._events: asyncio.Queue[tuple[Event | None, bool]] = asyncio.Queue()
        self._room = asyncio.Semaphore(MOST_WAITING)

    async def write(self, event: Event, /) -> None:
        await self._room.acquire()
        self._events.put_nowait((event, True))

    def usage(self, usage: Usage, /) -> None:
        self.put(usage)

    def put(self, event: Event | None) -> None:
        """Take what needs no room."""
        self._events.put_nowait((event, False))

    async def get(self) -> Event | None:
        """The next event; None when there is no more."""
        event, held_room = await self._events.get()
        if held_room:
            self._room.release()
        return event
