"""Opening a store by its URL, and saying plainly why it cannot be opened."""

import asyncio
import os
from collections.abc import Iterable
from pathlib import Path

from carnet.errors import ConfigInvalid
from carnet.ports.clock import Clock, Ids
from carnet.ports.trust import Peer
from carnet.stores import secrets_file, sqlite
from carnet.stores.lock import Lock
from carnet.stores.peers import StoredPeers
from carnet.stores.store import Store
from carnet.stores.tokens import StoredTokens

__all__ = ["Store", "open_store"]


async def open_store(
    url: str,
    *,
    base: Path,
    secrets: Path,
    clock: Clock,
    ids: Ids,
    file_peers: Iterable[Peer] = (),
    exclusive: bool,
) -> Store:
    """Open the store at a URL such as `sqlite:var/carnet.db`, relative to `base`.

    `exclusive` is for the one gateway that runs turns; others open it beside that gateway.
    """
    path = database_path(url, base)
    keys = secrets_file.load(secrets)
    lock, opened = await asyncio.to_thread(_open_files, path, clock.wall_us(), exclusive=exclusive)
    worker = ids.token()[:12]
    database = sqlite.SqliteDatabase(opened, worker=worker, alone=exclusive)
    store = Store(
        database=database,
        tokens=StoredTokens(database, keys, ids),
        peers=StoredPeers(database, keys, file_peers),
        clock=clock,
        worker=worker,
        release=None if lock is None else lock.release,
    )
    try:
        await store.refresh()
    except BaseException:
        await store.close()
        raise
    return store


def database_path(url: str, base: Path) -> Path:
    """The file that a URL names."""
    scheme, _, rest = url.partition(":")
    if scheme in {"postgresql", "postgres"}:
        raise _invalid("PostgreSQL is not supported by this version yet; use sqlite:var/carnet.db")
    if scheme != "sqlite" or not rest or rest == ":memory:":
        raise _invalid("it must name a file, such as sqlite:var/carnet.db")
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
        raise _invalid(f"the folder {folder} does not exist; create it with: mkdir -p {folder}")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise _invalid(f"the folder {folder} cannot be written; give this user the right to it")


def _invalid(reason: str) -> ConfigInvalid:
    return ConfigInvalid(key="[store] url", reason=reason)
