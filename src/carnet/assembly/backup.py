"""Keeping a store safe, and moving it: a backup into a file, a move to another database.

Law 1. A backup is taken while gateways run, and is what was committed when it began.
Law 2. A move refuses a store that a gateway uses, and a target that holds anything. The source is
       not changed.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

from msgspec import Struct

from carnet.config import Settings, secret_path
from carnet.errors import UsageInvalid
from carnet.runtime.system import SystemClock
from carnet.stores.copy import Copied, Landing, Progress, SqliteLanding, copy_all
from carnet.stores.database import Snapshot
from carnet.stores.ledger.verification import verify
from carnet.stores.lock import Lock
from carnet.stores.open import database_path, is_postgres, postgres_driver
from carnet.stores.secrets import secrets_file
from carnet.stores.secrets.draft import check_place, draft_of
from carnet.stores.snapshots import SqliteSnapshot
from carnet.stores.sqlite import driver as sqlite
from carnet.stores.turn.finish_rules import Seals


class Backup(Struct, frozen=True, kw_only=True):
    """What was written."""

    file: Path
    size: int
    secrets: Path | None
    faults: int  # of the ledger, in the file as in the store


async def backup_from(
    settings: Settings,
    file: Path,
    *,
    replaces: bool,
    with_secrets: bool,
    progress: Progress | None = None,
) -> Backup:
    """Copy the store of a configuration into a SQLite file, while gateways run."""
    if not is_postgres(settings.store.url):
        _refuse_itself(file, _existing(settings))
    kept = file.with_name(file.name + ".secrets") if with_secrets else None
    for path in filter(None, (file, kept)):
        check_place(path, replaces=replaces)
    secrets = secret_path(settings.store.secrets, settings.base)
    if with_secrets:
        secrets_file.load(secrets)  # says what is wrong with it before any work is done
    if is_postgres(settings.store.url):
        faults = await _backup_postgres(settings, file, replaces=replaces, progress=progress)
    else:
        faults = await _backup_sqlite(settings, file, replaces=replaces)
    if kept is not None:
        _copy_secrets(secrets, kept, replaces=replaces)
    return Backup(file=file, size=_size(file), secrets=kept, faults=faults)


def _refuse_itself(file: Path, store: Path) -> None:
    if file.exists() and file.samefile(store):
        raise UsageInvalid(reason=f"{file} is the store itself.", fix="Name another file.")


def _size(file: Path) -> int:
    return file.stat().st_size


async def _backup_sqlite(settings: Settings, file: Path, *, replaces: bool) -> int:
    source, seals = _existing(settings), _seals(settings)
    with draft_of(file, replaces=replaces) as draft:
        await asyncio.to_thread(sqlite.copy_online, source, draft)
        with closing(sqlite.connect_to_look(draft)) as connection:
            faults = (await verify(SqliteSnapshot(connection), seals)).fault_count
        sqlite.complete(draft)  # looking has left its marks
    return faults


async def _backup_postgres(
    settings: Settings, file: Path, *, replaces: bool, progress: Progress | None
) -> int:
    seals = _seals(settings)
    async with postgres_driver().one_moment(settings.store.url) as source:
        with draft_of(file, replaces=replaces) as draft:
            async with _new_file(draft) as target:
                return (await copy_all(source, target, seals, progress)).faults


def _copy_secrets(source: Path, file: Path, *, replaces: bool) -> None:
    with draft_of(file, replaces=replaces) as draft:
        draft.write_bytes(source.read_bytes())


async def move_from(settings: Settings, url: str, *, progress: Progress | None = None) -> Copied:
    """Copy the store of a configuration to an empty database."""
    seals = _seals(settings)
    if url == settings.store.url:
        raise UsageInvalid(
            reason="The store is at that place already.", fix="Name the place to move it to."
        )
    async with _leaving(settings) as source, _landing(url, settings.base) as target:
        return await copy_all(source, target, seals, progress)


@asynccontextmanager
async def _leaving(settings: Settings) -> AsyncIterator[Snapshot]:
    if is_postgres(settings.store.url):
        async with postgres_driver().leaving(settings.store.url) as source:
            yield source
        return
    path = _existing(settings)
    lock = _locked(path)
    try:
        for connection in sqlite.open_connections(path, now=SystemClock().wall_us())[:2]:
            connection.close()
        with closing(sqlite.connect_to_look(path)) as connection:
            yield SqliteSnapshot(connection)
    finally:
        lock.release()


def _locked(path: Path) -> Lock:
    try:
        return Lock.take(path)
    except UsageInvalid as error:
        fix = "Stop it, then move the store with all that it has acknowledged by then."
        raise UsageInvalid(reason=error.safe_text, fix=fix) from None


@asynccontextmanager
async def _landing(url: str, base: Path) -> AsyncIterator[Landing]:
    if is_postgres(url):
        async with postgres_driver().landing(url, now=SystemClock().wall_us()) as target:
            yield target
        return
    path = database_path(url, base)
    if path.exists():
        raise UsageInvalid(
            reason=f"{path} exists already.", fix="Name a file that does not exist yet."
        )
    with draft_of(path) as draft:
        async with _new_file(draft) as target:
            yield target


@asynccontextmanager
async def _new_file(draft: Path) -> AsyncIterator[Landing]:
    with closing(sqlite.create(draft, now=SystemClock().wall_us())) as connection:
        yield SqliteLanding(connection)
    sqlite.complete(draft)


def _existing(settings: Settings) -> Path:
    path = database_path(settings.store.url, settings.base)
    if not os.path.lexists(path):
        raise UsageInvalid(
            reason=f"There is no store at {path} yet.",
            fix="It is made when it is first used; check [store] url with: carnet config show",
        )
    return path


def _seals(settings: Settings) -> Seals:
    return Seals(secrets_file.load(secret_path(settings.store.secrets, settings.base)).names)
