"""What a call has cost above what was reserved, above its budget, or above what a peer may charge.

Law 1. Our own price is debited as far as the payer's limit and the budget of the run have it (R57);
       the store knows the first, here is the second. What is above is unpaid.
Law 2. What a peer says above what it may charge is disputed: it is written down and nobody owes it.
Law 3. A call to a peer is one call, however often it was tried: what it says it has cost in all is
       what counts, and what was debited for an earlier attempt is not debited again.
"""

import logging
from collections.abc import Sequence

from carnet.core.call import Call
from carnet.core.messages.events import Usage
from carnet.core.messages.interrupt import Interrupt, paid
from carnet.ports.calls.turns import DISPUTED, Debit, within

logger = logging.getLogger("carnet.runtime")


def within_budget(call: Call, debits: list[Debit], most: int) -> list[Debit]:
    """The debits of a call that has cost more than `most`, as far as its budget has them."""
    charged = sum(debit.amount for debit in debits if debit.kind == "owed")
    carnet = call.carnet
    logger.warning(
        "a call cost more than was reserved for it",
        extra={
            "run": carnet.run,
            "turn": carnet.turn,
            "agent": call.agent,
            "charged": charged,
            "limit": most,
        },
    )
    aside = _set_aside(call)
    if aside is None:
        return debits
    if call.target.is_remote:
        debits = _cut(debits, aside)
    over = sum(debit.amount for debit in debits if debit.kind == "owed") - aside
    more = call.allowance.take_more(over) if over > 0 and call.allowance is not None else 0
    return within(debits, aside + more, call.payer.owing)


def _set_aside(call: Call) -> int | None:
    """What was set aside for a call of the budget that bounds it; None where none does."""
    budget = call.carnet.budget
    if not call.set_aside or budget is None or budget.money is None:
        return None
    return call.set_aside + paid(call.resolved)


def _cut(debits: list[Debit], most: int) -> list[Debit]:
    """What a peer charges is never more than was set aside for it."""
    peer, *rest = debits
    if peer.amount <= most:
        return debits
    disputed = Debit(DISPUTED + peer.credit, peer.amount - most, "disputed")
    return [Debit(peer.credit, most), *rest, disputed]


def most_cost(call: Call) -> int:
    """What a peer may have charged for a call whose cost it does not tell."""
    bounds = [call.target.most_cost + paid(call.resolved), _set_aside(call)]
    if call.payer.limit is not None:
        bounds.append(call.reserve)
    return min(bound for bound in bounds if bound is not None)


def asked_again(call: Call, interrupts: Sequence[Interrupt]) -> int:
    """What was agreed to and not paid, since it is asked for again: nothing holds it until then."""
    if call.payer.limit is None:
        return 0
    names = {asked.id for asked in interrupts}
    return paid([each for each in call.resolved if each.interrupt.id in names])


def same_call(usages: Sequence[Usage]) -> list[Usage]:
    """What one call to a peer has used: each attempt tells all of it."""
    counts = [usage.tokens_in for usage in usages], [usage.tokens_out for usage in usages]
    costs = [usage.cost for usage in usages]
    return [Usage(_most(counts[0]), _most(counts[1]), _most(costs))]


def _most(counts: Sequence[int | None]) -> int | None:
    return max((count for count in counts if count is not None), default=None)


def disputes(call: Call, disputed: int) -> list[Debit]:
    """What the callee says above what it may charge, without what was written down before."""
    new = disputed - (call.record.disputed or 0)
    return [Debit(DISPUTED + call.target.credit, new, "disputed")] if new > 0 else []
