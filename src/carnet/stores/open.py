"""Opening a store by its URL, and saying plainly why it cannot be opened."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from shlex import quote
from types import ModuleType
from typing import Final

from carnet.core.people.proof import Spending
from carnet.errors import ConfigInvalid, OutcomeUnknown, Overloaded, StorageUnavailable
from carnet.ports.trust.keys import PinnedKey
from carnet.ports.trust.trust import Peer
from carnet.ports.world.clock import Clock, Ids
from carnet.stores.commit.queue import MOST_WAITING
from carnet.stores.database import Database
from carnet.stores.dialogues.journal import DialogueJournal
from carnet.stores.ledger.budgets import StoredBudgets
from carnet.stores.ledger.vouchers import StoredVouchers
from carnet.stores.lock import Lock
from carnet.stores.migration import unusable
from carnet.stores.secrets import secrets_file
from carnet.stores.sqlite import driver as sqlite
from carnet.stores.sqlite.reader import SqliteReader
from carnet.stores.store import LEASE_SECONDS, Store, Worker
from carnet.stores.trust.callers import StoredCallers
from carnet.stores.trust.delegations import StoredDelegations
from carnet.stores.trust.own_keys import StoredKeys
from carnet.stores.trust.peers import StoredPeers
from carnet.stores.trust.people import StoredPeople
from carnet.stores.trust.pinned_keys import StoredPinnedKeys
from carnet.stores.trust.sessions import StoredSessions
from carnet.stores.trust.tokens import StoredTokens
from carnet.stores.trust.trust import StoredTrust
from carnet.stores.turn.finish_rules import Seals
from carnet.stores.turn.interrupts import WAIT_HOURS
from carnet.stores.turn.row import SqlConnection
from carnet.stores.upkeep.retention import TASK_HOURS, RetentionHours

__all__ = ["Store", "is_postgres", "migrate_store", "open_journal", "open_store", "start_store"]

START_SECONDS: Final = 30.0  # that a server which was reached may take to answer whoever starts
AGAIN_SECONDS: Final = 0.2


async def open_store(
    url: str,
    *,
    base: Path,
    secrets: Path,
    clock: Clock,
    ids: Ids,
    file_peers: Iterable[Peer] = (),
    file_keys: Iterable[PinnedKey] = (),
    exclusive: bool,
    lease_seconds: float = LEASE_SECONDS,
    most_waiting: int = MOST_WAITING,
    task_hours: int = TASK_HOURS,
    wait_hours: int = WAIT_HOURS,
) -> Store:
    """Open the store at a URL: `sqlite:var/carnet.db`, relative to `base`, or `postgresql://...`.

    `exclusive` is for a gateway that runs turns: on SQLite the only one, on PostgreSQL one of many.
    Others open it beside the gateways. An ended task is kept for `task_hours`.
    """
    keys = secrets_file.load(secrets)
    seals = Seals(keys.names)
    worker = ids.token()[:12]
    database: Database
    lock: Lock | None = None
    if is_postgres(url):
        database = await _postgres(
            url, worker=worker, seals=seals, serves=exclusive, most_waiting=most_waiting
        )
    else:
        path, now = database_path(url, base), clock.wall_us()
        lock, database = await _sqlite(
            path, now, worker=worker, seals=seals, alone=exclusive, most_waiting=most_waiting
        )
    trust = StoredTrust(
        tokens=StoredTokens(database, keys, ids),
        people=StoredPeople(database),
        peers=StoredPeers(database, keys, file_peers),
        keys=StoredKeys(database, keys, clock),
        pinned=StoredPinnedKeys(database, file_keys),
        delegations=StoredDelegations(database, clock),
        vouchers=StoredVouchers(database, clock),
        callers=StoredCallers(database, keys, ids),
        budgets=StoredBudgets(database),
        sessions=StoredSessions(database, keys, clock, ids),
    )
    release = None if lock is None else lock.release
    us = Worker(name=worker, serves=exclusive, lease_seconds=lease_seconds, release=release)
    hours = RetentionHours(task_hours, wait_hours)
    return await _refreshed(database, trust, keys, clock, us, hours)


async def start_store(
    store: Store,
    url: str,
    limits: Mapping[str, Spending] | None = None,
    *,
    seconds: float = START_SECONDS,
) -> None:
    """Take an open store into service, with the budgets that the configuration has.

    A server that was reached may take some seconds to answer.
    """

    async def start() -> None:
        await store.start(limits)

    await (_patiently(start, seconds) if is_postgres(url) else start())


async def _patiently(step: Callable[[], Awaitable[None]], seconds: float = START_SECONDS) -> None:
    """Do again what a server answers late: who starts may wait, where a request is refused."""
    trouble = "no answer"
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    await step()
                except (StorageUnavailable, Overloaded, OutcomeUnknown) as error:
                    trouble = error.detail
                else:
                    return
                await asyncio.sleep(AGAIN_SECONDS)
    except TimeoutError:
        reason = f"the database does not answer in time ({trouble}); start again"
        raise ConfigInvalid(trouble, key="[store] url", reason=reason) from None


async def open_journal(url: str, *, base: Path) -> DialogueJournal:
    """Open the journal of a driver, `sqlite:var/j.db`, relative to `base`."""
    try:
        path = database_path(url, base)
        connection, close = await asyncio.to_thread(_open_file, path)
        reader = SqliteReader(connection, asyncio.get_running_loop(), close)
        journal = DialogueJournal(reader, path)
        try:
            await journal.prepare()
        except BaseException:
            await journal.aclose()
            raise
    except ConfigInvalid as error:
        raise ConfigInvalid(error.detail, key="journal", reason=error.facts["reason"]) from None
    return journal


def _open_file(path: Path) -> tuple[SqlConnection, Callable[[], object]]:
    _check_folder(path)
    with contextlib.suppress(OSError):  # what is wrong with it, SQLite says better
        path.touch(mode=0o600)
    with sqlite.explained(path):
        connection = sqlite.connect(path)
    return connection, connection.close


async def _refreshed(
    database: Database,
    trust: StoredTrust,
    secrets: secrets_file.Keys,
    clock: Clock,
    worker: Worker,
    hours: RetentionHours,
) -> Store:
    store = Store(
        database=database, trust=trust, secrets=secrets, clock=clock, worker=worker, hours=hours
    )
    try:
        await (_patiently(store.refresh) if database.is_shared else store.refresh())
    except BaseException:
        await store.close()
        raise
    return store


def is_postgres(url: str) -> bool:
    """Whether a URL names a PostgreSQL database."""
    return url.startswith(("postgresql://", "postgres://"))


async def migrate_store(url: str, *, clock: Clock) -> int:
    """Bring a PostgreSQL database to this version's layout; how many migrations were applied."""
    applied: int = await postgres_driver().migrate(url, now=clock.wall_us())
    return applied


