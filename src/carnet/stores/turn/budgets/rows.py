"""A budget as its row in the store says it, and what the row of a turn says that it holds."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from msgspec import Struct, field

from carnet.core.people.proof import Spending
from carnet.ports.calls.turns import TurnClaim, TurnFinish
from carnet.ports.money.budgets import CALL, Amounts, BudgetRecord, BudgetTake
from carnet.stores.database import Row
from carnet.stores.turn.interrupts import RAISES, UnansweredFinish, raise_of
from carnet.stores.turn.row import place

COLUMNS: Final = (
    *("name", "parent", "run", "money", "currency", "calls", "tokens", "until", "period", "since"),
    *("spent_money", "spent_calls", "spent_tokens", "held_money", "held_calls", "held_tokens"),
    *("closed", "asks", "written", "attempt"),
)


class BudgetRow(Struct, kw_only=True):
    """A budget while a batch is decided."""

    name: str
    parent: str | None = None
    run: str = ""
    limits: list[int | None]
    currency: str | None = None
    until: int | None = None
    period: int | None = None
    since: int = 0
    spent: list[int] = field(default_factory=lambda: [0, 0, 0])
    held: list[int] = field(default_factory=lambda: [0, 0, 0])
    closed: bool = False
    asks: bool = False
    written: bool = False
    attempt: int = 1  # of its call, that said last what it may spend

    def total(self, part: int) -> int:
        """What is spent and held."""
        return self.spent[part] + self.held[part]


def read_budget(row: Row) -> BudgetRow:
    """A row of COLUMNS."""
    return BudgetRow(
        name=row[0],
        parent=row[1],
        run=row[2],
        limits=[row[3], row[5], row[6]],
        currency=row[4],
        until=row[7],
        period=row[8],
        since=row[9],
        spent=list(row[10:13]),
        held=list(row[13:16]),
        closed=bool(row[16]),
        asks=bool(row[17]),
        written=bool(row[18]),
        attempt=row[19],
    )


def write_budget(budget: BudgetRow) -> Row:
    """The values of COLUMNS."""
    money, calls, tokens = budget.limits
    return (
        *(budget.name, budget.parent, budget.run, money, budget.currency, calls, tokens),
        *(budget.until, budget.period, budget.since, *budget.spent, *budget.held),
        *(int(budget.closed), int(budget.asks), int(budget.written), budget.attempt),
    )


def record_of(budget: BudgetRow) -> BudgetRecord:
    """A budget as others see it."""
    money, calls, tokens = budget.limits
    return BudgetRecord(
        name=budget.name,
        limits=Spending(money=money, currency=budget.currency, calls=calls, tokens=tokens),
        spent=Amounts(*budget.spent),
        held=Amounts(*budget.held),
        until=budget.until,
        period=budget.period,
        since=budget.since,
        parent=budget.parent,
        run=budget.run,
        asks=budget.asks,
        closed=budget.closed,
        written=budget.written,
    )


_BUDGET: Final = place("budget")
HELD_BUDGET: Final = 8  # in what is read of a turn that is to end


class BudgetHolding(Struct, frozen=True, array_like=True):
    """What a turn holds, or of one whose end nobody knows has spent, of each of these budgets."""

    names: tuple[str, ...]
    held: tuple[int, int, int]
    opened: str | None = None
    days: dict[str, int] = {}  # of those that a day renews: since when, where it was spent
    agreed: int = 0  # of those that were set, beside that: payments that somebody has accepted

    def money(self, name: str) -> int:
        """What is held of one; the bound of a call moves with what its payer agrees to."""
        return self.held[0] if name.startswith(CALL) else self.held[0] + self.agreed


read_holding: Final = msgspec.json.Decoder(BudgetHolding).decode
_encoder: Final = msgspec.json.Encoder()


def write_holding(holding: BudgetHolding) -> str:
    """The column of a turn's row that says it."""
    return _encoder.encode(holding).decode()


def names_in(holding: str | None) -> list[str]:
    """The budgets that a turn's row names."""
    if not holding:
        return []
    kept = read_holding(holding)
    return [*kept.names] if kept.opened is None else [*kept.names, kept.opened]


def names_of(asked: BudgetTake) -> Iterable[str]:
    """The budgets that a claim names."""
    begun = [each for each in (asked.above, asked.opens) if each is not None]
    parents = [each.parent for each in begun if each.parent is not None]
    return (*asked.names, *(each.name for each in begun), *parents)


def claimed_names(claims: Iterable[TurnClaim], known: Mapping[bytes, Row]) -> list[str]:
    """The budgets that claims spend of, and those that their last attempts held of; sorted."""
    names: set[str] = set()
    for claim in claims:
        if claim.budget is not None:
            names.update(names_of(claim.budget))
        if claim.key in known:
            names.update(names_in(known[claim.key][_BUDGET]))
    return sorted(names)


def raised_names(pending: Iterable[Row]) -> list[str]:
    """The budgets that are raised by answers to what turns wait for."""
    asked = [raise_of(row[RAISES]) for row in pending]
    return [each.budget for each in asked if each is not None]


def undone_names(finishes: Iterable[TurnFinish]) -> list[str]:
    """The budgets that answers have raised which nobody ran on with."""
    undone = [each.undo for each in finishes if isinstance(each, UnansweredFinish)]
    return [each.raised[0] for each in undone if each is not None and each.raised is not None]


def held_names(held: Iterable[Row]) -> list[str]:
    """The budgets that turns hold something of, by their rows as HELD has them; sorted."""
    return sorted({name for row in held for name in names_in(row[HELD_BUDGET])})
