"""The progress of the tasks that run here, written to the store at most twice a second.

Law 1. The first report of a task is written at once. A report that follows within half a second
       replaces the one that waits, and the last one is always written.
Law 2. Any thread may report, and nobody waits for the write: a store that cannot be written loses
       a report, never a task.
"""

import asyncio
import logging
from typing import Final

from carnet.core.chain.turn import Turn
from carnet.errors import CarnetError
from carnet.ports.calls.tasks import Tasks

logger = logging.getLogger("carnet.tasks")

REST_SECONDS: Final = 0.5

Report = tuple[Turn, int, str | None]


class ProgressWriter:
    """Writes the progress that agents report. The port `ports.calls.steps.Progress`."""

    def __init__(self, tasks: Tasks, *, rest_seconds: float = REST_SECONDS) -> None:
        """`rest_seconds` pass between two writes of one task."""
        self._tasks = tasks
        self._rest_seconds = rest_seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[int, Report] = {}
        self._writing: dict[int, asyncio.Task[None]] = {}  # by turn

    def begin(self) -> None:
        """Take reports from now on, from other threads too."""
        self._loop = asyncio.get_running_loop()

    def tell(self, turn: Turn, thousandths: int, note: str | None) -> None:
        """Write it soon; a report that follows quickly replaces it."""
        if self._loop is None or self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._take, (turn, thousandths, note))

    def _take(self, report: Report) -> None:
        n = report[0].n
        self._waiting[n] = report
        if n not in self._writing and self._loop is not None:
            self._writing[n] = self._loop.create_task(self._write(n))

    async def _write(self, n: int) -> None:
        try:
            while (report := self._waiting.pop(n, None)) is not None:
                try:
                    await self._tasks.progress(*report)
                except CarnetError as error:
                    logger.info("progress is not written", extra={"detail": str(error)})
                await asyncio.sleep(self._rest_seconds)
        finally:
            del self._writing[n]
