"""Putting a backup back: into the store of a configuration, on either database.

Law 1. The file is only read. A copy of it is brought to today's layout, checked and opened with the
       secrets that are here; nothing is touched before all of that went well.
Law 2. A store that gateways use is refused, and so is one that holds anything unless replacing it
       was asked for.
Law 3. One transaction: whenever it ends, by a kill too, the store is the old one or the new one.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.config import Settings, secret_path
from carnet.errors import ConfigInvalid, UsageInvalid
from carnet.faults import point
from carnet.runtime.system import SystemClock
from carnet.stores.copy import Progress, copy_all, count_rows, refuse_filled
from carnet.stores.database import Snapshot
from carnet.stores.ledger.verification import verify
from carnet.stores.lock import Lock
from carnet.stores.open import database_path, is_postgres, postgres_driver
from carnet.stores.secrets import secrets_file
from carnet.stores.secrets.secrets_file import Keys
from carnet.stores.snapshots import SqliteSnapshot, all_rows
from carnet.stores.sqlite import driver as sqlite
from carnet.stores.turn.finish_rules import Seals

_REPLACE: Final = "Give --force to replace all that it holds with the backup."
_MADE_WITH: Final = (
    "SELECT key_id FROM own_key WHERE active = 1"
    " UNION SELECT key_id FROM token WHERE revoked IS NULL"
)


class Restored(Struct, frozen=True, kw_only=True):
    """What a store holds now."""

    rows: dict[str, int]  # of each table
    faults: int  # of the ledger, in the store as in the file
    migrations: int = 0  # that its layout was behind ours


async def restore_from(
    settings: Settings, file: Path, *, replaces: bool, progress: Progress | None = None
) -> Restored:
    """Put a backup into the store of a configuration."""
    secrets = secret_path(settings.store.secrets, settings.base)
    keys = secrets_file.load(secrets)
    _check_there(file)
    if is_postgres(settings.store.url):
        with TemporaryDirectory(prefix="carnet-restore-") as folder:
            copy = Path(folder) / "backup.db"
            migrations = await _copied(file, copy, keys, secrets)
            made = await _to_postgres(settings, copy, keys, replaces=replaces, progress=progress)
            return replace(made, migrations=migrations)
    path = database_path(settings.store.url, settings.base)
    with _locked(path, file), TemporaryDirectory(prefix=".restore-", dir=path.parent) as folder:
        copy = Path(folder) / "backup.db"
        migrations = await _copied(file, copy, keys, secrets)
        return await _to_sqlite(path, copy, keys, migrations, replaces=replaces)


def _check_there(file: Path) -> None:
    if not file.is_file():
        raise UsageInvalid(
            reason=f"There is no file {file}.", fix="Name one that 'carnet backup' has written."
        )


@contextmanager
def _locked(path: Path, file: Path) -> Iterator[None]:
    if path.exists() and file.samefile(path):
        raise UsageInvalid(reason=f"{file} is the store itself.", fix="Name a backup of it.")
    try:
        lock = Lock.take(path)
    except UsageInvalid as error:
        fix = "Stop it first: what it acknowledges meanwhile would be lost."
        raise UsageInvalid(reason=error.safe_text, fix=fix) from None
    try:
        yield
    finally:
        lock.release()


async def _copied(file: Path, copy: Path, keys: Keys, secrets: Path) -> int:
    """Copy and check a backup; how many migrations its layout was behind."""
    os.close(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    try:
        migrations = await asyncio.to_thread(
            sqlite.copy_aside, file, copy, now=SystemClock().wall_us()
        )
    except ConfigInvalid as error:
        reason = f"{file} cannot be restored: {error.facts['reason']}."
        raise UsageInvalid(reason=reason, fix="Nothing was changed.") from None
    with _looking(copy) as snapshot:
        made_with = {key_id for (key_id,) in await all_rows(snapshot, _MADE_WITH)}
    if made_with and keys.key_id not in made_with:
        raise ConfigInvalid(key="[store] secrets", reason=_other_secrets(file, secrets))
    return migrations


def _other_secrets(file: Path, secrets: Path) -> str:
    beside = file.with_name(file.name + ".secrets")
    source = quote(str(beside)) if beside.exists() else "KEPT"
    return (
        f"{file} was made with other secrets than {secrets}, which would open nothing in it;"
        f" nothing was changed. Put the secrets of that store there first:"
        f" cp {source} {quote(str(secrets))}"
    )


@contextmanager
def _looking(path: Path) -> Iterator[Snapshot]:
    with closing(sqlite.connect_to_look(path)) as connection:
        yield SqliteSnapshot(connection)


async def _to_sqlite(
    path: Path, copy: Path, keys: Keys, migrations: int, *, replaces: bool
) -> Restored:
    if not replaces:
        await _refuse_filled(path)
    with _looking(copy) as snapshot:
        rows = await count_rows(snapshot)
        faults = (await verify(snapshot, Seals(keys.names))).fault_count
    sqlite.complete(copy)  # looking has left its marks
    point("restore.checked")
    try:
        await asyncio.to_thread(sqlite.refill, path, copy, lambda: point("restore.mid"))
    except ConfigInvalid as error:
        aside = quote(f"{path.parent}/old")
        fix = (
            "Nothing was changed. If it is damaged, set it aside with the files beside it, and"
            f" restore again:\nmkdir {aside} && mv {quote(str(path))}* {aside}"
        )
        raise UsageInvalid(reason=f"{error.facts['reason']}.", fix=fix) from None
    point("restore.done")
    return Restored(rows=rows, migrations=migrations, faults=faults)


def _is_nothing(path: Path) -> bool:
    return not path.exists() or not path.stat().st_size


async def _refuse_filled(path: Path) -> None:
    if _is_nothing(path):
        return
    try:
        with _looking(path) as snapshot:
            await refuse_filled(snapshot, _REPLACE)
    except ConfigInvalid as error:
        reason = f"What is there cannot be read as a store: {error.facts['reason']}."
        raise UsageInvalid(reason=reason, fix=_REPLACE) from None


async def _to_postgres(
    settings: Settings,
    copy: Path,
    keys: Keys,
    *,
    replaces: bool,
    progress: Progress | None,
) -> Restored:
    def on_the_way(table: str, done: int, total: int) -> None:
        point("restore.mid")
        if progress is not None:
            progress(table, done, total)

    point("restore.checked")
    target = postgres_driver().refilling(
        settings.store.url, now=SystemClock().wall_us(), keeps="" if replaces else _REPLACE
    )
    with _looking(copy) as source:
        async with target as landing:
            copied = await copy_all(source, landing, Seals(keys.names), on_the_way)
    point("restore.done")
    return Restored(rows=copied.rows, faults=copied.faults)
