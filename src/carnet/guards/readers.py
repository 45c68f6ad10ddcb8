"""How much of the journal its readers hold in memory at once: each, each caller's, and all (A74).

Law 1. Who finds no room waits, and holds nothing while it does. What one caller's readers leave
       unread makes that caller's other readers wait.
Law 2. A quarter of all is for callers that hold nothing: those who hold much leave it to them.
Law 3. What is larger than a bound is read when nothing else is, by that caller or by anybody.
Law 4. Nobody waits for ever: after `WAIT_SECONDS` the reader is refused, and may come again.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from carnet.core.messages.events import PIECE_BYTES
from carnet.errors import Overloaded

READER_BYTES: Final = PIECE_BYTES
CALLER_BYTES: Final = 4 * 1024 * 1024
ALL_BYTES: Final = 32 * 1024 * 1024
WAIT_SECONDS: Final = 60.0  # twice what a reader that takes nothing is given


class Readers:
    """The bytes that are held for readers."""

    def __init__(
        self,
        *,
        per_caller: int = CALLER_BYTES,
        in_all: int = ALL_BYTES,
        seconds: float = WAIT_SECONDS,
    ) -> None:
        """Nobody reads."""
        self._per_caller = per_caller
        self._in_all = in_all
        self._seconds = seconds
        self._held: dict[str, int] = {}
        self._waiting: list[asyncio.Future[None]] = []
        self.total = 0

    @asynccontextmanager
    async def room(self, caller: str, size: int) -> AsyncIterator[None]:
        """Hold so many bytes for a reader of this caller, as soon as there is room for them."""
        await self.enter(caller, size)
        try:
            yield
        finally:
            self.leave(caller, size)

    async def enter(self, caller: str, size: int) -> None:
        """The same, without an end."""
        if not self._fits(caller, size):
            await self._wait(caller, size)
        self._take(caller, size)

    @contextmanager
    def lent(self, caller: str, size: int) -> Iterator[None]:
        """Give room back for as long as nothing is read in it; then it is held again.

        Whoever lends it reads nothing more in it afterwards: nobody is waited for.
        """
        self.leave(caller, size)
        try:
            yield
        finally:
            self._take(caller, size)

    def _take(self, caller: str, size: int) -> None:
        self._held[caller] = self._held.get(caller, 0) + size
        self.total += size

    def leave(self, caller: str, size: int) -> None:
        """Hold so many bytes no longer."""
        left = self._held[caller] - size
        if left:
            self._held[caller] = left
        else:
            del self._held[caller]
        self.total -= size
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)

    def _fits(self, caller: str, size: int) -> bool:
        held = self._held.get(caller, 0)
        if held and held + size > self._per_caller:
            return False
        room = self._in_all if not held else self._in_all * 3 // 4
        return not self.total or self.total + size <= room

    async def _wait(self, caller: str, size: int) -> None:
        try:
            async with asyncio.timeout(self._seconds):
                while not self._fits(caller, size):
                    left: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                    self._waiting.append(left)
                    await left
        except TimeoutError:
            raise Overloaded("no room for another reader", retry_after=1) from None
