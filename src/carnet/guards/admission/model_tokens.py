"""What of its tokens a call has left, before the loop that answers it asks its model.

Law 1. It is looked at before each ask, with all that the call and those made for it have used.
       Where nothing is left no model is asked; else it is told to say no more than that.
Law 2. What a call has brought is known here, and the store is asked where it has waited or is
       short: somebody may have raised it. Of what an operator has set others spend too: the store
       is asked each time.
Law 3. A call that no budget holds is never looked at. One budget without tokens costs nothing.
"""

from carnet.core.call import Call
from carnet.core.chain.allowance import Allowance
from carnet.errors import BudgetExceeded
from carnet.guards.admission.budgets import learn, opening_of, standing_of
from carnet.ports.engine.loop import LoopTokens
from carnet.ports.money.budgets import BudgetRecord, Budgets, BudgetShort, exceeded
from carnet.ports.world.clock import Clock

_TOKENS = "tokens"


class ModelTokens:
    """Finds what calls have left."""

    def __init__(self, budgets: Budgets, clock: Clock) -> None:
        """`budgets` are those of the store."""
        self._budgets = budgets
        self._clock = clock

    def of(self, call: Call) -> LoopTokens | None:
        """What one call has left; None where no budget holds for it."""
        return None if call.allowance is None else CallTokens(call, self._budgets, self._clock)


class CallTokens:
    """The tokens of one call."""

    def __init__(self, call: Call, budgets: Budgets, clock: Clock) -> None:
        """Nothing is counted yet, but for what was used before it waited."""
        record = call.record
        self._call = call
        self._budgets = budgets
        self._clock = clock
        self._counted = 0  # that were noted in this attempt
        self._before = (record.tokens_in or 0) + (record.tokens_out or 0)
        self.short: BudgetExceeded | None = None

    @property
    def known(self) -> int:
        """How many the call has used, as far as it was noted."""
        return self._before + self._counted

    def count(self, tokens: int) -> None:
        """So many more were noted."""
        self._counted += tokens

    async def left(self, used: int, /) -> int | None:
        """How many are left where its loop has used so many; BudgetExceeded where none is."""
        unnoted = max(0, used - self.known)
        try:
            bounds = [*await self._of_others(unnoted), await self._of_call(unnoted)]
        except BudgetExceeded as short:
            self.short = short
            raise
        return min([each for each in bounds if each is not None], default=None)

    async def _of_call(self, unnoted: int) -> int | None:
        """What is left of what the call has brought, or was given by who calls it."""
        here = self._call.allowance
        while here is not None and here.limits.tokens is None:
            here = here.above
        if here is None:
            return None
        has_waited = self._call.record.fence > 1
        if has_waited or _left(here) <= unnoted:
            opening_of(self._call, self._clock)  # under which name the store may know it
            await learn(self._budgets, here, runs_again=has_waited)
        left = _left(here) - unnoted
        if left > 0:
            return left
        limit = here.limits.tokens or 0
        used = here.tokens_used + here.before + unnoted
        counts = {"observed": max(limit - left, used) + 1, "limit": limit}
        raise BudgetExceeded(here.name or "", budget="call", part=_TOKENS, **counts)

    async def _of_others(self, unnoted: int) -> list[int]:
        """What is left of the budgets that operators have set for who pays, and for the run."""
        budgets, payer = self._budgets, self._call.payer
        names = standing_of(budgets, payer, self._call.carnet.run)
        bounding = [name for name in names if budgets.known[name].limits.tokens is not None]
        found = [await budgets.find(name) for name in bounding]
        return [self._of_other(each, unnoted) for each in found if each is not None]

    def _of_other(self, budget: BudgetRecord, unnoted: int) -> int:
        """What is left of one: it does not know yet what this call uses, beyond what it holds."""
        limit, spent = budget.limits.tokens or 0, budget.spent.tokens
        if budget.period is not None and self._clock.wall_us() >= budget.since + budget.period:
            spent = 0
        held = budget.held.tokens - self._call.granted[1]
        used = spent + max(0, held) + self._counted + unnoted
        if used < limit:
            return limit - used
        short = BudgetShort(name=budget.name, part=_TOKENS, observed=used + 1, limit=limit)
        raise exceeded(short, is_hidden=self._call.payer.by_forwarding)


def _left(allowance: Allowance) -> int:
    return allowance.left().tokens or 0
