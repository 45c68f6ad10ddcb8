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
Law 6. An answer raises a budget that asks, with those above it that ask, and no other: of one that
       does not it takes what is left, or is refused.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from carnet.core.chain.turn import TurnState
from carnet.core.messages.interrupt import BudgetRaise
from carnet.core.people.proof import SECOND_US, Spending
from carnet.ports.money.budgets import (
    CALL,
    PARTS,
    Amounts,
    BudgetShort,
    BudgetTake,
    Opening,
    Taken,
    short_of,
)
from carnet.stores.turn.budgets.rows import BudgetHolding, BudgetRow, read_holding, write_holding

_THREE: Final = range(len(PARTS))
_PLACES: Final[dict[str, int]] = {name: place for place, name in enumerate(PARTS)}
_TOKENS: Final = 2
_MOST: Final = (1 << 53) - 1  # of a limit


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
        if above is not None:
            self._begin(above, asked.run, now)
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
        names = tuple([row.name for row in found])
        held = BudgetHolding(
            names, given, None if opened is None else opened.name, {}, asked.agreed
        )
        for row in found:
            for part in _THREE:
                self._move(row, part, 0, given[part] if part else held.money(row.name))
        money, calls, tokens = given
        taken = Taken(amounts=Amounts(money, calls, tokens), left=self._left_of(found))
        return taken, write_holding(held)

    def end(
        self, holding: str, state: TurnState, used: Amounts | None, *, may_go_on: bool = False
    ) -> str | None:
        """Release what a turn held, and count what it has spent; what it holds or owes from now on.

        Without `used` nobody knows: all of it is spent. A turn that waits holds on. One that
        `may_go_on` has what it used in its row: it counts as one with what it uses then.
        """
        kept = read_holding(holding)
        names, held, opened = kept.names, kept.held, kept.opened
        spent = held if used is None else (used.money, used.calls, used.tokens)
        rest = (0, 0, 0)
        if state == "waiting":
            spent = (spent[0], 0, spent[2])
            rest = (max(0, held[0] - spent[0]), held[1], max(0, held[2] - spent[2]))
        found = [self.rows[name] for name in names if name in self.rows]
        for row in found:
            for part in _THREE:
                self._move(row, part, spent[part], rest[part] - held[part])
            more = kept.money(row.name) - held[0]  # what was agreed to, beside
            if more and state != "waiting":
                self._move(row, 0, more if used is None else 0, -more)
        if state == "waiting":
            return write_holding(BudgetHolding(names, rest, opened, {}, kept.agreed))
        if opened is not None and opened in self.rows:
            self._close(self.rows[opened])
        if used is not None and not may_go_on:
            return None
        agreed = kept.agreed if used is None else 0
        held = held if used is None else (0, used.calls, used.tokens)
        days = {row.name: row.since for row in found if row.period}
        return write_holding(BudgetHolding(names, held, opened, days, agreed))

    def lapse(self, holding: str) -> None:
        """Release what a turn held that waited in vain: it has made its calls, and no more."""
        self.end(holding, "failed", Amounts(0, read_holding(holding).held[1], 0))

    def hold_more(self, holding: str, money: int, now: int) -> str | BudgetShort:
        """Hold what was agreed to be paid beside what a turn holds; that, or what is short."""
        kept = read_holding(holding)
        found = [self.rows[n] for n in kept.names if n in self.rows and not n.startswith(CALL)]
        for row in found:
            self._begin_period(row, now)
            limit, total = row.limits[0], row.total(0)
            if limit is not None and limit - total < money:
                observed = total + money
                return BudgetShort(name=row.name, part="money", observed=observed, limit=limit)
        for row in found:
            self._move(row, 0, 0, money)
        agreed = kept.agreed + money
        return write_holding(BudgetHolding(kept.names, kept.held, kept.opened, {}, agreed))

    def give_back(self, holding: str, before: str) -> None:
        """Hold as much as before, and no more."""
        kept, was = read_holding(holding), read_holding(before)
        for name in kept.names:
            if name in self.rows:
                self._move(self.rows[name], 0, 0, was.money(name) - kept.money(name))

    def raise_limit(
        self, asked: BudgetRaise, more: int, *, run: str, now: int, waited: int
    ) -> BudgetShort | None:
        """Give a budget more, and those above it; what is short where that may not be.

        The time that was `waited` for it is not counted.
        """
        row = self.rows.get(asked.budget)
        if row is None and asked.opening is not None:
            limits, asks = asked.opening, bool(asked.opening.asks)
            spent = Amounts(*asked.begun)
            opening = Opening(name=asked.budget, limits=limits, asks=asks, spent=spent)
            opened = self._open(opening, run, now)
            row = None if isinstance(opened, BudgetShort) else opened
        short = short_of(asked)
        if row is None or not row.asks or more < 1:
            return short
        if asked.part == "seconds":
            row.until = now + more * SECOND_US
            self.changed[row.name] = row
            return None
        part = _PLACES[asked.part]
        raised = [*self._raised(row, part)]
        top = raised[-1]
        above = None if top.parent is None else self.rows.get(top.parent)
        bound = None if above is None else self._bounding(above, part)
        left = _MOST if bound is None else (bound.limits[part] or 0) - bound.total(part)
        if row.limits[part] is None or left < more or (top.limits[part] or 0) + more > _MOST:
            return short
        for each in raised:
            each.until = None if each.until is None else each.until + waited
        self._grow(raised, part, more)
        return None

    def lower(self, name: str, part: str, more: int) -> None:
        """Take back what an answer gave that nobody ran on with; of time it stays."""
        if name in self.rows and part != "seconds":
            place = _PLACES[part]
            self._grow([*self._raised(self.rows[name], place)], place, -more)

    def _raised(self, row: BudgetRow, part: int) -> Iterator[BudgetRow]:
        """A budget, and those above it that bound the same part and ask."""
        here: BudgetRow | None = row
        while here is not None and here.asks:
            yield here
            above = None if here.parent is None else self.rows.get(here.parent)
            here = None if above is None else self._bounding(above, part)

    def _grow(self, raised: Sequence[BudgetRow], part: int, more: int) -> None:
        for row in raised:
            row.limits[part] = (row.limits[part] or 0) + more
            self.changed[row.name] = row
            above = None if row.parent is None else self.rows.get(row.parent)
            if above is not None and not row.closed:
                self._move(above, part, 0, more)

    def forget(self, holding: str, state: TurnState) -> None:
        """Take back what stands in the row of a turn that runs again."""
        self._shift(holding, state, -1)

    def restore(self, holding: str, state: TurnState) -> None:
        """Undo that."""
        self._shift(holding, state, 1)

    def room(self, holding: str) -> int | None:
        """What more than it holds a turn may cost now (R57); None where no money is bounded."""
        kept = read_holding(holding)
        left = self._left_of([self.rows[name] for name in kept.names if name in self.rows]).money
        return None if left is None else left + kept.held[0] + kept.agreed

    def _shift(self, holding: str, state: TurnState, sign: int) -> None:
        kept = read_holding(holding)
        is_spent = state in {"unknown", "failed"}
        for name in kept.names:
            if name not in self.rows:
                continue
            since = self.rows[name].since
            if is_spent and kept.days.get(name, since) != since:
                continue  # it was spent on a day that is over
            for part in _THREE:
                more = sign * (kept.held[part] if part else kept.money(name))
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
                agreed = 0 if part or row.name.startswith(CALL) else asked.agreed
                needs += agreed
                if left < needs:  # of tokens the last one is enough, and none is not
                    return BudgetShort(
                        name=bound.name,
                        part=PARTS[part],
                        observed=bound.total(part) + needs,
                        limit=limit,
                    )
                given[part] = min(given[part], left - agreed)
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
            spent=[opens.spent.money, opens.spent.calls, opens.spent.tokens],
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

    def _begin(self, above: Opening, run: str, now: int) -> None:
        """Begin the budget of a call; one that is made again with more has what it says now."""
        row = self.rows.get(above.name)
        if row is None:
            self._open(above, run, now)
        elif row.attempt < above.attempt and row.parent is None:
            limits = (above.limits.money, above.limits.calls, above.limits.tokens)
            for part in _THREE:
                before, asked = row.limits[part], limits[part]
                row.limits[part] = None if before is None or asked is None else max(before, asked)
            row.attempt = above.attempt
            self.changed[row.name] = row

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
