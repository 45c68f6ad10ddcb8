"""Answers that people have given for the future, as the store keeps them."""

import builtins
from typing import Final

from carnet.core.people.identity import person_of
from carnet.errors import InvalidRequest
from carnet.ports.calls.inbox import Rule
from carnet.stores.database import Database, Row

MOST_RULES: Final = 500  # of one owner

_COLUMNS: Final = "n, owner, agent, kind, ceiling, used, created, tool"
# The column `tool` holds what tells a question from others of its kind.
# One that is made again is the same one, with the ceiling that was said last.
_SAME: Final = "owner = ? AND agent = ? AND kind = ? AND COALESCE(tool, '') = ? AND ended IS NULL"
_AGAIN: Final = f"UPDATE rule SET ceiling = ? WHERE {_SAME}"  # noqa: S608  # our own words
_ADD: Final = (
    "INSERT INTO rule (person, owner, agent, kind, tool, ceiling, used, created)"  # noqa: S608
    " SELECT ?, ?, ?, ?, ?, ?, 0, ?"
    f" WHERE NOT EXISTS (SELECT 1 FROM rule WHERE {_SAME})"
    " AND (SELECT COUNT(*) FROM rule WHERE owner = ? AND ended IS NULL) < ?"
)
_LIST: Final = (
    f"SELECT {_COLUMNS} FROM rule WHERE owner = ? AND ended IS NULL"  # noqa: S608  # our own words
    " ORDER BY n DESC LIMIT ?"
)
_FITTING: Final = (
    f"SELECT {_COLUMNS} FROM rule WHERE owner = ? AND ended IS NULL AND agent = ?"  # noqa: S608
    " AND kind = ? AND COALESCE(tool, '') = ?"
    " AND (ceiling IS NULL OR used + ? <= ceiling) ORDER BY n LIMIT 1"
)
# Two who use it at once do not both pass its ceiling.
_USE: Final = (
    "UPDATE rule SET used = used + ? WHERE n = ? AND ended IS NULL"
    " AND (ceiling IS NULL OR used + ? <= ceiling)"
)
_GIVE_BACK: Final = "UPDATE rule SET used = used - ? WHERE n = ?"
_END: Final = "UPDATE rule SET ended = ? WHERE owner = ? AND n = ? AND ended IS NULL"


class StoredRules:
    """The rules of one store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(
        self,
        *,
        owner: str,
        agent: str,
        kind: str,
        ceiling: int | None,
        now: int,
        question: str = "",
    ) -> None:
        """Keep one. Raises InvalidRequest for one too many of theirs."""
        same = (owner, agent, kind, question)
        row = (person_of(owner) or 0, *same, ceiling, now, *same, owner, MOST_RULES)
        kept, added = await self._database.transact([(_AGAIN, (ceiling, *same)), (_ADD, row)])
        if not kept and not added:
            raise InvalidRequest("remember", f"would be rule {MOST_RULES + 1}; take one back first")

    async def list(self, owner: str) -> builtins.list[Rule]:
        """Those of somebody that hold, the newest first."""
        return [_read(row) for row in await self._database.fetch(_LIST, (owner, MOST_RULES))]

    async def use(
        self, *, owner: str, agent: str, kind: str, amount: int, question: str = ""
    ) -> int | None:
        """Use one that fits, for so much; its number, or None if none does."""
        for row in await self._database.fetch(_FITTING, (owner, agent, kind, question, amount)):
            if await self._database.execute(_USE, (amount, row[0], amount)):
                return int(row[0])
        return None

    async def give_back(self, n: int, amount: int) -> None:
        """Take back what was used of one for nothing."""
        await self._database.execute(_GIVE_BACK, (amount, n))

    async def end(self, owner: str, n: int, now: int) -> bool:
        """Let one hold no more; False if there is none of theirs."""
        return await self._database.execute(_END, (now, owner, n)) > 0


def _read(row: Row) -> Rule:
    n, owner, agent, kind, ceiling, used, created, question = row
    return Rule(
        n=n,
        owner=owner,
        chain=agent,
        kind=kind,
        ceiling=ceiling,
        used=used,
        created=created,
        question=question or "",
    )
