"""What a call takes of budgets: set aside here, and held in the transaction of its claim.

Law 1. A caller's budget only narrows: what it says is the most, and what it was given by others,
       or an operator has set, holds beside it.
Law 2. Nothing is written for a call that makes no others: its budget is opened in the store by the
       first call that is made for it, with what is left then.
Law 3. A callee that is told what it may spend is told no more than is held for it.
"""

from typing import Final

from msgspec.structs import replace

from carnet.core.call import LIKELY_TOKENS_OUT, Admitted, Ask, Call, Target
from carnet.core.chain.allowance import Allowance, Aside
from carnet.core.people.delegation import narrower
from carnet.core.people.identity import Payer
from carnet.core.people.proof import SECOND_US, Spending
from carnet.guards.candidate import Candidate
from carnet.ports.money.budgets import (
    CALL,
    RUN,
    Amounts,
    Budgets,
    BudgetTake,
    Opening,
    Taken,
)
from carnet.ports.world.clock import Clock

MODELS: Final = frozenset({"openai"})  # kinds of agents that are told how much they may say


def standing_of(budgets: Budgets | None, payer: Payer, run: str) -> tuple[str, ...]:
    """The budgets that operators have set for whoever pays, and for the run."""
    if budgets is None or not budgets.known:
        return ()
    account = payer.account
    names = [payer.quota, f"{RUN}{account.issuer}/{account.id}/{run}"]
    if payer.person is not None:
        names.append(f"person:{payer.person}")
    return budgets.standing(names)


def take_of(
    admitted: Admitted,
    target: Target,
    names: tuple[str, ...],
    aside: Aside,
    *,
    above: Opening | None = None,
    opens: Opening | None = None,
) -> BudgetTake:
    """What a claim holds of these."""
    calls, tokens = max(aside.calls, 1), aside.tokens
    shrinks = target.takes_budget
    return BudgetTake(
        names=names,
        take=Amounts(aside.money, calls, tokens),
        least=Amounts(min(aside.money, 1) if shrinks else aside.money, 1, min(tokens, 1)),
        run=admitted.carnet.run,
        above=above,
        opens=opens,
    )


def opening_of(parent: Call, clock: Clock) -> Opening | None:
    """How the budget of a call is opened, or was; None where it has none."""
    allowance = parent.allowance
    if allowance is None:
        return None
    name, opening = allowance.name, allowance.opening
    if name is None or opening is None:
        name = CALL + parent.record.key.hex()
        opening = allowance.open(name)
    begun = allowance.begun
    above = allowance.above
    until = allowance.until
    if until is not None:
        until = until * SECOND_US + clock.wall_us() - clock.steady_us()
    return Opening(
        name=name,
        limits=opening,
        parent=None if above is None else above.name,
        until=None if until is None else int(until),
        asks=allowance.asks,
        attempt=parent.record.attempt,
        spent=Amounts(begun.money, begun.calls, begun.tokens),
    )


async def learn(budgets: Budgets | None, allowance: Allowance, *, runs_again: bool) -> None:
    """Ask the store what is left of a budget: somebody may have raised it."""
    if budgets is None or allowance.name is None:
        return
    found = await budgets.find(allowance.name)
    if found is not None:
        allowance.learn(found.left, found.limits, runs_again=runs_again)
        allowance.asks = found.asks


def with_taken(admitted: Admitted, target: Target, taken: Taken, cost: int) -> Admitted:
    """What was admitted, with what it was given of budgets: its callee is told no more.

    One that is called again is told what it has for the whole call, with what it has used and has
    `cost` before.
    """
    amounts = taken.amounts
    granted = (amounts.calls, amounts.tokens)
    if not target.is_remote:
        return replace(admitted, granted=granted)
    left, asked = taken.left, admitted.granted
    is_paid = left.money is not None and amounts.money > 0  # else by somebody else, or not at all
    most = Spending(
        money=amounts.money + cost if is_paid else None,
        currency=left.currency if is_paid else None,
        calls=None if left.calls is None else amounts.calls,
        tokens=None if left.tokens is None else amounts.tokens,
    )
    if admitted.onward is None:  # a child, whose own document leaves
        budget = narrower(admitted.carnet.budget, most)
        if budget is not None and (cost or granted > asked):
            budget = replace(most, asks=budget.asks)
        carnet = replace(admitted.carnet, budget=budget)
        return replace(admitted, carnet=carnet, granted=granted)
    onward = replace(admitted.onward, budget=narrower(admitted.onward.budget, most))
    return replace(admitted, onward=onward, granted=granted)


def after_taking(allowance: Allowance | None, aside: Aside, taken: Taken) -> Allowance:
    """What is left for what is called for a call, as the store has it."""
    if allowance is None:
        return Allowance(taken.left)
    amounts = taken.amounts
    calls, tokens = aside.calls - amounts.calls, aside.tokens - amounts.tokens
    if calls > 0 or tokens > 0:
        allowance.give_back(Aside(0, max(calls, 0), max(tokens, 0)))
    if allowance.name is None:  # nothing was called for it yet
        allowance.narrow(taken.left)
    return allowance


def narrow(candidate: Candidate, budget: Spending, currency: str, clock: Clock) -> None:
    """Spend no more than a request says; its money is ours if it does not say whose."""
    if budget.seconds is not None:
        until = clock.steady_us() / SECOND_US + budget.seconds
        candidate.deadline = min(until, candidate.deadline or until)
        budget = replace(budget, seconds=None)
    if budget.money is not None and budget.currency is None:
        budget = replace(budget, currency=currency)
    if candidate.budget is not None:  # somebody else bounds it too: nobody here gives more
        budget = narrower(candidate.budget, budget) or budget
    elif candidate.target.asks and budget.asks is None:
        budget = replace(budget, asks=True)
    candidate.budget = budget


def set_aside(
    allowance: Allowance,
    target: Target,
    ask: Ask,
    most: int,
    currency: str,
    *,
    calls: int | None = 1,
) -> tuple[Aside, Ask]:
    """Set aside what a call may spend; that, and what is asked: to say no more than that.

    `calls` are those of one that is not told what it may spend; None: all that are left.
    """
    is_bound = target.is_remote or target.kind in MODELS
    if target.takes_budget:
        calls, tokens = None, None
    else:
        tokens = (ask.max_tokens or LIKELY_TOKENS_OUT) if is_bound else 0
    # An agent elsewhere can be told to cost less, and must not cost more than was set aside.
    taken = allowance.take(most, currency, shrinks=target.is_remote, calls=calls, tokens=tokens)
    bound = taken.tokens
    if not bound or not is_bound or target.takes_budget or ask.max_tokens == bound:
        return taken, ask
    body = ask.body
    if body is not None:
        name = "max_completion_tokens" if "max_completion_tokens" in body else "max_tokens"
        body = {**body, name: bound}
    return taken, replace(ask, max_tokens=bound, body=body)


def left_for(allowance: Allowance, target: Target, aside: Aside) -> Spending:
    """The budget that a call is given in turn."""
    return allowance.left(aside) if target.is_remote else allowance.left()


def least_of(allowance: Allowance, most: int) -> Spending:
    """The budget of a call that is made again when nothing is left here: what is kept of it counts.

    Its callee is told that there is a bound, and knows what it was told before.
    """
    left = allowance.left()
    return Spending(
        money=None if left.money is None else most,
        currency=left.currency,
        calls=None if left.calls is None else 1,
        tokens=None if left.tokens is None else 1,
    )
