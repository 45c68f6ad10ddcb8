"""What ends a dialogue from outside: an abort, and the end of its time; and of one attempt.

Law 1. The first of them counts.
Law 2. Whoever waits for something else is woken by it.
"""

import asyncio
from typing import Literal


class DialogueStop:
    """Whether a dialogue has to stop. Used and closed within one event loop."""

    def __init__(self, abort: asyncio.Event | None, seconds: float | None) -> None:
        """`abort` is set by whoever started it; `seconds` are what it has left."""
        loop = asyncio.get_running_loop()
        self.kind: Literal["abort", "deadline"] | None = None
        self._event = asyncio.Event()
        self._waiter: asyncio.Event | None = None
        self._abort = abort
        self._timer: asyncio.TimerHandle | None = None
        self._watch: asyncio.Task[object] | None = None
        if seconds is not None:
            self._timer = loop.call_later(max(0.0, seconds), self._stop, "deadline")
        if abort is not None:
            self._watch = loop.create_task(abort.wait())
            self._watch.add_done_callback(self._aborted)

    def look(self) -> Literal["abort", "deadline"] | None:
        """Why it has to stop, if it has to."""
        if self.kind is None and self._abort is not None and self._abort.is_set():
            self._stop("abort")
        return self.kind

    def wake(self, waiter: asyncio.Event) -> None:
        """Set this as well when it comes to a stop."""
        self._waiter = waiter
        if self.kind is not None:
            waiter.set()

    async def sleep(self, seconds: float) -> None:
        """Wait, at the most until it comes to a stop."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return

    def close(self) -> None:
        """Watch no more."""
        if self._timer is not None:
            self._timer.cancel()
        if self._watch is not None:
            self._watch.cancel()

    def _aborted(self, watch: "asyncio.Task[object]") -> None:
        if not watch.cancelled():
            self._stop("abort")

    def _stop(self, kind: Literal["abort", "deadline"]) -> None:
        if self.kind is None:
            self.kind = kind
        self._event.set()
        if self._waiter is not None:
            self._waiter.set()


class Late:
    """Whether the time of an attempt is over."""

    def __init__(self, seconds: float | None, waiter: asyncio.Event) -> None:
        """`waiter` is woken when it is; without a time it never is."""
        self.is_late = False
        self._waiter = waiter
        self._timer: asyncio.TimerHandle | None = None
        if seconds is not None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._ring)

    def close(self) -> None:
        """Wait no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _ring(self) -> None:
        self.is_late = True
        self._waiter.set()
