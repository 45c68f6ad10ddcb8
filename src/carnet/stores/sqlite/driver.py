"""The SQLite driver: the one module that imports sqlite3.

WAL with synchronous=FULL: a commit is on the disk before it is acknowledged. One connection writes
(`writer`), one reads (`reader`), each on a thread of its own.

Law 1. Nothing of a transaction reaches the disk before its commit (cache_spill is off), so an error
       before the commit means that nothing was written.
Law 2. Turns are written by one process, which holds the lock file; others may read, and write the
       rest (tokens, peers) beside it.
"""

import asyncio
import contextlib
import sqlite3
from asyncio import Event, Future
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from itertools import count
from pathlib import Path
from sqlite3 import Connection
from typing import Final, NamedTuple

from carnet.core.chain.turn import Turn
from carnet.errors import ConfigInvalid, StorageUnavailable
from carnet.ports.calls.turns import Fenced, TurnClaim, TurnFinish, Verdict
from carnet.stores.commit.batch import Fault
from carnet.stores.commit.queue import MOST_WAITING
from carnet.stores.database import Flush, Lease, Row, Snapshot, Statement, Value
from carnet.stores.migration import APPLIED, migrate, migrations, missing
from carnet.stores.shares import Shares
from carnet.stores.snapshots import SqliteSnapshot
from carnet.stores.sqlite.blame import PRIMARY, blame, is_at_the_limit
from carnet.stores.sqlite.claims import ClaimBatch, FinishBatch, Numbers, append
from carnet.stores.sqlite.reader import SqliteReader
from carnet.stores.sqlite.run_names import RunNames
from carnet.stores.sqlite.writer import SqliteWriter
from carnet.stores.turn.finish_rules import Ended, Seals, Shard

# The module looks for a converter of every NULL and of all bytes that it is given, and without one
# makes an exception for each, of its own and unseen: two thirds of what it took to insert a turn.
# These give back what they are given.
sqlite3.register_adapter(type(None), dict[None, None]().get)
sqlite3.register_adapter(bytes, bytes)

BUSY_SECONDS: Final = 3.0  # less than callers wait, so that they are told why

# A page of 8 KiB holds three journal rows of 2 KB where 4 KiB holds one: 20 % less CPU a call.
# A checkpoint each 8 MB: larger ones save a little more CPU and make the slowest call slower.
_SETTINGS: Final = (
    "PRAGMA page_size = 8192",
    "PRAGMA journal_mode = WAL",
    "PRAGMA synchronous = FULL",
    "PRAGMA wal_autocheckpoint = 1000",
    "PRAGMA cache_size = -32768",
    "PRAGMA cache_spill = OFF",
    "PRAGMA trusted_schema = OFF",
    "PRAGMA secure_delete = ON",  # FAST leaves on free pages what rows held before a change
)

_HAS_LAYOUT: Final = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'migration'"
_PAGES: Final = 32  # that are copied between two looks at whether to go on
_LAST_POSTING: Final = "SELECT COALESCE(MAX(n), 0) FROM ledger"
_SHARD_END: Final = "SELECT postings, head FROM lane WHERE id = ?"

_RENEW: Final = (
    "INSERT INTO worker (id, started, until) VALUES (?, ?, ?)"
    " ON CONFLICT (id) DO UPDATE SET until = excluded.until"
)


class Opened(NamedTuple):
    """A connection to write with and one to read with."""

    writing: Connection
    reading: Connection
    path: Path


def open_connections(path: Path, *, now: int) -> Opened:
    """Open a file and bring it to today's layout, or say what is wrong with it."""
    opened: list[Connection] = []
    try:
        with contextlib.suppress(OSError):  # what is wrong with it, SQLite says better
            path.touch(mode=0o600)
        opened.append(connect(path))
        opened.append(connect(path))
        opened[0].execute("PRAGMA cache_spill = ON")  # a table that is made anew is not held whole
        migrate(opened[0], migrations("sqlite"), now=now)
        opened[0].execute("PRAGMA cache_spill = OFF")
    except sqlite3.Error as error:
        _close(opened)
        raise _unusable(path, error) from None
    except BaseException:
        _close(opened)
        raise
    return Opened(opened[0], opened[1], path)


