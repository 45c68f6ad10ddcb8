"""What people have of one kind, schedules or hooks, by its names: `ports.calls.triggers.Owned`.

Law. Every look-up is by the person and the name: what is not hers does not exist for her.
"""
# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

import builtins
from collections.abc import Callable, Sequence
from typing import Final, Generic, Literal, TypeVar

from carnet.errors import TooManyTriggers, TriggerExists
from carnet.ports.calls.triggers import TriggerKind
from carnet.stores.database import Database, Row, Statement, Value, marks
from carnet.stores.triggers.firings import FORGET_FIRINGS

_Kept = TypeVar("_Kept")
Table = Literal["schedule", "hook"]

_HERS: Final = " WHERE person = ? AND name = ?"


class OwnedRows(Generic[_Kept]):
    """The rows of one table."""

    def __init__(
        self,
        database: Database,
        table: Table,
        kind: TriggerKind,
        columns: str,
        read: Callable[[Row], _Kept],
        *,
        forgets: Sequence[str] = (),
    ) -> None:
        """`read` makes one of the columns of its row; `kind` is what its firings are known by.

        `forgets` are what else is deleted with one, by the person and the name.
        """
        self._forgets = forgets
        self._database = database
        self._kind = kind
        self._read = read
        self._table = table
        self._select = f"SELECT {columns} FROM {table}"

    async def add(self, row: dict[str, Value], *, most: int) -> _Kept:
        """Keep one. Raises TriggerExists, or TooManyTriggers where she has `most`."""
        person, name = int(str(row["person"])), str(row["name"])
        sql = (
            f"INSERT INTO {self._table} ({', '.join(row)}) SELECT {marks(len(row))}"
            f" WHERE (SELECT COUNT(*) FROM {self._table} WHERE person = ?) < ?"
            " AND EXISTS (SELECT 1 FROM person WHERE n = ? AND ended IS NULL)"
            " ON CONFLICT DO NOTHING"
        )
        added = await self._database.execute(sql, (*row.values(), person, most, person))
        found = await self.find(person, name)
        if added and found is not None:
            return found
        if added or found is not None:  # or deleted in this moment
            raise TriggerExists
        raise TooManyTriggers(limit=most)

    async def list(self, person: int) -> builtins.list[_Kept]:
        """Hers, by name."""
        sql = f"{self._select} WHERE person = ? ORDER BY name"
        return [self._read(row) for row in await self._database.fetch(sql, (person,))]

    async def find(self, person: int, name: str) -> _Kept | None:
        """One of hers."""
        rows = await self._database.fetch(self._select + _HERS, (person, name))
        return self._read(rows[0]) if rows else None

    async def pause(self, person: int, name: str, now: int) -> bool:
        """Let it rest; False if there is none."""
        sql = f"UPDATE {self._table} SET paused = COALESCE(paused, ?){_HERS}"
        return await self._database.execute(sql, (now, person, name)) > 0

    async def resume(
        self, person: int, name: str, *, token: int, following: int | None = None
    ) -> bool:
        """Let it go on with this token, a schedule at its next tick; False if there is none."""
        changes: dict[str, Value] = {"paused": None, "token": token}
        if self._table == "schedule":
            changes["next"] = following
        settings = ", ".join([f"{column} = ?" for column in changes])
        sql = f"UPDATE {self._table} SET {settings}{_HERS}"
        return await self._database.execute(sql, (*changes.values(), person, name)) > 0

    async def delete(self, person: int, name: str) -> bool:
        """Forget it, and what it was to begin; False if there is none."""
        whose = (person, name)
        statements: list[Statement] = [
            (FORGET_FIRINGS, (self._kind, *whose)),
            *[(sql, whose) for sql in self._forgets],
            (f"DELETE FROM {self._table}{_HERS}", whose),
        ]
        return (await self._database.transact(statements))[-1] > 0
