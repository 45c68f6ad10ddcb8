"""The named budgets of one answer: those of the agent that is asked, and of the token that asks.

Law 1. A budget is looked at before what it counts is begun: a model is not asked, and a tool is not
       used, for which nothing is left.
Law 2. What was counted when a turn ran before is counted when it runs again, to the same number.
       The clock begins anew: the time in which somebody was asked is not counted.
Law 3. The budgets of an agent and of a token hold side by side. The first that ends is named.
"""

import asyncio
from typing import Final

from carnet.core.messages.events import ToolCall
from carnet.core.money.budget import (
    MOST_CEILING,
    OF_TOOL,
    TOOL_CALLS,
    TURNS,
    WALL_CLOCK,
    Ceilings,
    IterationBudget,
)
from carnet.errors import BudgetExceeded

AGENT: Final = "agent"
TOKEN: Final = "token"  # noqa: S105  whose budget it is


def raised(ceilings: Ceilings, granted: Ceilings) -> Ceilings:
    """The budgets of an agent, with what who pays has given beyond them."""
    more = dict(granted)
    return tuple([(name, ceiling + more.get(name, 0)) for name, ceiling in ceilings])


class LoopBudgets:
    """Counts what one answer takes."""

    def __init__(self, agent: Ceilings, token: Ceilings, counted: Ceilings = ()) -> None:
        """Begin with what was `counted` before, by another loop of the turn."""
        before = dict(counted)
        self._budgets = {
            (of, name): IterationBudget(name, ceiling, before.get(name, 0))
            for of, ceilings in ((AGENT, agent), (TOKEN, token))
            for name, ceiling in ceilings
        }
        self._began = asyncio.get_running_loop().time() if self._budgets else 0.0
        self.short: BudgetExceeded | None = None  # the first that ended, also of tokens

    def ask(self) -> None:
        """Count that the model is asked; BudgetExceeded where it may not be."""
        if not self._budgets:
            return
        elapsed = int(asyncio.get_running_loop().time() - self._began)
        for key, budget in self._budgets.items():
            if budget.name == WALL_CLOCK:
                self._budgets[key] = budget.at(elapsed)
        if not self._count({TURNS}, {WALL_CLOCK}) and self.short is not None:
            raise self.short

    @property
    def counted(self) -> Ceilings:
        """What was counted, for a loop that goes on with the turn; of time nothing."""
        found = {each.name: each.current for each in self._budgets.values()}
        counts = [(name, min(n, MOST_CEILING)) for name, n in found.items() if n]
        return tuple(sorted([each for each in counts if each[0] != WALL_CLOCK]))

    def use(self, call: ToolCall) -> bool:
        """Count that a tool is used; whether it may be. After the first that may not, none may."""
        return self.short is None and self._count({TOOL_CALLS, OF_TOOL + call.name}, set())

    def back(self, call: ToolCall) -> None:
        """A tool was not used yet: it waits, and is counted when it is."""
        for key, budget in self._budgets.items():
            if budget.name in {TOOL_CALLS, OF_TOOL + call.name}:
                self._budgets[key] = budget.at(budget.current - 1)

    def _count(self, counted: set[str], others: set[str]) -> bool:
        """Count one more in each, unless one of all has ended."""
        for (of, name), budget in self._budgets.items():
            if name in counted | others and budget.exceeded:
                counts = {"observed": budget.current, "limit": budget.ceiling}
                self.short = BudgetExceeded(name, budget=of, part=name, **counts)
                return False
        for key, budget in self._budgets.items():
            if budget.name in counted:
                self._budgets[key] = budget.increment()
        return True
