"""A deadline over many waits, at the price of one timer.

Moving the deadline sets a number; the timer looks at it now and then. What happens at the end is
the cancelling of the task that waits, or whatever `on_end` is set to.

Law 1. Only a task that waits is cancelled, never one that is busy elsewhere with what it was given.
Law 2. A cancellation of ours is undone by `took`; one that somebody else asked for stays.
"""

import asyncio
from collections.abc import Callable
from typing import Final

_TOLERANCE: Final = 0.002  # timers are kept in whole milliseconds


class Patience:
    """How long somebody waits. Must be stopped; made within the event loop."""

    __slots__ = (
        *("_cancelling", "_deadline", "_end", "_loop", "_task", "_tick", "_timer"),
        *("ended", "on_end"),
    )

    def __init__(self, seconds: float, *, tick: float | None = None) -> None:
        """Wait `seconds` in all; `tick` is the shortest wait that will be allowed on the way."""
        self._loop = loop = asyncio.get_running_loop()
        now = loop.time()
        self._end = self._deadline = now + seconds
        self._tick = seconds if tick is None else min(tick, seconds)
        self._timer = loop.call_at(now + self._tick, self._look)
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self.ended = False
        self.on_end: Callable[[], None] | None = None

    def attend(self) -> None:
        """The current task waits from now on."""
        self._task = task = asyncio.current_task(self._loop)
        self._cancelling = 0 if task is None else task.cancelling()

    def rest(self) -> None:
        """Nobody waits: only the end of all counts."""
        self._task = None
        self._deadline = self._end

    def allow(self, seconds: float) -> None:
        """Wait this long from now, and not beyond the end of all."""
        self._deadline = min(self._loop.time() + seconds, self._end)

    def took(self) -> bool:
        """Whether the cancellation at hand is ours alone; then it is undone."""
        task = self._task
        return self.ended and task is not None and task.uncancel() <= self._cancelling

    def stop(self) -> None:
        """Forget the timer."""
        self._timer.cancel()

    def _look(self) -> None:
        now = self._loop.time()
        if now + _TOLERANCE < self._deadline:
            self._timer = self._loop.call_at(min(self._deadline, now + self._tick), self._look)
            return
        self.ended = True
        if self.on_end is not None:
            self.on_end()
        elif self._task is not None:
            self._task.cancel()
