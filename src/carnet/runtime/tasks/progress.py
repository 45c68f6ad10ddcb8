"""How far the tasks are that run here, told to the store now and then.

Law 1. The first word is written at once. What follows within half a second replaces what waits, and
       the last word is always written.
Law 2. It may be told from any thread, and nobody waits for it: a store that cannot be written loses
       a word, never a task.
"""

import asyncio
import logging
from typing import Final

from carnet.core.chain.turn import Turn
from carnet.errors import CarnetError
from carnet.ports.work.tasks import Tasks

logger = logging.getLogger("carnet.tasks")

REST_SECONDS: Final = 0.5

Word = tuple[Turn, int, str | None]


class Telling:
    """Writes what agents say of their progress. The port `ports.work.steps.Progress`."""

    def __init__(self, tasks: Tasks, *, rest_seconds: float = REST_SECONDS) -> None:
        """`rest_seconds` pass between two words of one task."""
        self._tasks = tasks
        self._rest_seconds = rest_seconds
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[int, Word] = {}
        self._writing: dict[int, asyncio.Task[None]] = {}  # by turn

    def begin(self) -> None:
        """Take words from now on, from other threads too."""
        self._loop = asyncio.get_running_loop()

    def tell(self, turn: Turn, thousandths: int, note: str | None) -> None:
        """Tell it soon; what follows quickly replaces it."""
        if self._loop is None or self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._take, (turn, thousandths, note))

    def _take(self, word: Word) -> None:
        n = word[0].n
        self._waiting[n] = word
        if n not in self._writing and self._loop is not None:
            self._writing[n] = self._loop.create_task(self._write(n))

    async def _write(self, n: int) -> None:
        try:
            while (word := self._waiting.pop(n, None)) is not None:
                try:
                    await self._tasks.progress(*word)
                except CarnetError as error:
                    logger.info("progress is not written", extra={"detail": str(error)})
                await asyncio.sleep(self._rest_seconds)
        finally:
            del self._writing[n]
