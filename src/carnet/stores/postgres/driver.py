"""The PostgreSQL driver: the one module that imports asyncpg.

For several gateways, on one machine or many. One connection writes turns (`postgres_writer`), a few
read and write the rest (`sessions`).

Law 1. A commit is on the disk of the database before it is acknowledged (synchronous_commit).
Law 2. The layout is changed by `carnet migrate` alone. Opening only looks at it.
Law 3. No error that leaves this file holds a value of a row, or a password.
"""

import asyncio
import logging
from asyncio import Event, Future
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

import asyncpg

from carnet.core.chain.turn import Turn
from carnet.errors import ConfigInvalid, StorageUnavailable, UsageInvalid
from carnet.faults import point
from carnet.ports.calls.turns import TurnClaim, Verdict
from carnet.stores.commit.queue import MOST_WAITING
from carnet.stores.copy import Landing, PostgresLanding, refuse_filled
from carnet.stores.database import Lease, Row, Snapshot, Statement, Value
from carnet.stores.migration import APPLIED, NOTE, TABLE, migrations, missing
from carnet.stores.postgres.sessions import CONNECT_SECONDS, Sessions, numbered
from carnet.stores.postgres.statements import ABANDONED, NOW, RENEW
from carnet.stores.postgres.writer import Fault, PostgresWriter
from carnet.stores.shares import Shares
from carnet.stores.snapshots import PostgresSnapshot
from carnet.stores.tables import MOVED
from carnet.stores.turn.finish_rules import Seals

_log = logging.getLogger(__name__)

# A timeout of the server comes before ours, so that it is the transaction that ends, not the
# connection. JIT would compile our short statements each time; of a table that has just been made
# the planner believes that reading all of it is cheap.
_SETTINGS: Final = (
    "SET synchronous_commit = on; SET default_transaction_isolation = 'read committed';"
    " SET lock_timeout = '1500ms'; SET idle_in_transaction_session_timeout = '10s'; SET jit = off;"
    " SET client_min_messages = error;"
)
_HOT: Final = (
    "SET statement_timeout = '3s'; SET plan_cache_mode = force_generic_plan;"
    " SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;"
)
OPEN_SECONDS: Final = 10.0  # that a database may take to answer whoever starts
_COLD: Final = "SET statement_timeout = '10s';"
_WHOLE: Final = (  # for reading or writing all of it
    "SET statement_timeout = 0; SET lock_timeout = '60s';"
    " SET idle_in_transaction_session_timeout = 0;"
)
_ONE_MOMENT: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

_AGAIN: Final = frozenset(  # serialization, deadlock, and a row that was referred to meanwhile
    {"40001", "40P01", "23503"}
)
_BUSY: Final = frozenset({"57014", "55P03"})
_LOST: Final = frozenset({"25006", "57P01", "57P02", "57P03", "57P05"})  # 25006: now a standby
_ROW: Final = frozenset({"21", "22", "23"})

_MIGRATION_LOCK: Final = 0x6361726E6574  # "carnet"
_HAS_LAYOUT: Final = "SELECT to_regclass('migration') IS NOT NULL"
_CHANGES: Final = "SELECT n FROM change"
_GATEWAYS: Final = f"SELECT COUNT(*) FROM worker WHERE until > {NOW}"  # noqa: S608  our own words


