"""Deadlines over many waits, at the price of one timer for all of them.

Making a deadline and moving it set a number; one look at the earliest of them all is planned, and
whoever has reached his is told. What happens then is the cancelling of the task that waits, or
whatever `on_end` is set to.

Law 1. Only a task that waits is cancelled, never one that is busy elsewhere with what it was given.
Law 2. A cancellation of ours is undone by `took`; one that somebody else asked for stays.
"""

import asyncio
from collections.abc import Callable
from typing import Final

_BETWEEN_LOOKS: Final = 0.005  # so that many deadlines close to one another cost one look


class Deadlines:
    """When one wait must end, and all of them. Must be stopped; made within the event loop."""

    __slots__ = ("_cancelling", "_end", "_sweep", "_task", "deadline", "ended", "on_end")

    def __init__(self, seconds: float, on_end: Callable[[], None] | None = None) -> None:
        """Wait `seconds` in all, then tell `on_end`."""
        loop = asyncio.get_running_loop()
        sweep = _latest[0] if _latest and _latest[0].loop is loop else _new_sweep(loop)
        self._sweep = sweep
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self.ended = False
        self.on_end = on_end
        self._end = self.deadline = deadline = sweep.time() + seconds
        sweep.waiting.add(self)
        if deadline < sweep.next:
            sweep.expect(deadline)

    def attend(self) -> None:
        """The current task waits from now on."""
        self._task = task = asyncio.current_task(self._sweep.loop)
        self._cancelling = 0 if task is None else task.cancelling()

    def rest(self) -> None:
        """Nobody waits: only the end of all counts."""
        self._task = None
        self.deadline = self._end

    def allow(self, seconds: float) -> bool:
        """Wait this long from now, and not beyond the end of all; False if that is over."""
        sweep, end = self._sweep, self._end
        now = sweep.time()
        deadline = now + seconds
        self.deadline = deadline = min(end, deadline)
        if deadline < sweep.next:
            sweep.expect(deadline)
        return deadline > now and not self.ended

    def left(self) -> float:
        """Seconds until the end of all."""
        return max(0.0, self._end - self._sweep.time())

    def took(self) -> bool:
        """Whether the cancellation at hand is ours alone; then it is undone."""
        task = self._task
        return self.ended and task is not None and task.uncancel() <= self._cancelling

    def stop(self) -> None:
        """Wait no more."""
        self._sweep.waiting.discard(self)

    def end(self) -> None:
        """The deadline has come."""
        self.stop()
        self.ended = True
        if self.on_end is not None:
            self.on_end()
        elif self._task is not None:
            self._task.cancel()


class _Sweep:
    """Everybody who waits in one event loop, and the next look at their deadlines."""

    __slots__ = ("_timer", "loop", "next", "time", "waiting")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.time = loop.time
        self.waiting: set[Deadlines] = set()
        self.next = float("inf")
        self._timer: asyncio.TimerHandle | None = None

    def expect(self, deadline: float) -> None:
        """See to it that there is a look at this time, before `next`."""
        if self._timer is not None:
            self._timer.cancel()
        self.next = deadline
        self._timer = self.loop.call_at(deadline, self._look)

    def _look(self) -> None:
        now = self.loop.time()
        self._timer, self.next = None, float("inf")
        soon = now + _BETWEEN_LOOKS
        try:
            for deadlines in [one for one in self.waiting if one.deadline <= now]:
                deadlines.end()
        finally:  # nobody else's deadline depends on what one is told
            if self.waiting:
                self.expect(max(soon, min(deadlines.deadline for deadlines in self.waiting)))


_latest: list[_Sweep] = []  # of the loop that runs; a process has one, tests have many in turn


def _new_sweep(loop: asyncio.AbstractEventLoop) -> _Sweep:
    sweep = _Sweep(loop)
    _latest[:] = [sweep]
    return sweep
