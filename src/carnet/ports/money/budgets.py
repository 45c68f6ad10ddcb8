"""Budgets: what a call, and everything that is called for it, may spend.

A budget is opened by the call that brings it (`call:<key of its turn>`), or set by an operator for
a person, a token, a peer, an agent's own account or a run. A share is the budget of one child, set
aside from that of the call which makes it.

Law 1. What a call may spend is held before it runs, and what it has spent is known at its end; the
       rest is given back. Held and spent together are never more than the limit.
Law 2. A share is held in the budget that it was taken from until its call has ended. So children
       never hold more than their parent had left, also those that are in flight.
Law 3. What nobody knows the end of stays spent, until it is run again or its answer is found.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from carnet.core.messages.interrupt import BudgetPart, BudgetRaise
from carnet.core.money.amount import format_amount
from carnet.core.people.proof import Spending
from carnet.errors import BudgetExceeded

CALL: Final = "call:"  # what the name of a budget begins with that a call has brought
RUN: Final = "run:"
AGENT: Final = "agent:"
DAY: Final = "/day"  # what the name of one ends with that is new every day, at midnight UTC
DAY_US: Final = 86_400_000_000
WARN_AT: Final = 80  # percent

Part = BudgetPart
PARTS: Final[tuple[Part, Part, Part]] = ("money", "calls", "tokens")


class Amounts(Struct, frozen=True):
    """How much of each part; money in micro-units."""

    money: int = 0
    calls: int = 0
    tokens: int = 0


class Opening(Struct, frozen=True, kw_only=True):
    """A budget that begins with a call."""

    name: str
    limits: Spending
    parent: str | None = None  # the budget that it is a share of
    until: int | None = None  # microseconds since the epoch
    asks: bool = False  # its owner is asked when it is used up
    attempt: int = 1  # of its call: one that is made again may be given more than before
    spent: Amounts = Amounts()  # of it, by the call itself, before anything was called for it


class BudgetTake(Struct, frozen=True, kw_only=True):
    """What a claim takes of budgets: of each of them, or it is refused."""

    names: tuple[str, ...]
    take: Amounts
    least: Amounts  # it may be less, where less is left
    run: str = ""
    above: Opening | None = None  # that of the call which makes this one, if it is not there yet
    opens: Opening | None = None  # a share, which ends with this call
    agreed: int = 0  # payments that somebody has accepted: of those that were set, beside it


class BudgetShort(Struct, frozen=True, kw_only=True):
    """Which budget has refused, and by which part."""

    name: str
    part: str
    observed: int  # what is spent, held and asked for
    limit: int


class Taken(Struct, frozen=True, kw_only=True):
    """What a claim was given."""

    amounts: Amounts
    left: Spending  # of all of them together, after that


def short_of(asked: BudgetRaise) -> BudgetShort:
    """The refusal that a question for more stands for."""
    name = asked.budget or AGENT
    return BudgetShort(name=name, part=asked.part, observed=asked.observed, limit=asked.limit)


def exceeded(short: BudgetShort, *, is_hidden: bool = False) -> BudgetExceeded:
    """The refusal of a budget; `is_hidden` for who is not told what it has."""
    kind = short.name.partition(":")[0]
    if is_hidden:
        return BudgetExceeded(short.name, budget=kind, part=short.part)
    if short.part == "money":
        money = {"observed": format_amount(short.observed), "limit": format_amount(short.limit)}
        return BudgetExceeded(short.name, budget=kind, part=short.part, **money)
    counts = {"observed": short.observed, "limit": short.limit}
    return BudgetExceeded(short.name, budget=kind, part=short.part, **counts)


class BudgetUndo(Struct, frozen=True, kw_only=True):
    """What an answer has changed in budgets: it is undone if nobody runs on with the answer."""

    held: str | None = None  # what its turn held before, where it holds more now
    raised: tuple[str, str, int] | None = None  # which budget, and by how much


class BudgetRecord(Struct, frozen=True, kw_only=True):
    """A budget as it stands."""

    name: str
    limits: Spending
    spent: Amounts = Amounts()
    held: Amounts = Amounts()
    until: int | None = None
    period: int | None = None  # microseconds
    since: int = 0  # when it began, or its period has
    parent: str | None = None
    run: str = ""
    asks: bool = False
    closed: bool = False
    written: bool = False  # in carnet.toml, which has the last word

    @property
    def left(self) -> Spending:
        """What nobody has spent or holds."""
        limits, used = self.limits, (self.spent, self.held)
        return Spending(
            money=_left(limits.money, *[each.money for each in used]),
            currency=limits.currency,
            calls=_left(limits.calls, *[each.calls for each in used]),
            tokens=_left(limits.tokens, *[each.tokens for each in used]),
        )


def _left(limit: int | None, spent: int, held: int) -> int | None:
    return None if limit is None else max(0, limit - spent - held)


class Budgets(Protocol):
    """The budgets of one store."""

    known: Mapping[str, BudgetRecord]  # those that operators have set, as they were read last

    def standing(self, names: Sequence[str]) -> tuple[str, ...]:
        """Those of these names, and of their days, that an operator has set; from memory."""

    async def list(self) -> Sequence[BudgetRecord]:
        """Those that operators have set, as they stand now."""

    async def find(self, name: str) -> BudgetRecord | None:
        """One by its name."""
