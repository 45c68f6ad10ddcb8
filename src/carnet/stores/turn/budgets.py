"""What is held and spent of budgets: the rules, without a database.

A driver reads the rows that a batch needs, with those above them, into a `BudgetBook`, and writes
those that changed. What was read must stay true until the commit: the driver holds the locks.

Law 1. All budgets of a claim are charged, or none is.
Law 2. A part that a share does not bound is charged to the budget above it as well.
Law 3. A share is held above it as a whole while it is open. When it is closed, what was spent of
       it, and what is still held there, is spent above; what is released later is given back.
Law 4. What a turn holds stands in its row; of a turn whose end nobody knows it is spent, and
       taken back when the turn runs again.
Law 5. Nothing is lost and nothing created: held and spent of a root are the sum of what turns hold
       and have spent below it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct, field

from carnet.core.chain.turn import TurnState
from carnet.core.people.proof import Spending
from carnet.ports.calls.turns import TurnClaim
from carnet.ports.money.budgets import (
    PARTS,
    Amounts,
    BudgetRecord,
    BudgetShort,
    BudgetTake,
    Opening,
    Taken,
)
from carnet.stores.database import Row
from carnet.stores.turn.row import place

COLUMNS: Final = (
    *("name", "parent", "run", "money", "currency", "calls", "tokens", "until", "period", "since"),
    *("spent_money", "spent_calls", "spent_tokens", "held_money", "held_calls", "held_tokens"),
    *("closed", "asks", "written"),
)
_THREE: Final = range(len(PARTS))
_TOKENS: Final = 2
_BUDGET: Final = place("budget")
HELD_BUDGET: Final = 8  # in what is read of a turn that is to end

Holding = tuple[tuple[str, ...], tuple[int, int, int], str | None]  # of which, what, and opened
_read_holding: Final = msgspec.json.Decoder(Holding).decode
_write: Final = msgspec.json.Encoder().encode


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
    )


def write_budget(budget: BudgetRow) -> Row:
    """The values of COLUMNS."""
    money, calls, tokens = budget.limits
    return (
        *(budget.name, budget.parent, budget.run, money, budget.currency, calls, tokens),
        *(budget.until, budget.period, budget.since, *budget.spent, *budget.held),
        *(int(budget.closed), int(budget.asks), int(budget.written)),
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


def names_in(holding: str | None) -> list[str]:
    """The budgets that a turn's row names."""
    if not holding:
        return []
    names, _, opened = _read_holding(holding)
    return [*names] if opened is None else [*names, opened]


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


def held_names(held: Iterable[Row]) -> list[str]:
    """The budgets that turns hold something of, by their rows as HELD has them; sorted."""
    return sorted({name for row in held for name in names_in(row[HELD_BUDGET])})


