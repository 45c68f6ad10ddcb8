"""What is left of a budget while calls are made on behalf of the call that it was given for.

Law 1. What a call may cost is set aside before it is made, and what it did not cost is given back.
       So all of them together cannot spend more than was left, also when they are made at once.
Law 2. Money in another currency than ours cannot be set aside: a call that may cost is refused.
Law 3. Tokens are known when they were used: while any are left a call is made, then none is.
"""

from carnet.core.money.amount import format_amount
from carnet.core.people.proof import Spending
from carnet.errors import RunCallsExceeded, SpendingLimitReached


class Allowance:
    """The budget of one call, shared by all that is called for it. Mutable."""

    __slots__ = ("_calls", "_currency", "_money", "_tokens")

    def __init__(self, budget: Spending) -> None:
        """Start with all of it; the call itself is the first that takes from it."""
        self._money = budget.money
        self._currency = budget.currency
        self._calls = budget.calls
        self._tokens = budget.tokens

    def take(self, most: int, currency: str, *, shrinks: bool = False) -> int:
        """Set aside what one more call may cost, and say how much that is.

        Args:
            most: What it may cost at the most, in micro-units.
            currency: Of our ledger.
            shrinks: Whether it can be told to cost less, as an agent elsewhere can.
        """
        if self._calls is not None and self._calls < 1:
            raise RunCallsExceeded(limit=0)
        if self._tokens is not None and self._tokens < 1:
            raise SpendingLimitReached
        taken = most
        if self._money is not None and most:
            taken = min(most, self._money) if shrinks else most
            if self._currency != currency or taken > self._money or not taken:
                left = self._money if self._currency == currency else 0
                raise SpendingLimitReached(needed=format_amount(most), left=format_amount(left))
            self._money -= taken
        if self._calls is not None:
            self._calls -= 1
        return taken

    def take_more(self, wanted: int) -> int:
        """What is left of the money, as far as it is wanted: a call has cost more than expected."""
        taken = 0 if self._money is None else min(wanted, self._money)
        self._money = None if self._money is None else self._money - taken
        return taken

    def give_back(self, amount: int) -> None:
        """A call has cost so much less than was set aside for it."""
        if self._money is not None:
            self._money += amount

    def use(self, tokens: int) -> None:
        """So many tokens were used, by the call itself or by one that was made for it."""
        if self._tokens is not None:
            self._tokens = max(0, self._tokens - max(0, tokens))

    def left(self, own: int | None = None) -> Spending:
        """The budget of a call that was just counted.

        `own` is what was set aside for a call that may spend no more than that; 0 for one that
        somebody else pays for, which has no bound here.
        """
        money = self._money
        if own is not None and money is not None:
            money = own or None
        return Spending(
            money=money,
            currency=None if money is None else self._currency,
            calls=self._calls,
            tokens=self._tokens,
        )
