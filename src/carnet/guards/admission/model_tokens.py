"""What of its tokens a call has left, before the loop that answers it asks its model.

Law 1. It is looked at before each ask, with all that the call and those made for it have used.
       Where nothing is left no model is asked; else it is told to say no more than that.
Law 2. What a call has brought is known here, and the store is asked where it has waited or is
       short: somebody may have raised it. Of what an operator has set others spend too: the store
       is asked each time.
Law 3. A call whose tokens nothing bounds is never looked at, whatever else of it is bounded.
Law 4. The store learns what a turn has used when the turn ends. What turns under way in this
       process have noted counts beside it, for each budget that an operator has set: loops at once
       exceed it by one answer each. One that ends while the store is asked is perhaps in neither
       figure: the store is asked again then.
Law 5. What a loop elsewhere says of itself ends its turn; nobody is asked for more because of it.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Final

from carnet.core.call import Call
from carnet.core.chain.allowance import Allowance
from carnet.errors import BudgetExceeded
from carnet.guards.admission.budgets import learn, opening_of, standing_of
from carnet.ports.engine.loop import LoopTokens
from carnet.ports.money.budgets import BudgetRecord, Budgets, BudgetShort, exceeded
from carnet.ports.world.clock import Clock

MOST_LOOKS: Final = 5  # at a budget of which turns end all the time

_TOKENS: Final = "tokens"


class ModelTokens:
    """Finds what calls have left."""

    def __init__(self, budgets: Budgets, clock: Clock) -> None:
        """`budgets` are those of the store."""
        self._budgets = budgets
        self._clock = clock
        self._under_way: dict[str, dict[bytes, CallTokens]] = {}  # by budget, then by turn
        self._ends: Counter[str] = Counter()  # by budget, while a turn of it is under way

    def of(self, call: Call) -> LoopTokens | None:
        """What one call has left; None where nothing bounds its tokens."""
        names = _bounding(self._budgets, call)
        if not names and _bounded(call.allowance) is None:
            return None
        tokens = CallTokens(call, self._budgets, self._clock, self)
        if names:
            self._watch(tokens, call.record.key, names)
        return tokens

    def noted(self, name: str, but: bytes) -> int:
        """What turns under way have noted of a budget, beyond what is held for them; but one."""
        turns = self._under_way.get(name, {})
        return sum([tokens.unheld for key, tokens in turns.items() if key != but])

    def ends(self, name: str) -> int:
        """How many turns of a budget have ended, for one of them that is under way."""
        return self._ends[name]

    def _watch(self, tokens: "CallTokens", key: bytes, names: Sequence[str]) -> None:
        """Count it in these until the task has ended that runs its turn, and records its end."""
        task = asyncio.current_task()
        if task is None:
            return
        for name in names:
            self._under_way.setdefault(name, {})[key] = tokens

        def forget(_: object) -> None:
            for name in names:
                turns = self._under_way.get(name, {})
                self._ends[name] += 1
                if turns.get(key) is tokens:
                    del turns[key]
                if not turns:
                    self._under_way.pop(name, None)
                    del self._ends[name]

        task.add_done_callback(forget)


class CallTokens:
    """The tokens of one call."""

    def __init__(self, call: Call, budgets: Budgets, clock: Clock, under_way: ModelTokens) -> None:
        """Nothing is counted yet, but for what was used before it waited."""
        record = call.record
        self._call = call
        self._budgets = budgets
        self._clock = clock
        self._under_way = under_way
        self._counted = 0  # that were noted in this attempt
        self._before = (record.tokens_in or 0) + (record.tokens_out or 0)
        self.short: BudgetExceeded | None = None

    @property
    def known(self) -> int:
        """How many the call has used, as far as it was noted."""
        return self._before + self._counted

    @property
    def unheld(self) -> int:
        """What was noted in this attempt beyond what the store holds for it."""
        return max(0, self._counted - self._call.granted[1])

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
        here = _bounded(self._call.allowance)
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
        known = max(limit - left - unnoted, here.tokens_used + here.before)
        counts = {"observed": _observed(known, unnoted, limit), "limit": limit}
        raise BudgetExceeded(here.name or "", budget="call", part=_TOKENS, **counts)

    async def _of_others(self, unnoted: int) -> list[int]:
        """What is left of the budgets that operators have set for who pays, and for the run."""
        names = _bounding(self._budgets, self._call)
        found = [await self._of_other(name, unnoted) for name in names]
        return [left for left in found if left is not None]

    async def _look(self, name: str) -> tuple[BudgetRecord | None, int]:
        """A budget as it stands, and what other turns under way have noted of it."""
        key, looks = self._call.record.key, 0
        while True:
            ends, before = self._under_way.ends(name), self._under_way.noted(name, key)
            budget = await self._budgets.find(name)
            others = self._under_way.noted(name, key)
            looks += 1
            if ends == self._under_way.ends(name):
                return budget, others
            if looks == MOST_LOOKS:
                return budget, max(before, others)  # rather too much than too little

    async def _of_other(self, name: str, unnoted: int) -> int | None:
        """What is left of one: it does not know yet what this call uses, beyond what it holds."""
        budget, others = await self._look(name)
        if budget is None:
            return None
        limit, spent = budget.limits.tokens or 0, budget.spent.tokens
        if budget.period is not None and self._clock.wall_us() >= budget.since + budget.period:
            spent = 0
        held = budget.held.tokens - self._call.granted[1]
        known = spent + max(0, held) + self._counted + others
        if known + unnoted < limit:
            return limit - known - unnoted
        observed = _observed(known, unnoted, limit)
        short = BudgetShort(name=budget.name, part=_TOKENS, observed=observed, limit=limit)
        raise exceeded(short, is_hidden=self._call.payer.by_forwarding)


def _observed(known: int, unnoted: int, limit: int) -> int:
    """What would be used: what was noted, and what the loop says beyond it within reason."""
    return max(known, min(known + unnoted, 2 * limit - 1)) + 1


def _bounded(allowance: Allowance | None) -> Allowance | None:
    """The budget that bounds the tokens of a call: its own, or one above it."""
    while allowance is not None and allowance.limits.tokens is None:
        allowance = allowance.above
    return allowance


def _bounding(budgets: Budgets, call: Call) -> list[str]:
    """The budgets of tokens that operators have set for who pays, and for the run."""
    names = standing_of(budgets, call.payer, call.carnet.run)
    return [name for name in names if budgets.known[name].limits.tokens is not None]


def _left(allowance: Allowance) -> int:
    return allowance.left().tokens or 0
