"""Waking the readers of a run while it happens.

Law. A change is never missed: it is noted from the moment the watch begins, also while its reader
is busy. A watch does not say what changed; the reader asks the store. What other processes write is
not noted here: a reader is woken each `poll_seconds` to ask, or less often if there are many.
"""

import asyncio
from collections.abc import Iterable
from types import TracebackType
from typing import Final, Self

from carnet.core.chain.turn import Turn

WATCH_SECONDS: Final = 0.01  # between two looks, for each who watches


class RunWatches:
    """The runs that somebody watches. Costs one look at an empty table when nobody does."""

    def __init__(self, *, poll_seconds: float | None = None) -> None:
        self._poll_seconds = poll_seconds
        self._by_run: dict[str, set[RunWatch]] = {}
        self._count = 0

    @property
    def pause(self) -> float | None:
        """The seconds between two looks of a reader; None where it need not look by itself."""
        if self._poll_seconds is None:
            return None
        return max(self._poll_seconds, WATCH_SECONDS * self._count)

    def on(self, run: str) -> "RunWatch":
        """A watch on one run, to be used in a `with` statement."""
        return RunWatch(self, run)

    def touch(self, turns: Iterable[Turn]) -> None:
        """These turns were changed in a commit."""
        if self._by_run:
            for turn in turns:
                self._wake(turn.run)

    def touch_all(self) -> None:
        """Another process wrote; it is not known what."""
        for run in self._by_run:
            self._wake(run)

    def _wake(self, run: str) -> None:
        for watch in self._by_run.get(run, ()):
            watch.wake()

    def add(self, watch: "RunWatch") -> None:
        self._by_run.setdefault(watch.run, set()).add(watch)
        self._count += 1

    def discard(self, watch: "RunWatch") -> None:
        left = self._by_run.get(watch.run, set())
        left.discard(watch)
        self._count -= 1
        if not left:
            self._by_run.pop(watch.run, None)


class RunWatch:
    """One reader of one run."""

    def __init__(self, watches: RunWatches, run: str) -> None:
        self.run = run
        self._watches = watches
        self._changed = asyncio.Event()

    def wake(self) -> None:
        """Note a change."""
        self._changed.set()

    async def changed(self, seconds: float) -> bool:
        """Wait for a change since the last call; False if none came in time."""
        poll = self._watches.pause
        is_polling = poll is not None and poll < seconds
        try:
            async with asyncio.timeout(poll if is_polling else seconds):
                await self._changed.wait()
        except TimeoutError:
            return is_polling
        self._changed.clear()
        return True

    def __enter__(self) -> Self:
        self._watches.add(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._watches.discard(self)
