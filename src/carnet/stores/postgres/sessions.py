"""A few connections for queries and rare writes, so that they never wait for a batch of turns.

Law 1. A query that lost its connection is asked once more on a new one: it changes nothing.
Law 2. A write that lost its connection before its commit was not made; during it, nobody knows.
Law 3. Nobody waits for a connection, or for an answer, without an end.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from itertools import count
from typing import Final, Protocol

from carnet.errors import CarnetError, Internal, OutcomeUnknown, Overloaded, StorageUnavailable
from carnet.stores.database import Row, Statement, Value
from carnet.stores.postgres import writer as postgres_writer

MOST: Final = 4
CONNECT_SECONDS: Final = 4.0  # a busy machine takes its time; the one that writes tells who is down
READ_SECONDS: Final = 5.0  # with the connection, if there is none
WRITE_SECONDS: Final = 12.0  # after the server's own timeout; pruning takes its time
MOST_ATTEMPTS: Final = 3


@lru_cache(maxsize=512)
def numbered(sql: str) -> str:
    """The same text with $1, $2 for each question mark."""
    numbers = count(1)
    return "".join(f"${next(numbers)}" if part == "?" else part for part in sql)


class Session(postgres_writer.WriterSession, Protocol):
    """One connection."""

    async def change(self, text: str, *args: object) -> int:
        """Run one statement; the number of rows it changed."""


class Sessions:
    """Lent one at a time; made when they are needed, and kept."""

    def __init__(self, connect: Callable[[], Awaitable[Session]]) -> None:
        self._connect = connect
        self._idle: list[Session] = []
        self._free = asyncio.Semaphore(MOST)
        self._is_open = True

    @asynccontextmanager
    async def _lent(self) -> AsyncIterator[Session]:
        if not self._is_open:
            raise StorageUnavailable("the store is closed")
        async with self._free:
            session = await self._get()
            try:
                yield session
            except BaseException:
                session.drop()  # it may be in the middle of something
                raise
            if self._is_open:
                self._idle.append(session)
            else:
                await session.close()

    async def _get(self) -> Session:
        while self._idle:
            session = self._idle.pop()
            if not session.is_closed:
                return session
        try:
            return await self._connect()
        except Exception as error:  # noqa: BLE001  whatever it is, there is none
            trouble = f"the database cannot be reached: {type(error).__name__}"
            raise StorageUnavailable(trouble) from None

    async def fetch(self, text: str, args: Sequence[Value]) -> list[Row]:
        """The rows of a query."""
        for _ in range(MOST):  # as many may have been lost together
            answer = await self._ask(text, args)
            if answer is not None:
                return answer
        raise StorageUnavailable("the connection to the database was lost")

    async def _ask(self, text: str, args: Sequence[Value]) -> list[Row] | None:
        """The rows, or None if the connection was lost."""
        try:
            async with asyncio.timeout(READ_SECONDS), self._lent() as session:
                try:
                    return [tuple(row) for row in await session.query(text, *args)]
                except Exception as error:  # noqa: BLE001  whatever it is, it is told in our words
                    if session.blame(error) == "lost" and not isinstance(error, TimeoutError):
                        session.drop()
                        return None
                    if session.blame(error) in {"lost", "busy"}:
                        raise Overloaded(session.name(error), retry_after=1) from None
                    raise StorageUnavailable(session.name(error)) from None
        except TimeoutError:
            raise Overloaded("the database did not answer in time", retry_after=1) from None

    async def transact(self, statements: Sequence[Statement]) -> list[int]:
        """Run all of them or none; the number of rows each changed."""
        attempt = 1
        while True:
            try:
                async with self._lent() as session:
                    return await _transacted(session, statements)
            except _Again as again:
                if attempt == MOST_ATTEMPTS:
                    raise Overloaded(str(again), retry_after=1) from None
                attempt += 1

    async def close(self) -> None:
        """Let go of all of them."""
        self._is_open = False
        while self._idle:
            await self._idle.pop().close()


class _Again(Exception):
    """The database rolled it back for another's sake."""


async def _transacted(session: Session, statements: Sequence[Statement]) -> list[int]:
    try:
        async with asyncio.timeout(WRITE_SECONDS):
            await session.begin()
            counts = [await session.change(text, *args) for text, args in statements]
    except Exception as error:  # noqa: BLE001  whatever it is, nothing was written
        raise _failed(session, error) from None
    try:
        async with asyncio.timeout(WRITE_SECONDS):
            await session.commit()
    except Exception as error:  # noqa: BLE001  whatever it is, it may be written or not
        raise OutcomeUnknown(f"a commit failed: {session.name(error)}") from None
    return counts


def _failed(session: Session, error: Exception) -> CarnetError | _Again:
    fault, trouble = session.blame(error), session.name(error)
    if fault == "again":
        return _Again(trouble)
    if fault == "row":
        return Internal(f"the store cannot hold this row: {trouble}")
    if fault == "busy":
        return Overloaded(f"the database is busy: {trouble}", retry_after=1)
    return StorageUnavailable(trouble)
