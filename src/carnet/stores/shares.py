"""Fair reads: of one caller at most one query is asked of the database at a time.

So the queue before it holds one query of each caller, and whoever asks for much waits for itself:
another's query waits for one of each at the most (A87).

Law 1. What the gateway itself reads, for nobody, is not held: it is little, and bounded elsewhere.
Law 2. Who goes away leaves its place when its query has been answered, not before: to come and go
       gives nobody a second one.
"""

import asyncio
from asyncio import Future
from collections.abc import Callable

from carnet.ports.world.records import READER
from carnet.stores.database import Row


class _Place:
    __slots__ = ("count", "lock")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.count = 0  # of those who have it or wait for it


class Shares:
    """The places of callers before one database."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}

    async def fetch(self, ask: Callable[[], "Future[list[Row]]"]) -> list[Row]:
        """The rows of a query, once the caller's earlier ones are answered."""
        reader = READER.get()
        if reader is None:
            return await ask()
        place = self._places.setdefault(reader, _Place())
        place.count += 1
        try:
            async with place.lock:
                return await _whole(ask())
        finally:
            place.count -= 1
            if not place.count:
                del self._places[reader]


async def _whole(asked: "Future[list[Row]]") -> list[Row]:
    try:
        return await asyncio.shield(asked)
    except asyncio.CancelledError:
        await asyncio.wait([asked])
        raise
