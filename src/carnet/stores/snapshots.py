"""One moment of a whole database, read in pieces while others go on writing.

Law 1. All that is read through one snapshot was true at one moment.
Law 2. Memory holds one piece at a time, however large the table.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import count
from typing import Any, Final, Protocol

from carnet.errors import CarnetError, ConfigInvalid
from carnet.stores.database import Row, Snapshot

AT_A_TIME: Final = 2000

_SQLITE_COLUMNS = "SELECT name FROM pragma_table_info(?) ORDER BY cid"
_POSTGRES_COLUMNS = (
    "SELECT column_name FROM information_schema.columns"
    " WHERE table_schema = current_schema() AND table_name = $1 ORDER BY ordinal_position"
)


async def all_rows(snapshot: Snapshot, sql: str) -> list[Row]:
    """All rows of a query whose answer is small."""
    return [row async for piece in snapshot.pieces(sql) for row in piece]


class PieceCursor(Protocol):
    """What a statement gave."""

    def fetchmany(self, size: int, /) -> list[Any]: ...
    def fetchall(self) -> list[Any]: ...


class PieceConnection(Protocol):
    """The part of a DB-API connection that a snapshot uses."""

    def execute(self, sql: str, args: Sequence[Any] = ..., /) -> PieceCursor: ...


class SqliteSnapshot:
    """Over a connection on which a transaction has begun and read something."""

    def __init__(self, connection: PieceConnection) -> None:
        self._connection = connection

    async def pieces(self, sql: str) -> AsyncIterator[list[Row]]:
        cursor = await off_the_loop(self._connection.execute, sql)
        while rows := await off_the_loop(cursor.fetchmany, AT_A_TIME):
            yield rows

    async def columns(self, table: str) -> list[str]:
        found = await off_the_loop(self._connection.execute, _SQLITE_COLUMNS, (table,))
        return [name for (name,) in found.fetchall()]


async def off_the_loop(function: Any, *args: Any) -> Any:  # noqa: ANN401, RUF100
    """Call what blocks on another thread; whatever it raises is told in our words."""
    try:
        return await asyncio.to_thread(function, *args)
    except Exception as error:  # noqa: BLE001  as it says
        raise _unreadable(f"{type(error).__name__}: {error}") from None


def _unreadable(why: str) -> ConfigInvalid:
    reason = f"not all of it can be read or copied ({why}); 'carnet doctor' looks at it"
    return ConfigInvalid(why, key="[store] url", reason=reason)


class PieceSession(Protocol):
    """The part of a PostgreSQL connection that a snapshot uses."""

    async def query(self, text: str, *args: object) -> list[Row]: ...
    async def change(self, text: str, *args: object) -> int: ...
    def name(self, error: Exception) -> str: ...


class PostgresSnapshot:
    """Over a connection on which a transaction has begun, of an isolation that repeats reads."""

    def __init__(self, session: PieceSession) -> None:
        self._session = session
        self._names = count(1)

    async def pieces(self, sql: str) -> AsyncIterator[list[Row]]:
        name = f"piece_{next(self._names)}"
        try:
            await self._session.change(f"DECLARE {name} NO SCROLL CURSOR FOR {sql}")
            while rows := await self._session.query(f"FETCH {AT_A_TIME} FROM {name}"):
                yield [tuple(row) for row in rows]
            await self._session.change(f"CLOSE {name}")
        except CarnetError:
            raise
        except Exception as error:  # noqa: BLE001  whatever it is, it is told in our words
            raise _unreadable(self._session.name(error)) from None

    async def columns(self, table: str) -> list[str]:
        try:
            return [row[0] for row in await self._session.query(_POSTGRES_COLUMNS, table)]
        except Exception as error:  # noqa: BLE001  whatever it is, it is told in our words
            raise _unreadable(self._session.name(error)) from None
