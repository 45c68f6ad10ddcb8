"""Whose an error of SQLite is: a row's, a full disk's, another process's, or the store's."""

import resource
import sqlite3
from pathlib import Path
from typing import Final

from carnet.stores.commit.batch import Fault

# What no row can be blamed for. Everything else that a statement raises is about its own values.
_STORE_CODES: Final = frozenset(
    {
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_INTERRUPT,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_PROTOCOL,
        sqlite3.SQLITE_NOTADB,
    }
)
PRIMARY: Final = 0xFF  # the low byte of an extended code


def blame(error: Exception) -> Fault:
    """Whether an error is the row's, a full disk, another process that writes, or the store's."""
    if not isinstance(error, sqlite3.Error):
        return "row"
    code = getattr(error, "sqlite_errorcode", 0) & PRIMARY
    if code == sqlite3.SQLITE_FULL:
        return "full"
    if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}:
        return "busy"
    return "store" if code in _STORE_CODES else "row"


def is_at_the_limit(path: Path) -> bool:
    """Whether a file has grown to the largest that this process may write (`ulimit -f`).

    SQLite tells that as a failure of the disk, but nothing was written and nothing is lost: it is
    a full disk in all but its name. A write that fails within a file is not this.
    """
    most, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    files = (path, path.with_name(f"{path.name}-wal"))
    return any(file.stat().st_size == most for file in files if file.exists())