async def _postgres(
    url: str, *, worker: str, seals: Seals, serves: bool, most_waiting: int
) -> Database:
    driver = postgres_driver()
    await driver.check_layout(url)
    database: Database = driver.PostgresDatabase(
        url, worker=worker, seals=seals, serves=serves, most_waiting=most_waiting
    )
    return database


async def _sqlite(
    path: Path, now: int, *, worker: str, seals: Seals, alone: bool, most_waiting: int
) -> tuple[Lock | None, Database]:
    lock, opened = await asyncio.to_thread(_open_files, path, now, exclusive=alone)
    try:
        return lock, sqlite.SqliteDatabase(
            opened, worker=worker, seals=seals, alone=alone, most_waiting=most_waiting
        )
    except BaseException:
        if lock is not None:
            lock.release()
        raise


def postgres_driver() -> ModuleType:
    """The PostgreSQL driver: imported late, because who uses SQLite need not install asyncpg."""
    try:
        from carnet.stores.postgres import driver as postgres  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise unusable(
            "PostgreSQL needs a driver that is not installed; run:"
            f" {sys.executable} -m pip install 'asyncpg>=0.31,<1'"
        ) from None
    return postgres


def database_path(url: str, base: Path) -> Path:
    """The file that a URL names."""
    scheme, _, rest = url.partition(":")
    if scheme != "sqlite" or not rest or rest == ":memory:":
        raise unusable("it must name a file, such as sqlite:var/carnet.db")
    return base / rest


def _open_files(path: Path, now: int, *, exclusive: bool) -> tuple[Lock | None, sqlite.Opened]:
    _check_folder(path)
    lock = Lock.take(path) if exclusive else None
    try:
        return lock, sqlite.open_connections(path, now=now)
    except BaseException:
        if lock is not None:
            lock.release()
        raise


def _check_folder(path: Path) -> None:
    folder = path.parent
    if not folder.is_dir():
        make = f"mkdir -p {quote(str(folder))}"
        raise unusable(f"the folder {folder} does not exist; create it with: {make}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise unusable(f"the folder {folder} cannot be written; give this user the right to it")
