"""Copying a whole store into an empty one of either kind.

Law 1. All or nothing: the target is committed, or put in its place, when all of it was compared.
Law 2. What is copied is compared: the rows of each table are counted, and the ledger is verified
       on both sides with the same result.
Law 3. What belongs to the running of a store is not copied: leases, what gateways request of one
       another, the mark of a gateway.
"""
# ruff: noqa: S608  the texts are put together from our own words

from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct

from carnet.errors import ConfigInvalid, UsageInvalid
from carnet.faults import point
from carnet.stores.database import Row, Snapshot
from carnet.stores.ledger.verification import verify
from carnet.stores.snapshots import (
    PieceConnection,
    PieceSession,
    PostgresSnapshot,
    SqliteSnapshot,
    all_rows,
    off_the_loop,
)
from carnet.stores.tables import FORM_OF_CALLS, FORM_OF_EVENTS, MOVED, NUMBERED, PRUNED
from carnet.stores.turn.finish_rules import Seals
from carnet.stores.turn.row import SqlConnection

_OWN_COLUMNS: Final = {"journal": {"x"}}  # that only PostgreSQL has; it fills them itself
_OF_THE_STORE: Final = f"'running', '{PRUNED}', '{FORM_OF_CALLS}', '{FORM_OF_EVENTS}'"
_WITHOUT: Final = {"meta": f" WHERE name NOT IN ({_OF_THE_STORE})"}
_APPEND_ONLY: Final = {"ledger": "ledger_kept", "checkpoint": "checkpoint_kept"}  # by a trigger
_CLEARED: Final = ", ".join(table for table in (*MOVED, "wish") if table not in _WITHOUT)

Progress = Callable[[str, int, int], object]  # a table, its rows so far, all of its rows


class Landing(Snapshot, Protocol):
    """A store that is being filled; it can be looked at meanwhile."""

    async def put(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Write rows."""


class Copied(Struct, frozen=True):
    """What came of a copy."""

    rows: dict[str, int]  # of each table
    faults: int  # of the ledger, there as here


async def copy_all(
    source: Snapshot, target: Landing, seals: Seals, progress: Progress | None = None
) -> Copied:
    """Copy every table. Refuses a copy that differs; a ledger with faults is copied with them."""
    before = await verify(source, seals)
    counts = {table: await _copy(source, target, table, progress) for table in MOVED}
    for table, count in counts.items():
        arrived = await _count(target, table)
        if arrived != count:
            raise _differs(f"{count} rows of {table} were copied, {arrived} are there")
    after = await verify(target, seals)
    if after != before:
        raise _differs("the ledger is not the same in the copy")
    return Copied(counts, after.fault_count)


def _differs(why: str) -> ConfigInvalid:
    return ConfigInvalid(key="[store] url", reason=f"{why}; nothing was kept of the copy")


async def _count(snapshot: Snapshot, table: str) -> int:
    where = _WITHOUT.get(table, "")
    ((count,),) = await all_rows(snapshot, f"SELECT COUNT(*) FROM {table}{where}")
    return int(count)


async def _copy(source: Snapshot, target: Landing, table: str, progress: Progress | None) -> int:
    columns = await _columns(source, target, table)
    total = await _count(source, table)
    done = 0
    query = f"SELECT {', '.join(columns)} FROM {table}{_WITHOUT.get(table, '')} ORDER BY 1"
    async for rows in source.pieces(query):
        await target.put(table, columns, rows)
        done += len(rows)
        point("migrate.mid")
        if progress is not None:
            progress(table, done, total)
    return done


async def _columns(source: Snapshot, target: Landing, table: str) -> list[str]:
    own = _OWN_COLUMNS.get(table, set())
    here = [name for name in await source.columns(table) if name not in own]
    there = set(await target.columns(table)) - own
    if set(here) != there:
        raise _differs(f"the table {table} has other columns there")
    return here


async def count_rows(snapshot: Snapshot) -> dict[str, int]:
    """How many rows each table has that moves with its store."""
    return {table: await _count(snapshot, table) for table in MOVED}


async def refuse_filled(
    target: Snapshot,
    fix: str = "Name a database that holds nothing; a move never mixes two stores.",
) -> None:
    """Refuse a target that holds anything."""
    for table in MOVED:
        if await _count(target, table):
            reason = f"The target is not empty: it has rows in '{table}'."
            raise UsageInvalid(reason=reason, fix=fix)


class FillableConnection(PieceConnection, SqlConnection, Protocol):
    """A connection that can be read in pieces and written."""

    def execute(self, sql: str, args: Sequence[Any] = ..., /) -> Any: ...  # noqa: ANN401, RUF100


class SqliteLanding(SqliteSnapshot):
    """A new file. It takes its place when it is whole, so each piece may be committed by itself."""

    def __init__(self, connection: FillableConnection) -> None:
        super().__init__(connection)
        self._target = connection

    async def put(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        marks = ", ".join(["?"] * len(columns))
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"
        await off_the_loop(self._put, sql, rows)

    def _put(self, sql: str, rows: Sequence[Row]) -> None:
        self._target.execute("BEGIN")
        self._target.executemany(sql, rows)
        self._target.execute("COMMIT")


class FillableSession(PieceSession, Protocol):
    """A PostgreSQL connection that can be read in pieces and written."""

    async def copy(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None: ...


class PostgresLanding(PostgresSnapshot):
    """A database, in a transaction that has begun."""

    def __init__(self, session: FillableSession) -> None:
        super().__init__(session)
        self._target = session

    async def put(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        await self._target.copy(table, columns, rows)

    async def clear(self) -> None:
        """Delete all that it holds. Until the transaction ends, nobody sees it without."""
        for table, trigger in _APPEND_ONLY.items():
            await self._target.change(f"ALTER TABLE {table} DISABLE TRIGGER {trigger}")
        await self._target.change(f"TRUNCATE {_CLEARED}")
        for table, where in _WITHOUT.items():
            await self._target.change(f"DELETE FROM {table}{where}")
        for table, trigger in _APPEND_ONLY.items():
            await self._target.change(f"ALTER TABLE {table} ENABLE TRIGGER {trigger}")

    async def set_numbers(self) -> None:
        """Let the database count on from the largest number."""
        for table in NUMBERED:
            await self._target.change(
                f"SELECT setval(pg_get_serial_sequence('{table}', 'n'), MAX(n)) FROM {table}"
                " HAVING MAX(n) IS NOT NULL"
            )
