"""The budget of a turn, as its agent sees it: what is left, and what it may give to others.

    if visit.budget.calls is not None and visit.budget.calls < 3:
        ...  # answer from what there is

Law 1. What is shown is what this process knows; the store has the last word when a call is made.
Law 2. A share is never more than what is left.
"""

import asyncio
from collections.abc import Mapping
from decimal import Decimal

from msgspec import Struct

from carnet.core.call import Call
from carnet.core.chain.allowance import Allowance
from carnet.core.chain.terms import read_terms
from carnet.core.messages.events import BUDGET, Extension, Usage
from carnet.core.messages.output import Output
from carnet.core.money.amount import format_amount
from carnet.core.people.proof import Spending
from carnet.errors import InvalidRequest
from carnet.wire.grammar.json import MAX_INTEGER

Share = str | Mapping[str, object] | Spending


class BudgetLeft(Struct, frozen=True, kw_only=True):
    """What is left for this turn and all that is called for it; None is unbounded."""

    money: Decimal | None = None
    currency: str | None = None
    calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None

    def __bool__(self) -> bool:
        """Whether nothing of it is used up."""
        return all(each is None or each > 0 for each in (self.money, self.calls, self.tokens))


def left_of(allowance: Allowance | None, seconds: float | None) -> BudgetLeft:
    """What is left of an allowance, and of the time."""
    left = Spending() if allowance is None else allowance.left()
    if allowance is not None and allowance.above is not None:
        above = allowance.above.left()
        left = Spending(
            money=above.money if left.money is None else left.money,
            currency=above.currency if left.money is None else left.currency,
            calls=above.calls if left.calls is None else left.calls,
            tokens=above.tokens if left.tokens is None else left.tokens,
        )
    return BudgetLeft(
        money=None if left.money is None else Decimal(format_amount(left.money)),
        currency=left.currency,
        calls=left.calls,
        tokens=left.tokens,
        seconds=None if seconds is None else max(0.0, seconds),
    )


async def warn(allowance: Allowance | None, out: Output) -> None:
    """Note in the run that most of the budget is used; once."""
    crossed = None if allowance is None else allowance.crossed()
    if crossed is not None:
        part, used, limit = crossed
        await out.write(Extension(BUDGET, {"part": part, "used": used, "limit": limit}))


def share_of(given: Share | None) -> Spending | None:
    """What an agent gives to another: ValueError for what is no budget."""
    if given is None or isinstance(given, Spending):
        return given
    if not isinstance(given, str):
        given = ",".join(f"{name}={value}" for name, value in given.items())
    try:
        return read_terms(given)
    except InvalidRequest as error:
        raise ValueError(
            f"a budget is '0.50' or 'money=0.50,calls=20,tokens=5000', not {given!r}"
        ) from error


def even_share(allowance: Allowance | None, branches: int) -> Spending | None:
    """What each of several that are called at once may use of calls and tokens."""
    if allowance is None or branches <= 1:
        return None
    left = allowance.left()
    if left.calls is None and left.tokens is None:
        return None
    return Spending(
        calls=None if left.calls is None else max(1, left.calls // branches),
        tokens=None if left.tokens is None else max(1, left.tokens // branches),
        asks=True,  # nobody has set it: it is raised with the budget above it
    )


class CountingVisit:
    """The part of a visit that counts: what is used, and what is left."""

    _call: Call
    _loop: asyncio.AbstractEventLoop
    _out: Output
    _is_over: bool

    @property
    def budget(self) -> BudgetLeft:
        """What is left for this turn and what it calls: `money`, `calls`, `tokens`, `seconds`."""
        until = self._call.carnet.deadline
        seconds = None if until is None else until - self._loop.time()
        return left_of(self._call.allowance, seconds)

    def usage(self, *, tokens_in: int = 0, tokens_out: int = 0) -> None:
        """Say how many tokens were used; they are priced, and counted against budgets."""
        if not (0 <= tokens_in <= MAX_INTEGER and 0 <= tokens_out <= MAX_INTEGER):
            raise ValueError(f"tokens are counted from 0 to {MAX_INTEGER}")
        if self._is_over:
            return
        self._out.usage(Usage(int(tokens_in), int(tokens_out)))