class PostgresSession:
    """One connection."""

    def __init__(self, connection: Any) -> None:  # noqa: ANN401, RUF100  asyncpg has no types
        self._connection = connection

    @property
    def is_closed(self) -> bool:
        closed: bool = self._connection.is_closed()
        return closed

    async def query(self, text: str, *args: object) -> list[Row]:
        rows: list[Row] = await self._connection.fetch(text, *args)
        return rows

    async def change(self, text: str, *args: object) -> int:
        """Run one statement; the number of rows it changed."""
        tag: str = await self._connection.execute(text, *args)
        last = tag.rpartition(" ")[2]
        return int(last) if last.isascii() and last.isdecimal() else 0

    async def copy(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Put rows into a table, fast."""
        await self._connection.copy_records_to_table(table, columns=columns, records=rows)

    async def begin(self) -> None:
        await self._connection.execute("BEGIN")

    async def commit(self) -> None:
        # The commit of a transaction that has failed is answered with ROLLBACK.
        if await self._connection.execute("COMMIT") != "COMMIT":
            raise StorageUnavailable("the transaction was rolled back")

    async def rollback(self) -> None:
        await self._connection.execute("ROLLBACK")

    async def close(self) -> None:
        try:
            await self._connection.close(timeout=CONNECT_SECONDS)
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            self.drop()

    def drop(self) -> None:
        self._connection.terminate()

    def blame(self, error: Exception) -> Fault:
        return blame(error)

    def name(self, error: Exception) -> str:
        return named(error)


def blame(error: Exception) -> Fault:
    """Whose fault an error is."""
    if isinstance(error, asyncpg.PostgresError):
        return _blame_state(error.sqlstate or "")
    if isinstance(error, (OSError, TimeoutError, EOFError)):
        return "lost"
    if isinstance(error, asyncpg.InternalClientError):
        return "lost"
    # A value that cannot be sent is an InterfaceError too, and a ValueError.
    if isinstance(error, asyncpg.InterfaceError) and not isinstance(error, ValueError):
        return "lost"
    return "row"


def _blame_state(state: str) -> Fault:
    if state in _AGAIN:
        return "again"
    if state in _BUSY:
        return "busy"
    if state in _LOST or state.startswith("08"):
        return "lost"
    return "row" if state[:2] in _ROW else "store"


def named(error: Exception) -> str:
    """An error without its message, which may quote a row."""
    state = getattr(error, "sqlstate", None)
    return type(error).__name__ + (f" ({state})" if state else "")


async def connect(url: str, settings: str, seconds: float = CONNECT_SECONDS) -> PostgresSession:
    """One connection with the settings of this house."""
    connection = await asyncpg.connect(url, timeout=seconds, target_session_attrs="read-write")
    try:
        await connection.execute(_SETTINGS + settings)
    except BaseException:
        connection.terminate()
        raise
    return PostgresSession(connection)


async def _connect_or_explain(url: str, settings: str = _COLD) -> PostgresSession:
    try:
        return await connect(url, settings, OPEN_SECONDS)
    except (OSError, TimeoutError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as e:
        raise _unusable(url, e) from None


def _unusable(url: str, error: Exception) -> ConfigInvalid:
    """Why a database cannot be used, and what to do."""
    parts = urlsplit(url)
    where = f"{parts.hostname or 'the local socket'}{parts.path}"
    state = getattr(error, "sqlstate", None) or ""
    if state == "3D000":
        reason = "there is no such database; make one with: createdb NAME"
    elif state.startswith("28"):
        reason = "it does not let this user in; give the password in PGPASSWORD or PGPASSFILE"
    elif isinstance(error, (OSError, TimeoutError)) or state.startswith(("08", "57P")):
        reason = "nobody answers there; start PostgreSQL, or correct the address"
    else:
        reason = f"it cannot be used ({named(error)}); correct the address"
    return ConfigInvalid(named(error), key="[store] url", reason=f"{where}: {reason}")


async def migrate(url: str, *, now: int) -> int:
    """Bring a database to today's layout, alone; how many migrations were applied."""
    session = await _connect_or_explain(url)
    try:
        await session.change("SET statement_timeout = 0")
        await session.change("SET lock_timeout = '60s'")
        await session.begin()
        applied = await _bring_up(session, now)
        await session.commit()
    except asyncpg.PostgresError as error:
        reason = f"it could not be brought to the layout of this version: {error}"
        raise ConfigInvalid(named(error), key="[store] url", reason=reason) from None
    finally:
        await session.close()
    return applied


async def _bring_up(session: PostgresSession, now: int) -> int:
    """Apply the migrations that are missing, in the transaction that has begun."""
    await session.query("SELECT pg_advisory_xact_lock($1)", _MIGRATION_LOCK)
    await session.change(TABLE.replace("INTEGER", "BIGINT"))
    todo = missing(migrations("postgres"), await session.query(APPLIED))
    for migration in todo:
        for index, statement in enumerate(migration.statements):
            if index == len(migration.statements) // 2:
                point("migrate.mid")
            await session.change(statement)
        note = (migration.n, migration.name, migration.checksum, now)
        await session.change(numbered(NOTE), *note)
    return len(todo)


@asynccontextmanager
async def one_moment(url: str) -> AsyncIterator[Snapshot]:
    """All of a database as it is now, while others go on writing it."""
    await check_layout(url)
    async with _whole(url) as session:
        await session.change(_ONE_MOMENT)
        yield PostgresSnapshot(session)


@asynccontextmanager
async def leaving(url: str) -> AsyncIterator[Snapshot]:
    """One moment of a database that nobody writes meanwhile. Refuses one that gateways use."""
    await check_layout(url)
    async with _whole(url) as session:
        await session.change("BEGIN ISOLATION LEVEL REPEATABLE READ")
        await session.change(f"LOCK TABLE {', '.join(MOVED)}, worker IN SHARE MODE")
        await _refuse_gateways(session)
        yield PostgresSnapshot(session)


async def _refuse_gateways(session: PostgresSession) -> None:
    ((gateways,),) = await session.query(_GATEWAYS)
    if gateways:
        raise UsageInvalid(
            reason=f"The store is in use: gateways that run on it: {gateways}.",
            fix="Stop them first. One that was killed counts until its lease ends.",
        )


@asynccontextmanager
async def landing(url: str, *, now: int) -> AsyncIterator[Landing]:
    """An empty database to fill, in one transaction that is committed at the end or never."""
    async with _whole(url) as session:
        await session.begin()
        await _bring_up(session, now)
        await session.change(f"LOCK TABLE {', '.join(MOVED)} IN EXCLUSIVE MODE")
        target = PostgresLanding(session)
        await refuse_filled(target)
        yield target
        await target.set_numbers()
        await session.commit()


@asynccontextmanager
async def refilling(url: str, *, now: int, keeps: str) -> AsyncIterator[Landing]:
    """The same of one that may hold something, unless `keeps` has the words of the refusal."""
    async with _whole(url) as session:
        await session.begin()
        await _bring_up(session, now)
        await session.change(f"LOCK TABLE {', '.join(MOVED)}, worker IN ACCESS EXCLUSIVE MODE")
        await _refuse_gateways(session)
        target = PostgresLanding(session)
        await (refuse_filled(target, keeps) if keeps else target.clear())
        yield target
        await target.set_numbers()
        await session.commit()


@asynccontextmanager
async def _whole(url: str) -> AsyncIterator[PostgresSession]:
    session = await _connect_or_explain(url, _WHOLE)
    try:
        yield session
    except (OSError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        why = named(error)
        if isinstance(error, asyncpg.InsufficientPrivilegeError):
            why = "its role may not make tables there, or not read them"
        reason = f"it could not be read or written as a whole ({why}); nothing was kept"
        raise ConfigInvalid(named(error), key="[store] url", reason=reason) from None
    finally:
        await session.close()


async def check_layout(url: str) -> None:
    """Refuse a database that `carnet migrate` has not brought to today's layout."""
    session = await _connect_or_explain(url)
    try:
        is_there = (await session.query(_HAS_LAYOUT))[0][0]
        applied = await session.query(APPLIED) if is_there else []
    except asyncpg.InsufficientPrivilegeError:
        raise ConfigInvalid(
            key="[store] url",
            reason="its role may not read the tables; docs/operations/postgresql.md has the GRANTs",
        ) from None
    finally:
        await session.close()
    todo = missing(migrations("postgres"), applied)
    if todo:
        raise ConfigInvalid(
            key="[store] url",
            reason=f"the database lacks {len(todo)} of this version's migrations;"
            " run: carnet migrate",
        )


def _not_ours(_: TurnClaim) -> Future[Verdict]:
    raise StorageUnavailable("turns are run by gateways, and this is none")


class PostgresDatabase:
    """A `Database` over one URL. Made on the event loop that will use it."""

    is_shared = True
    row_lock = " FOR UPDATE"
    settled = "j.x < pg_snapshot_xmin(pg_current_snapshot())"
    abandoned = ABANDONED

    def __init__(
        self,
        url: str,
        *,
        worker: str,
        seals: Seals,
        serves: bool,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._url = url
        self._serves = serves
        self._fence = 0
        self._sessions = Sessions(lambda: connect(url, _COLD))
        self._shares = Shares()
        self._writer = PostgresWriter(
            lambda: connect(url, _HOT), worker, seals, asyncio.get_running_loop(), most_waiting
        )
        queue = self._writer.queue
        self.claim: Final = queue.claim if serves else _not_ours
        self.append: Final = queue.append
        self.finish: Final = queue.finish

    @property
    def trouble(self) -> str:
        return self._writer.queue.trouble

    @property
    def refusing(self) -> Event:
        return self._writer.queue.refusing

    async def fetch(self, sql: str, args: Sequence[Value] = ()) -> list[Row]:
        text = numbered(sql)
        return await self._shares.fetch(
            lambda: asyncio.ensure_future(self._sessions.fetch(text, args))
        )

    async def execute(self, sql: str, args: Sequence[Value] = ()) -> int:
        return (await self.transact([(sql, args)]))[0]

    async def transact(self, statements: Sequence[Statement]) -> list[int]:
        return await self._sessions.transact([(numbered(sql), args) for sql, args in statements])

    def tell(self, changed: Callable[[Sequence[Turn]], None]) -> None:
        self._writer.queue.changed = changed

    async def renew(self, lease: Lease) -> None:
        rows = await self._sessions.fetch(RENEW, (lease.worker, lease.until - lease.now))
        fence: int = rows[0][0]
        if self._fence and fence > self._fence:
            _log.warning(
                "the lease of worker %s had run out; others may have its turns", lease.worker
            )
        self._fence = fence
        self._writer.lease_us = lease.until - lease.now

    async def changes(self) -> int:
        if self._serves and not self._writer.queue.refusal:
            await self._writer.queue.poll()  # who cannot write is not ready, also when idle
        rows = await self._sessions.fetch(_CHANGES, ())
        count: int = rows[0][0]
        return count

    def snapshot(self) -> AbstractAsyncContextManager[Snapshot]:
        return one_moment(self._url)

    async def check(self) -> Sequence[str]:
        return []  # the server looks after its own files

    async def close(self) -> None:
        await self._writer.stop()
        await self._sessions.close()
