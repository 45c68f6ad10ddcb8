"""Reading and writing the budgets of one batch of PostgreSQL.

Law. They are locked after everything else, by their name: nothing is waited for after that. One
that a batch opens is nobody else's: its turn belongs to a run that is locked.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from carnet.faults import point
from carnet.ports.calls.turns import TurnClaim
from carnet.stores.database import Row
from carnet.stores.turn.budgets import (
    COLUMNS,
    BudgetBook,
    claimed_names,
    held_names,
    read_budget,
    write_budget,
)
from carnet.stores.turn.claim_rules import ClaimRules
from carnet.stores.turn.finish_rules import FinishRules

_NAMES: Final = ", ".join(COLUMNS)
_TEXT: Final = frozenset({"name", "parent", "run", "currency"})
_ARRAYS: Final = ", ".join(
    f"${n}::{'text' if name in _TEXT else 'bigint'}[]" for n, name in enumerate(COLUMNS, 1)
)
_SET: Final = ", ".join(f"{name} = excluded.{name}" for name in COLUMNS if name != "name")

LOCK: Final = f"""
WITH RECURSIVE found (name) AS (
    SELECT w.name FROM unnest($1::text[]) AS w (name)
    UNION SELECT b.parent FROM found f JOIN budget b ON b.name = f.name WHERE b.parent IS NOT NULL
)
SELECT {_NAMES} FROM budget WHERE name IN (SELECT f.name FROM found f) ORDER BY name FOR UPDATE
"""  # noqa: S608  our own words
PUT: Final = f"""
INSERT INTO budget ({_NAMES}) SELECT * FROM unnest({_ARRAYS}) AS w ({_NAMES})
ON CONFLICT (name) DO UPDATE SET {_SET}
"""  # noqa: S608


class LockingSession(Protocol):
    """The part of a connection that is used here."""

    async def query(self, text: str, *args: object) -> list[Row]:
        """Run one statement; its rows."""


async def lock(
    session: LockingSession,
    claims: Sequence[TurnClaim],
    claiming: ClaimRules,
    finishing: FinishRules,
) -> None:
    """One book for all of a batch, if anything in it holds or spends of a budget."""
    names = held_names(finishing.held.values()) if finishing.holds_budgets else []
    if any(claim.budget is not None for claim in claims):
        names += claimed_names(claims, claiming.known)
    if names:
        found = await session.query(LOCK, sorted(set(names)))
        claiming.budgets = finishing.budgets = BudgetBook(map(read_budget, found))


async def write(session: LockingSession, book: BudgetBook) -> None:
    """Write those that changed."""
    if book.changed:
        rows = sorted(map(write_budget, book.changed.values()), key=lambda row: str(row[0]))
        await session.query(PUT, *zip(*rows, strict=True))
        point("budget.written")