def connect(path: Path) -> Connection:
    """One connection with the settings of this house."""
    connection = sqlite3.connect(
        path,
        timeout=BUSY_SECONDS,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    try:
        for setting in _SETTINGS:
            connection.execute(setting)
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def connect_to_look(path: Path) -> Connection:
    """A connection that sees one moment of the file, also of a damaged one."""
    with explained(path):
        connection = connect(path)
        connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
        connection.execute("BEGIN")
        connection.execute(APPLIED).fetchall()  # the moment is that of the first look
        return connection


def copy_online(path: Path, draft: Path) -> None:
    """Copy a file while others write it: what was committed when the copy began."""
    with (
        explained(path),
        contextlib.closing(connect(path)) as source,
        contextlib.closing(sqlite3.connect(draft)) as target,
    ):
        source.backup(target)
    complete(draft)


def copy_aside(file: Path, draft: Path, *, now: int) -> int:
    """Copy a file that is only read, and bring the copy to today's layout; by how many steps."""
    # Beside a file that stands alone nothing is written: it may be where nothing can be.
    alone = not file.with_name(f"{file.name}-wal").exists()
    uri = f"{file.absolute().as_uri()}?mode=ro{'&immutable=1' * alone}"
    with (
        explained(file),
        contextlib.closing(sqlite3.connect(uri, uri=True)) as source,
        contextlib.closing(sqlite3.connect(draft)) as target,
    ):
        if not source.execute(_HAS_LAYOUT).fetchall():
            raise ConfigInvalid(key="[store] url", reason=f"{file} is no store of Carnet")
        source.backup(target)
    with explained(file), contextlib.closing(connect(draft)) as connection:
        applied = migrate(connection, migrations("sqlite"), now=now)
    complete(draft)
    return applied


def refill(path: Path, source: Path, on_the_way: Callable[[], object]) -> None:
    """Put all of another file into a store, in one transaction: it holds the old, or the new."""
    with contextlib.suppress(OSError):  # what is wrong with it, SQLite says better
        path.touch(mode=0o600)
    with (
        explained(path),
        contextlib.closing(sqlite3.connect(source)) as new,
        contextlib.closing(connect(path)) as target,
    ):
        sizes = [each.execute("PRAGMA page_size").fetchone()[0] for each in (new, target)]
        if sizes[0] != sizes[1]:  # which a log does not have
            new.executescript(f"PRAGMA page_size = {sizes[1]}; VACUUM")
        target.execute("PRAGMA cache_spill = ON")  # what has not been committed is not read
        target.execute("BEGIN IMMEDIATE")  # a copy would wait for ever for somebody who writes
        target.execute("ROLLBACK")
        new.backup(target, pages=_PAGES, progress=lambda _, left, __: left and on_the_way())


def create(draft: Path, *, now: int) -> Connection:
    """A connection to a new file with today's layout."""
    with explained(draft):
        connection = connect(draft)
        connection.execute("PRAGMA cache_spill = ON")  # nobody reads it before it is whole
        migrate(connection, migrations("sqlite"), now=now)
        return connection


def complete(draft: Path) -> None:
    """Make a file that was written stand alone, and check it."""
    with (
        explained(draft),
        contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as connection,
    ):
        connection.execute("PRAGMA journal_mode = DELETE")
        wrong = [text for (text,) in connection.execute("PRAGMA quick_check(10)") if text != "ok"]
        missing(migrations("sqlite"), connection.execute(APPLIED).fetchall())
    if wrong:
        reason = f"the database is damaged ({wrong[0]}); restore a backup from before"
        raise ConfigInvalid("; ".join(wrong), key="[store] url", reason=reason)


def _close(connections: list[Connection]) -> None:
    for connection in connections:
        connection.close()


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Say what is wrong with a file where SQLite cannot use it."""
    try:
        yield
    except sqlite3.Error as error:
        raise _unusable(path, error) from None


def _unusable(path: Path, error: sqlite3.Error) -> ConfigInvalid:
    """What is wrong with a file, and what to do."""
    code = getattr(error, "sqlite_errorcode", 0) & PRIMARY
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        reason = "another process is writing it and does not stop; try again in a moment"
    elif code == sqlite3.SQLITE_NOTADB:
        reason = "it is not a SQLite database; move it away or name another file"
    elif code in {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}:
        reason = "it cannot be written; give this user the right to the file and its folder"
    elif code == sqlite3.SQLITE_FULL:
        reason = "there is no room on its disk; make room and try again"
    else:
        reason = f"it cannot be used ({error}); restore a backup, or name another file"
    return ConfigInvalid(str(error), key="[store] url", reason=f"{path}: {reason}")


class SqliteDriver:
    """The writing connection, as the writer's thread sees it."""

    def __init__(
        self, connection: Connection, worker: str, seals: Seals, path: Path, *, alone: bool
    ) -> None:
        """`alone`: turns are written here and by nobody else."""
        self._connection = connection
        self._path = path
        self._worker = worker
        self._numbers = Numbers(connection)
        self._names = RunNames(connection if alone else None)
        self._postings = count(connection.execute(_LAST_POSTING).fetchone()[0] + 1)
        self._shard = Shard(seals, worker)
        for end in connection.execute(_SHARD_END, (self._shard.name,)):
            self._shard.resume(*end)

    def begin(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        if self._names.are_many:
            self._names.begin(self._connection)

    def commit(self) -> None:
        self._connection.execute("COMMIT")
        self._shard.keep()
        if self._names.have_changed:
            self._names.keep()

    def rollback(self) -> None:
        self._shard.back()
        self._names.back()
        if self._connection.in_transaction:  # some errors have rolled back already
            self._connection.execute("ROLLBACK")

    def savepoint(self) -> None:
        self._shard.mark()
        self._names.mark()
        self._connection.execute("SAVEPOINT one")

    def release(self) -> None:
        self._connection.execute("RELEASE one")

    def undo(self) -> None:
        self._shard.undo()
        self._names.undo()
        self._connection.execute("ROLLBACK TO one")
        self._connection.execute("RELEASE one")

    def close(self) -> None:
        self._connection.close()

    def claim(self, claims: Sequence[TurnClaim]) -> list[Verdict]:
        return ClaimBatch(self._connection, self._numbers, self._names, self._worker).claim(claims)

    def append(self, flushes: Sequence[Flush]) -> list[Fenced | None]:
        return append(self._connection, flushes)

    def finish(self, finishes: Sequence[TurnFinish]) -> list[Ended]:
        return FinishBatch(self._connection, self._shard, self._postings).finish(finishes)

    def write(self, statements: Sequence[Statement]) -> list[int]:
        return [self._connection.execute(sql, args).rowcount for sql, args in statements]

    def written(self) -> int:
        return self._connection.total_changes

    def changes(self) -> int:
        # On the writing connection: there it counts the commits of others, not our own.
        version: int = self._connection.execute("PRAGMA data_version").fetchone()[0]
        return version

    def blame(self, error: Exception) -> Fault:
        code = getattr(error, "sqlite_errorcode", 0)
        if code == sqlite3.SQLITE_IOERR_WRITE and is_at_the_limit(self._path):
            return "full"
        return blame(error)


def _not_ours(_: TurnClaim) -> Future[Verdict]:
    raise StorageUnavailable("turns are run by the process that holds the lock file")


class SqliteDatabase:
    """A `Database` over one file. Made on the event loop that will use it."""

    is_shared = False
    row_lock = ""  # a transaction that writes has the whole file
    settled = "1 = 1"  # one writer: its numbers are committed in their order
    abandoned = "1 = 1"  # who asks holds the lock file, and asks before its first claim

    def __init__(
        self,
        opened: Opened,
        *,
        worker: str,
        seals: Seals,
        alone: bool,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        loop = asyncio.get_running_loop()
        self._path = opened.path
        with explained(opened.path):
            driver = SqliteDriver(opened.writing, worker, seals, opened.path, alone=alone)
        self._writer = SqliteWriter(driver, loop, most_waiting)
        self._reader = SqliteReader(opened.reading, loop, opened.reading.close)
        self._shares = Shares()
        queue = self._writer.queue
        self.claim: Final = queue.claim if alone else _not_ours
        self.append: Final = queue.append
        self.finish: Final = queue.finish

    @property
    def trouble(self) -> str:
        return self._writer.queue.trouble

    @property
    def refusing(self) -> Event:
        return self._writer.queue.refusing

    async def fetch(self, sql: str, args: Sequence[Value] = ()) -> list[Row]:
        return await self._shares.fetch(lambda: self._reader.fetch(sql, args))

    async def execute(self, sql: str, args: Sequence[Value] = ()) -> int:
        return (await self._writer.queue.write([(sql, args)]))[0]

    async def transact(self, statements: Sequence[Statement]) -> list[int]:
        return await self._writer.queue.write(statements)

    def tell(self, changed: Callable[[Sequence[Turn]], None]) -> None:
        self._writer.queue.changed = changed

    async def renew(self, lease: Lease) -> None:
        await self.execute(_RENEW, (lease.worker, lease.now, lease.until))

    async def changes(self) -> int:
        changes: int = await self._writer.queue.poll()
        return changes

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Snapshot]:
        connection = await asyncio.to_thread(connect_to_look, self._path)
        try:
            yield SqliteSnapshot(connection)
        finally:
            connection.close()

    async def check(self) -> Sequence[str]:
        rows = await self.fetch("PRAGMA quick_check(10)")
        return [text for (text,) in rows if text != "ok"]

    async def close(self) -> None:
        await self._writer.stop()
        await self._reader.stop()
