"""Reading and writing the budgets of one batch of PostgreSQL.

Law. They are locked after everything else, by their name: nothing is waited for after that. One
that a batch opens is nobody else's: its turn belongs to a run that is locked.
"""

from collections.abc import Sequence
from typing import Final, Protocol

from carnet.faults import point
from carnet.ports.calls.turns import TurnClaim, TurnFinish
from carnet.stores.database import Row
from carnet.stores.turn.budgets.book import BudgetBook
from carnet.stores.turn.budgets.rows import (
    COLUMNS,
    claimed_names,
    held_names,
    raised_names,
    read_budget,
    undone_names,
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
HOLD: Final = """
UPDATE turn SET budget = w.budget FROM unnest($1::text[], $2::bigint[]) AS w (budget, n)
WHERE turn.n = ANY (ARRAY[w.n])
"""


class LockingSession(Protocol):
    """The part of a connection that is used here."""

    async def query(self, text: str, *args: object) -> list[Row]:
        """Run one statement; its rows."""


async def lock(
    session: LockingSession,
    claims: Sequence[TurnClaim],
    finishes: Sequence[TurnFinish],
    claiming: ClaimRules,
    finishing: FinishRules,
) -> None:
    """One book for all of a batch, if anything in it holds or spends of a budget."""
    names = held_names(finishing.held.values()) if finishing.holds_budgets else []
    if any(claim.budget is not None or claim.resolution is not None for claim in claims):
        names += claimed_names(claims, claiming.known) + raised_names(claiming.pending)
    if any(finish.state == "waiting" for finish in finishes):
        names += undone_names(finishes)
    if names:
        found = await session.query(LOCK, sorted(set(names)))
        claiming.budgets = finishing.budgets = BudgetBook(map(read_budget, found))


async def write(session: LockingSession, claiming: ClaimRules, finishing: FinishRules) -> None:
    """Write those that changed, and what turns hold that were answered."""
    book, held = finishing.budgets, claiming.budgeted + finishing.budgeted
    if held:
        await session.query(HOLD, *zip(*held, strict=True))
    if book is not None and book.changed:
        rows = sorted(map(write_budget, book.changed.values()), key=lambda row: str(row[0]))
        await session.query(PUT, *zip(*rows, strict=True))
        point("budget.written")
