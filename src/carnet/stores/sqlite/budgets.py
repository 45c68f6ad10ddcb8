"""Reading and writing the budgets of one batch of SQLite."""

# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

from collections.abc import Mapping, Sequence
from typing import Final

import carnet.faults
from carnet.faults import point
from carnet.ports.calls.turns import TurnClaim
from carnet.stores.database import Row, marks
from carnet.stores.turn.budgets import (
    COLUMNS,
    BudgetBook,
    claimed_names,
    held_names,
    read_budget,
    write_budget,
)
from carnet.stores.turn.row import Lookup, SqlConnection

_NAMES: Final = ", ".join(COLUMNS)
_READ = Lookup(  # with those above them
    "WITH RECURSIVE w (name) AS (VALUES {keys}), found (name) AS (SELECT name FROM w UNION"
    " SELECT b.parent FROM found f JOIN budget b ON b.name = f.name WHERE b.parent IS NOT NULL)"
    f" SELECT {_NAMES} FROM budget WHERE name IN (SELECT name FROM found)",
    width=1,
)
_PUT: Final = f"INSERT OR REPLACE INTO budget ({_NAMES}) VALUES ({marks(len(COLUMNS))})"


def read_claimed(
    connection: SqlConnection, claims: Sequence[TurnClaim], known: Mapping[bytes, Row]
) -> BudgetBook:
    """The budgets that claims spend of, and those that their last attempts held of."""
    return _read(connection, claimed_names(claims, known))


def read_held(connection: SqlConnection, held: Mapping[int, Row]) -> BudgetBook:
    """The budgets that turns hold something of, which are about to end."""
    return _read(connection, held_names(held.values()))


def _read(connection: SqlConnection, names: list[str]) -> BudgetBook:
    return BudgetBook(map(read_budget, _READ(connection, names)))


def write(connection: SqlConnection, book: BudgetBook) -> None:
    """Write those that changed."""
    if book.changed:
        connection.executemany(_PUT, [*map(write_budget, book.changed.values())])
        book.changed = {}
        if carnet.faults.is_armed:
            point("budget.written")