class BudgetBook:
    """The budgets of one batch."""

    __slots__ = ("changed", "rows")

    def __init__(self, rows: Iterable[BudgetRow] = ()) -> None:
        """Start with what was read."""
        self.rows = {row.name: row for row in rows}
        self.changed: dict[str, BudgetRow] = {}

    def take(self, asked: BudgetTake, now: int) -> tuple[Taken, str] | BudgetShort:
        """Hold what a claim asks for; that, and the text of the turn's row. Or what is short."""
        opens, above = asked.opens, asked.above
        is_new = above is not None and above.name not in self.rows
        if above is not None and is_new:
            self._open(above, asked.run, now)
        before = None if opens is None or opens.name not in self.rows else self.rows[opens.name]
        was = None if before is None else (before.closed, [*before.limits])
        opened = None if opens is None else self._open(opens, asked.run, now)
        if isinstance(opened, BudgetShort):
            return self._refused(opened, above if is_new else None)
        found = [self.rows[name] for name in asked.names if name in self.rows]
        for row in found:
            self._begin_period(row, now)
        given = self._fit(found, asked, now)
        if isinstance(given, BudgetShort):
            if opened is not None:
                self._undo(opened, was)
            return self._refused(given, above if is_new else None)
        for row in found:
            for part in _THREE:
                self._move(row, part, 0, given[part])
        held = (tuple([row.name for row in found]), given, None if opened is None else opened.name)
        money, calls, tokens = given
        taken = Taken(amounts=Amounts(money, calls, tokens), left=self._left_of(found))
        return taken, _write(held).decode()

    def end(self, holding: str, state: TurnState, used: Amounts | None) -> str | None:
        """Release what a turn held, and count what it has spent; what it holds or owes from now on.

        Without `used` nobody knows: all of it is spent. A turn that waits holds on.
        """
        names, held, opened = _read_holding(holding)
        spent = held if used is None else (used.money, used.calls, used.tokens)
        kept = (0, 0, 0)
        if state == "waiting":
            spent = (spent[0], 0, spent[2])
            kept = (max(0, held[0] - spent[0]), held[1], max(0, held[2] - spent[2]))
        for name in names:
            if name in self.rows:
                for part in _THREE:
                    self._move(self.rows[name], part, spent[part], kept[part] - held[part])
        if state == "waiting":
            return _write((names, kept, opened)).decode()
        if opened is not None and opened in self.rows:
            self._close(self.rows[opened])
        return holding if used is None else None

    def forget(self, holding: str, state: TurnState) -> None:
        """Take back what stands in the row of a turn that runs again, and nobody has ended."""
        self._shift(holding, state, -1)

    def restore(self, holding: str, state: TurnState) -> None:
        """Undo that."""
        self._shift(holding, state, 1)

    def room(self, holding: str) -> int | None:
        """What more than it holds a turn may cost now (R57); None where no money is bounded."""
        names, held, _ = _read_holding(holding)
        left = self._left_of([self.rows[name] for name in names if name in self.rows]).money
        return None if left is None else left + held[0]

    def _shift(self, holding: str, state: TurnState, sign: int) -> None:
        names, held, _ = _read_holding(holding)
        is_spent = state == "unknown"
        for name in names:
            if name not in self.rows:
                continue
            for part in _THREE:
                more = sign * held[part]
                self._move(self.rows[name], part, *((more, 0) if is_spent else (0, more)))

    def _fit(
        self, found: Sequence[BudgetRow], asked: BudgetTake, now: int
    ) -> tuple[int, int, int] | BudgetShort:
        """What each of them has left of what is asked for, if that is enough."""
        wanted = (asked.take.money, asked.take.calls, asked.take.tokens)
        least = (asked.least.money, asked.least.calls, asked.least.tokens)
        given = list(wanted)
        for row in found:
            late = self._late(row, now)
            if late is not None:
                return late
            for part in _THREE:
                bound = self._bounding(row, part)
                if bound is None:
                    continue
                limit = bound.limits[part] or 0
                left = max(0, limit - bound.total(part))
                needs = max(least[part], 1) if part == _TOKENS else least[part]
                if left < needs:  # of tokens the last one is enough, and none is not
                    return BudgetShort(
                        name=bound.name,
                        part=PARTS[part],
                        observed=bound.total(part) + needs,
                        limit=limit,
                    )
                given[part] = min(given[part], left)
        return given[0], given[1], given[2]

    def _late(self, row: BudgetRow, now: int) -> BudgetShort | None:
        if row.until is None or now < row.until:
            return None
        seconds = -(-(now - row.since) // 1_000_000)
        limit = max(0, (row.until - row.since) // 1_000_000)
        return BudgetShort(name=row.name, part="seconds", observed=seconds, limit=limit)

    def _bounding(self, row: BudgetRow, part: int) -> BudgetRow | None:
        """The first budget from here upward that bounds a part."""
        here: BudgetRow | None = row
        while here is not None and here.limits[part] is None:
            here = None if here.parent is None else self.rows.get(here.parent)
        return here

    def _left_of(self, found: Sequence[BudgetRow]) -> Spending:
        left: list[int | None] = [None, None, None]
        currency = None
        for row in found:
            for part in _THREE:
                bound = self._bounding(row, part)
                if bound is None:
                    continue
                here = max(0, (bound.limits[part] or 0) - bound.total(part))
                before = left[part]
                left[part] = here if before is None else min(before, here)
                currency = bound.currency if part == 0 else currency
        return Spending(money=left[0], currency=currency, calls=left[1], tokens=left[2])

    def _begin_period(self, row: BudgetRow, now: int) -> None:
        if row.period and now >= row.since + row.period:
            row.spent, row.since = [0, 0, 0], now - now % row.period
            self.changed[row.name] = row

    def _open(self, opens: Opening, run: str, now: int) -> BudgetRow | BudgetShort:
        """Begin a budget, or go on with it; of a share, hold what it may spend above it."""
        row = self.rows.get(opens.name)
        if row is not None:
            if row.closed:
                self._reopen(row)
            return row
        limits = opens.limits
        row = BudgetRow(
            name=opens.name,
            parent=opens.parent,
            run=run,
            limits=[limits.money, limits.calls, limits.tokens],
            currency=limits.currency,
            until=opens.until,
            since=now,
            asks=opens.asks,
        )
        above = None if opens.parent is None else self.rows.get(opens.parent)
        if above is not None:
            late = self._late(above, now)
            if late is not None:
                return late
            for part in _THREE:
                wanted, bound = row.limits[part], self._bounding(above, part)
                if wanted is None:
                    continue
                if bound is not None:
                    left = max(0, (bound.limits[part] or 0) - bound.total(part))
                    row.limits[part] = wanted = min(wanted, left)
                self._move(above, part, 0, wanted)
        self.rows[row.name] = self.changed[row.name] = row
        return row

    def _refused(self, short: BudgetShort, new: Opening | None) -> BudgetShort:
        if new is not None:
            self.rows.pop(new.name)
            self.changed.pop(new.name, None)
        return short

    def _undo(self, opened: BudgetRow, was: tuple[bool, list[int | None]] | None) -> None:
        """Leave one as it was before a claim that is refused."""
        if was is None or was[0]:
            self._close(opened)
        if was is None:
            self.rows.pop(opened.name)
            self.changed.pop(opened.name, None)
        elif was[0]:
            opened.limits = was[1]

    def _close(self, row: BudgetRow) -> None:
        if row.closed:
            return
        above = None if row.parent is None else self.rows.get(row.parent)
        if above is not None:
            for part in _THREE:
                limit = row.limits[part]
                if limit is not None:
                    self._move(above, part, row.total(part), -limit)
        row.closed = True
        self.changed[row.name] = row

    def _reopen(self, row: BudgetRow) -> None:
        """Hold the rest of a share again; as far as it is still there."""
        above = None if row.parent is None else self.rows.get(row.parent)
        if above is not None:
            for part in _THREE:
                limit = row.limits[part]
                if limit is None:
                    continue
                self._move(above, part, -row.total(part), 0)
                bound = self._bounding(above, part)
                if bound is not None:
                    limit = min(limit, max(0, (bound.limits[part] or 0) - bound.total(part)))
                    limit = max(limit, row.total(part))
                row.limits[part] = limit
                self._move(above, part, 0, limit)
        row.closed = False
        self.changed[row.name] = row

    def _move(self, row: BudgetRow, part: int, spent: int, held: int) -> None:
        """Change what is spent and held, here and in those above that it concerns."""
        if not (spent or held):
            return
        row.spent[part] += spent
        row.held[part] += held
        self.changed[row.name] = row
        above = None if row.parent is None else self.rows.get(row.parent)
        if above is None:
            return
        if row.limits[part] is None:
            self._move(above, part, spent, held)
        elif row.closed:
            self._move(above, part, spent + held, 0)
