"""What is left of a budget while calls are made on behalf of the call that it was given for.

It is what one process knows of it; the store has the last word, and outlives the process.

Law 1. What a call may spend is set aside before it is made, and what it did not is given back. So
       all of them together cannot spend more than was left, also when made at once.
Law 2. Money in another currency than ours cannot be set aside: a call that may cost is refused.
Law 3. Tokens are known when they were used: while any are left a call is made, then none is. A
       callee that can be told how many it may use is told, and those are set aside.
Law 4. A share is taken out of the budget above it, and what is left of it goes back there.
Law 5. `limits` are what was given, whatever is left: the call that was given it takes of it too.
"""

from typing import Final

import msgspec
from msgspec import Struct

from carnet.core.money.amount import format_amount
from carnet.core.people.delegation import least
from carnet.core.people.proof import Spending
from carnet.errors import BudgetExceeded

WARN_PERCENT: Final = 80


class Aside(Struct, frozen=True):
    """What was set aside for one call."""

    money: int = 0
    calls: int = 0
    tokens: int = 0


NOTHING: Final = Aside()


class Allowance:
    """The budget of one call, shared by all that is called for it. Mutable."""

    __slots__ = (
        *("_calls", "_currency", "_money", "_tokens"),
        *("above", "asks", "before", "begun", "counted", "limits", "name", "opening"),
        *("tokens_used", "until", "warned"),
    )

    def __init__(
        self, budget: Spending, *, above: "Allowance | None" = None, until: float | None = None
    ) -> None:
        """Start with all of it; the call itself is the first that takes from it.

        `above` is the one that it is a share of; `until` is when it ends, by the monotonic clock.
        """
        self._money = budget.money
        self._currency = budget.currency
        self._calls = budget.calls
        self._tokens = budget.tokens
        self.limits = budget
        self.asks = budget.asks is True  # who pays is asked for more
        self.above = above
        self.until = until
        self.name: str | None = None  # in the store, once something was called for it
        self.opening: Spending | None = None  # what it was opened with there
        self.begun = NOTHING  # and what was spent of that before
        self.tokens_used = 0
        self.before = 0  # tokens that calls have used when they ran before, and waited then
        self.counted: frozenset[bytes] = frozenset()  # the keys of turns that have waited since
        self.warned = False

    def take(
        self,
        most: int,
        currency: str,
        *,
        shrinks: bool = False,
        calls: int | None = 1,
        tokens: int | None = 0,
    ) -> Aside:
        """Set aside what one more call may spend, and say how much that is.

        Args:
            most: What it may cost at the most, in micro-units.
            currency: Of our ledger.
            shrinks: Whether it can be told to cost less, as an agent elsewhere can.
            calls: How many it may make, itself included; None: as many as are left.
            tokens: How many it is told that it may use; None: as many as are left.
        """
        if self._calls is not None and self._calls < 1:
            self._refuse("calls", 1)
        if self._tokens is not None and self._tokens < 1:
            self._refuse("tokens", 1)
        taken = most
        if self._money is not None and most:
            taken = min(most, self._money) if shrinks else most
            if self._currency != currency or taken > self._money or not taken:
                self._refuse("money", most, currency)
            self._money -= taken
        counted, used = 1, 0
        if self._calls is not None:
            counted = self._calls if calls is None or calls > self._calls else calls
            self._calls -= counted
        if self._tokens is not None:
            used = self._tokens if tokens is None or tokens > self._tokens else tokens
            self._tokens -= used
        return Aside(taken, counted, used)

    def _refuse(self, part: str, needed: int, currency: str = "") -> None:
        """Say which part has nothing left, of how much, and how much would have been needed."""
        if part == "money":
            limit = self.limits.money or 0
            used = limit - (self._money or 0)
            if self._currency != currency:  # of ours it has nothing
                limit = used = 0
            money = {"observed": format_amount(used + needed), "limit": format_amount(limit)}
            name = self.name if self._currency == currency else None  # more of it would not help
            raise BudgetExceeded(name or "", budget="call", part=part, **money)
        limit = (self.limits.calls if part == "calls" else self.limits.tokens) or 0
        left = (self._calls if part == "calls" else self._tokens) or 0
        counts = {"observed": limit - left + needed, "limit": limit}
        raise BudgetExceeded(self.name or "", budget="call", part=part, **counts)

    def is_used_up(self, part: str, most: int = 0) -> bool:
        """Whether a callee that was short of a part could not be given more of what is left.

        Of money it was given `most`, which it may cost, or all there was: more helps the latter
        alone. What nothing bounds is not used up, whatever a callee says.
        """
        here: Allowance | None = self
        while here is not None and getattr(here.limits, part) is None:
            here = here.above
        if here is None:
            return False
        left = getattr(here.left(), part) or 0
        return left < most if part == "money" else not left

    def short_of(self, part: str) -> BudgetExceeded:
        """The refusal of a call abroad that has used up what it was given of a part."""
        here: Allowance | None = self
        while here is not None and here.above is not None and getattr(here.limits, part) is None:
            here = here.above
        here = here or self
        limit = getattr(here.limits, part) or 0
        if part == "money":
            money = {"observed": format_amount(limit), "limit": format_amount(limit)}
            return BudgetExceeded(here.name or "", budget="call", part=part, **money)
        counts = {"observed": limit + 1, "limit": limit}
        return BudgetExceeded(here.name or "", budget="call", part=part, **counts)

    def split(self, share: Spending, currency: str) -> "Allowance":
        """A share of this: so much of each part that it bounds, or what is left."""
        money = share.money
        if money is not None and self._money is not None:
            money = min(money, self._money) if self._currency == currency else 0
            self._money -= money
        calls = least(share.calls, self._calls)
        if share.calls is not None and self._calls is not None and calls is not None:
            self._calls -= calls
        tokens = least(share.tokens, self._tokens)
        if share.tokens is not None and self._tokens is not None and tokens is not None:
            self._tokens -= tokens
        part = Spending(
            money=money,
            currency=None if money is None else currency,
            calls=None if share.calls is None else calls,
            tokens=None if share.tokens is None else tokens,
            asks=(share.asks and self.asks) or None,
        )
        return Allowance(part, above=self, until=self.until)

    def close(self) -> None:
        """Give what is left of a share back to the one above."""
        above = self.above
        if above is not None:
            above.give_back(Aside(self._money or 0, self._calls or 0, self._tokens or 0))
            self._money = 0 if self._money is not None else None
            self._calls = 0 if self._calls is not None else None
            self._tokens = 0 if self._tokens is not None else None

    @property
    def given(self) -> Spending:
        """What was given, whatever is left of it."""
        return msgspec.structs.replace(self.limits, asks=self.asks or None)

    def open(self, name: str) -> Spending:
        """Give it its name in the store, where it begins with what was spent of it until now."""
        limits, left = self.given, self.left()
        self.name, self.opening = name, limits
        self.begun = Aside(
            _used(limits.money, left.money),
            _used(limits.calls, left.calls),
            _used(limits.tokens, left.tokens),
        )
        return limits

    def ran_before(self, key: bytes, tokens: int) -> None:
        """A call has waited, and has used so many tokens until then.

        One that has waited in this process was counted then.
        """
        if key in self.counted:
            return
        here: Allowance | None = self
        while here is not None:
            here.before += tokens
            here.bound_tokens()
            here = here.above

    def bound_tokens(self) -> None:
        """Of tokens no more is left than is not used; the store knows of those of calls alone."""
        if self._tokens is not None and self.limits.tokens is not None:
            unused = self.limits.tokens - self.tokens_used - self.before
            self._tokens = max(0, min(self._tokens, unused))

    def take_more(self, wanted: int) -> int:
        """What is left of the money, as far as it is wanted: a call has cost more than expected."""
        taken = 0 if self._money is None else min(wanted, self._money)
        self._money = None if self._money is None else self._money - taken
        return taken

    def give_back(self, rest: Aside) -> None:
        """A call has spent so much less than was set aside for it."""
        if self._money is not None:
            self._money += rest.money
        if self._calls is not None:
            self._calls += rest.calls
        if self._tokens is not None:
            self._tokens += rest.tokens

    def use(self, tokens: int) -> None:
        """So many tokens were used, by the call itself or by one that was made for it."""
        used = max(0, tokens)
        self.tokens_used += used
        above, left = self.above, self._tokens
        if left is not None:
            self._tokens = left - used if left > used else 0
        if above is not None:
            if left is None:
                above.use(used)
            else:
                self.note(used)

    def note(self, tokens: int) -> None:
        """Count tokens that were used of a share in those above, which have set them aside."""
        above = self.above
        while above is not None:
            above.tokens_used += tokens
            above = above.above

    def is_short(self, most: int) -> bool:
        """Whether a call that may cost so much would be refused, as far as is known here."""
        calls, tokens = self._calls, self._tokens
        is_used = (calls is not None and calls < 1) or (tokens is not None and tokens < 1)
        return is_used or (self._money is not None and self._money < most)

    def narrow(self, left: Spending) -> None:
        """No more than that is left: somebody else bounds it too."""
        self._money = least(self._money, left.money)
        self._currency = self._currency or left.currency
        self._calls = least(self._calls, left.calls)
        self._tokens = least(self._tokens, left.tokens)

    def learn(self, left: Spending, limits: Spending, *, runs_again: bool = False) -> None:
        """The store says what is left, and of how much: somebody may have raised it.

        Of a call that `runs_again` those made for it before hold their part there, and take it in
        the place of that: no less is left for them than is known here.
        """
        most = _most if runs_again else _theirs
        self._money = most(self._money, left.money)
        self._calls = most(self._calls, left.calls)
        self._tokens = most(self._tokens, left.tokens)
        self.limits = limits
        self.bound_tokens()

    def left(self, aside: Aside | None = None) -> Spending:
        """What is left; or the budget of a call for which that was set aside.

        Such a call may spend no more than that; one that somebody else pays for has no money set
        aside, and has no bound here.
        """
        money, calls, tokens = self._money, self._calls, self._tokens
        if aside is not None:
            money = None if money is None else aside.money or None
            calls = None if calls is None else aside.calls
            tokens = None if tokens is None else aside.tokens
        return Spending(
            money=money,
            currency=None if money is None else self._currency,
            calls=calls,
            tokens=tokens,
            asks=self.asks or None,
        )

    def crossed(self) -> tuple[str, int, int] | None:
        """The part of which most is used, what is used and the limit; once."""
        if self.warned:
            return None
        for part, limit, left in (
            ("money", self.limits.money, self._money),
            ("calls", self.limits.calls, self._calls),
            ("tokens", self.limits.tokens, self._tokens),
        ):
            if limit and left is not None and (limit - left) * 100 >= limit * WARN_PERCENT:
                self.warned = True
                return part, limit - left, limit
        return None


def _used(limit: int | None, left: int | None) -> int:
    return 0 if limit is None or left is None else max(0, limit - left)


def _theirs(ours: int | None, theirs: int | None) -> int | None:
    return None if ours is None else theirs


def _most(ours: int | None, theirs: int | None) -> int | None:
    return None if ours is None or theirs is None else max(ours, theirs)
