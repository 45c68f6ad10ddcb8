"""Who is told when nothing has come for a while: a future for each of them, one timer for all.

A timer of the event loop takes half a kilobyte, and an open stream that is silent would hold one.

Law 1. A waiter that is told is given False, at the most `EARLY_SECONDS` before its time: so many
       that wait are told by few looks.
Law 2. Whoever watches forgets, whatever has ended the wait.
"""

import asyncio
from typing import Final

EARLY_SECONDS: Final = 0.5

Waiter = asyncio.Future[bool]


class Silence:
    """Everybody who waits in one event loop, and the next look at them."""

    __slots__ = ("_next", "_timer", "_waiting", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Nobody waits yet."""
        self.loop = loop
        self._waiting: dict[Waiter, float] = {}  # until when
        self._next = float("inf")
        self._timer: asyncio.TimerHandle | None = None

    def watch(self, waiter: Waiter, seconds: float) -> None:
        """Give it False if nobody has given it anything by then."""
        self._waiting[waiter] = until = self.loop.time() + seconds
        if until < self._next:
            self._expect(until)

    def forget(self, waiter: Waiter) -> None:
        """It waits no more."""
        self._waiting.pop(waiter, None)

    def _expect(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._next = at
        self._timer = self.loop.call_at(at, self._look)

    def _look(self) -> None:
        self._timer, self._next = None, float("inf")
        now = self.loop.time()
        for waiter in [one for one, until in self._waiting.items() if until <= now + EARLY_SECONDS]:
            del self._waiting[waiter]
            if not waiter.done():
                waiter.set_result(False)
        if self._waiting:
            self._expect(min(self._waiting.values()))


_latest: list[Silence] = []  # of the loop that runs; a process has one, tests have many in turn


def silence_of(loop: asyncio.AbstractEventLoop) -> Silence:
    """The one of this event loop."""
    if not _latest or _latest[0].loop is not loop:
        _latest[:] = [Silence(loop)]
    return _latest[0]
