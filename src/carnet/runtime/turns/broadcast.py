"""A turn that is running here, and those who read it.

Law 1. A reader sees the events from the first, in the batches they were committed in, then live,
       then the same end as everybody else.
Law 2. When the last reader has gone, `on_empty` is told once; it may end the turn.
Law 3. An agent is as fast as its fastest reader: only `MOST_AHEAD` bytes are shown that nobody has
       taken. A slower reader falls behind and holds up nobody else.
Law 4. A turn that runs on says everything again, from its first event. Who was shown a part of it
       is shown the rest; if it says something else now, that one's answer is unknown, and what it
       says is kept for who asks again.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Final

from carnet.core.messages.events import Event, Failed, Usage, is_terminal
from carnet.core.messages.shown import Shown
from carnet.errors import OutcomeUnknown
from carnet.runtime.stream import closing
from carnet.runtime.turns.silence import Waiter, silence_of

MOST_AHEAD = 64 * 1024
_UNKNOWN: Final[Sequence[Event]] = (Usage(), Failed.of(OutcomeUnknown()))


class Broadcast:
    """The committed events of one running turn."""

    __slots__ = (
        "_batches",
        "_ends",
        "_on_empty",
        "_room",
        "_shown",
        "_taken",
        "_waiters",
        "ended",
        "readers",
    )

    def __init__(self, on_empty: Callable[[], None]) -> None:
        """`on_empty` is called when nobody reads any more and the turn has not ended."""
        self._batches: list[Sequence[Event]] = []
        self._ends: list[int] = []  # how many bytes were shown with each batch
        self._shown = 0
        self._taken = 0  # by the fastest reader
        self._room: asyncio.Future[None] | None = None
        self._waiters: list[Waiter] = []
        self._on_empty: Callable[[], None] | None = on_empty
        self.readers = 0
        self.ended = False

    def publish(self, batch: Sequence[Event], *, size: int = 0, last: bool = False) -> None:
        """Show a committed batch of so many bytes to every reader."""
        self._batches += (batch,)
        self._shown += size
        self._ends += (self._shown,)
        if last:
            self.ended = True
            self._on_empty = None  # it holds the execution, which holds us
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(True)

    async def read(self, heartbeat: float | None = None) -> AsyncGenerator[Sequence[Event], None]:
        """The batches from the first; an empty one when `heartbeat` seconds pass in silence."""
        loop = asyncio.get_running_loop()
        silence = None if heartbeat is None else silence_of(loop)
        self.readers += 1
        position = 0
        try:
            while True:
                while position < len(self._batches):
                    yield self._batches[position]
                    self._take(self._ends[position])
                    position += 1
                if self.ended:
                    return
                # It waits here and in no function within: a silent stream holds every frame.
                waiter: Waiter = loop.create_future()
                self._waiters += (waiter,)
                if silence is not None and heartbeat is not None:
                    silence.watch(waiter, heartbeat)
                try:
                    has_more = await waiter
                finally:
                    if silence is not None:
                        silence.forget(waiter)
                if not has_more:
                    self._waiters = [other for other in self._waiters if other is not waiter]
                    yield ()
        finally:
            self._let_go()

    async def whole(self) -> Sequence[Event]:
        """All events, when the last one is there: for the reader of a turn that has just begun."""
        self.readers += 1
        try:
            while not self.ended:
                waiter: Waiter = asyncio.get_running_loop().create_future()
                self._waiters += (waiter,)
                await waiter
        finally:
            self._let_go()
        match self._batches:
            case [only]:
                return only
            case batches:
                return [event for batch in batches for event in batch]

    async def retell(self, to: "Broadcast") -> None:
        """Show there what is shown here, but for what was shown there before (law 4)."""
        shown, place = to.shown(), 0
        async with closing(self.read()) as batches:
            async for batch in batches:
                size = self._ends[place] - (self._ends[place - 1] if place else 0)
                place += 1
                rest = [] if to.ended else shown.rest(batch)
                if rest is None:
                    to.publish(_UNKNOWN, last=True)
                elif rest:
                    to.publish(rest, size=size, last=is_terminal(rest[-1]))
                    await to.room()

    def shown(self) -> Shown:
        """What was shown so far."""
        return Shown([event for batch in self._batches for event in batch])

    @property
    def is_ahead(self) -> bool:
        """Whether more is shown than anybody has taken for a while."""
        return self._shown - self._taken > MOST_AHEAD and self.readers > 0

    async def room(self) -> None:
        """Wait until somebody has taken more, or nobody is left to wait for."""
        while self.is_ahead:
            self._room = asyncio.get_running_loop().create_future()
            await self._room

    def _let_go(self) -> None:
        self.readers -= 1
        if self._room is not None:
            self._make_room()
        if not self.readers and self._on_empty is not None:
            self._on_empty()

    def _take(self, end: int) -> None:
        if end > self._taken:
            self._taken = end
            self._make_room()

    def _make_room(self) -> None:
        if self._room is not None and not self._room.done():
            self._room.set_result(None)
