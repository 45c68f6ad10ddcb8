"""Reading and writing the budgets of one batch of SQLite."""

# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

from collections.abc import Mapping, Sequence
from typing import Final

import carnet.faults
from carnet.faults import point
from carnet.ports.calls.turns import TurnClaim, TurnFinish
from carnet.stores.database import Row, marks
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
from carnet.stores.turn.finish_rules import FinishRules
from carnet.stores.turn.row import Lookup, SqlConnection

_NAMES: Final = ", ".join(COLUMNS)
_READ = Lookup(  # with those above them
    "WITH RECURSIVE w (name) AS (VALUES {keys}), found (name) AS (SELECT name FROM w UNION"
    " SELECT b.parent FROM found f JOIN budget b ON b.name = f.name WHERE b.parent IS NOT NULL)"
    f" SELECT {_NAMES} FROM budget WHERE name IN (SELECT name FROM found)",
    width=1,
)
_HOLD: Final = "UPDATE turn SET budget = ? WHERE n = ?"
_PUT: Final = f"INSERT OR REPLACE INTO budget ({_NAMES}) VALUES ({marks(len(COLUMNS))})"


def read_claimed(
    connection: SqlConnection,
    claims: Sequence[TurnClaim],
    known: Mapping[bytes, Row],
    pending: Sequence[Row],
) -> BudgetBook:
    """The budgets that claims spend of or raise, and those that their last attempts held of."""
    return _read(connection, claimed_names(claims, known) + raised_names(pending))


def read_held(
    connection: SqlConnection, rules: FinishRules, finishes: Sequence[TurnFinish]
) -> BudgetBook:
    """The budgets that turns hold something of, or have raised, which are about to end."""
    return _read(connection, held_names(rules.held.values()) + undone_names(finishes))


def _read(connection: SqlConnection, names: list[str]) -> BudgetBook:
    return BudgetBook(map(read_budget, _READ(connection, names)))


def write(connection: SqlConnection, book: BudgetBook, held: Sequence[Row]) -> None:
    """Write those that changed, and what turns hold that were answered."""
    if held:
        connection.executemany(_HOLD, held)
    if book.changed:
        connection.executemany(_PUT, [*map(write_budget, book.changed.values())])
        book.changed = {}
        if carnet.faults.is_armed:
            point("budget.written")
