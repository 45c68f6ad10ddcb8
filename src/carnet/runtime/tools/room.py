"""Places that all users of a tool share, of which nobody has more than a part.

Law. Whoever has its part waits for its own to be left, and holds nobody else up.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class FairRoom:
    """So many places, and so many of them at the most for each."""

    def __init__(self, most: int, *, each: int) -> None:
        """Nobody is there yet."""
        self._room = asyncio.Semaphore(most)
        self._each = each
        self._own: dict[str, asyncio.Semaphore] = {}
        self._users: dict[str, int] = {}  # who have or want a place

    @asynccontextmanager
    async def place(self, who: str) -> AsyncIterator[None]:
        """A place, when there is one."""
        own = self._own.setdefault(who, asyncio.Semaphore(self._each))
        self._users[who] = self._users.get(who, 0) + 1
        try:
            async with own, self._room:
                yield
        finally:
            self._users[who] -= 1
            if not self._users[who]:
                del self._users[who], self._own[who]
