"""Bringing a database to the layout this program knows.

Law 1. All that is missing is applied in one transaction: the layout is the old one or the new one.
Law 2. A migration that was applied is never edited: its checksum is kept and compared.
"""

import re
from collections.abc import Sequence
from hashlib import sha256
from importlib import resources
from typing import Final

from msgspec import Struct

from carnet.errors import ConfigInvalid
from carnet.faults import point
from carnet.stores.database import Row
from carnet.stores.turn.row import SqlConnection

_FILE: Final = re.compile(r"([0-9]{4})_([a-z_]+)\.([a-z]+)\.sql", re.ASCII)
_STATEMENT_END: Final = re.compile(r";\n\s*(?:\n|\Z)", re.ASCII)

TABLE: Final = (
    "CREATE TABLE IF NOT EXISTS migration (n INTEGER PRIMARY KEY, name TEXT NOT NULL,"
    " checksum TEXT NOT NULL, applied INTEGER NOT NULL)"
)
APPLIED: Final = "SELECT n, name, checksum FROM migration ORDER BY n"
NOTE: Final = "INSERT INTO migration (n, name, checksum, applied) VALUES (?, ?, ?, ?)"


class Migration(Struct, frozen=True):
    """One file of `migrations/`."""

    n: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """The SHA-256 of the file."""
        return sha256(self.text.encode()).hexdigest()

    @property
    def statements(self) -> list[str]:
        """Its statements; each ends with a semicolon and an empty line."""
        return [part for part in _STATEMENT_END.split(self.text) if part.strip()]


def migrations(driver: str) -> list[Migration]:
    """The files for one driver, in order."""
    found: list[Migration] = []
    for file in (resources.files("carnet.stores") / "migrations").iterdir():
        match = _FILE.fullmatch(file.name)
        if match is not None and match[3] == driver:
            found.append(Migration(int(match[1]), match[2], file.read_text("utf-8")))
    return sorted(found, key=lambda migration: migration.n)


def missing(known: Sequence[Migration], applied: Sequence[Row]) -> list[Migration]:
    """The migrations to apply. Refuses a database that does not fit this program."""
    by_number = {migration.n: migration for migration in known}
    for n, name, checksum in applied:
        migration = by_number.pop(n, None)
        if migration is None:
            raise unusable(
                f"the database was written by a newer Carnet (migration {n:04}_{name});"
                " install that version, or restore a backup from before"
            )
        if migration.checksum != checksum:
            raise unusable(
                f"migration {n:04}_{name} was edited after it was applied to this database;"
                " restore the file as it was and put the change into a new migration"
            )
    return list(by_number.values())


def unusable(reason: str) -> ConfigInvalid:
    """Why a store cannot be used, by the key that names it."""
    return ConfigInvalid(key="[store] url", reason=reason)


def migrate(connection: SqlConnection, known: Sequence[Migration], *, now: int) -> int:
    """Apply what is missing; how many that were."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(TABLE)
        todo = missing(known, connection.execute(APPLIED).fetchall())
        for migration in todo:
            _apply(connection, migration)
            note = (migration.n, migration.name, migration.checksum, now)
            connection.execute(NOTE, note)
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
    return len(todo)


def _apply(connection: SqlConnection, migration: Migration) -> None:
    statements = migration.statements
    for index, statement in enumerate(statements):
        if index == len(statements) // 2:
            point("migrate.mid")
        connection.execute(statement)
