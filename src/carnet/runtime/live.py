"""A turn that is running here, and those who read it.

Law 1. A reader sees the events from the first, in the batches they were committed in, then live,
       then the same end as everybody else.
Law 2. When the last reader has gone, `on_empty` is told once; it may end the turn.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

from carnet.core.events import Event


class Live:
    """The committed events of one running turn."""

    __slots__ = ("_batches", "_on_empty", "_waiters", "ended", "readers")

    def __init__(self, on_empty: Callable[[], None]) -> None:
        """`on_empty` is called when nobody reads any more and the turn has not ended."""
        self._batches: list[Sequence[Event]] = []
        self._waiters: list[asyncio.Future[None]] = []
        self._on_empty = on_empty
        self.readers = 0
        self.ended = False

    def publish(self, batch: Sequence[Event], *, last: bool = False) -> None:
        """Show a committed batch to every reader."""
        self._batches.append(batch)
        self.ended = last
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def read(self, heartbeat: float | None = None) -> AsyncGenerator[Sequence[Event], None]:
        """The batches from the first; an empty one when `heartbeat` seconds pass in silence."""
        self.readers += 1
        position = 0
        try:
            while True:
                while position < len(self._batches):
                    batch = self._batches[position]
                    position += 1
                    yield batch
                if self.ended:
                    return
                if not await self._changed(heartbeat):
                    yield ()
        finally:
            self.readers -= 1
            if not self.readers and not self.ended:
                self._on_empty()

    async def _changed(self, heartbeat: float | None) -> bool:
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self._waiters.append(waiter)
        timer = loop.call_later(heartbeat, waiter.cancel) if heartbeat else None
        try:
            await waiter
        except asyncio.CancelledError:
            # The timer cancels the waiter; whoever cancels the reader cancels its task as well.
            task = asyncio.current_task()
            if task is None or task.cancelling() or not waiter.cancelled():
                raise
            return False
        finally:
            if timer is not None:
                timer.cancel()
        return True
