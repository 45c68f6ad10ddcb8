"""Why the transaction has refused a call, as the error that its caller is told."""

from collections.abc import Sequence

from carnet.core.call import Admitted
from carnet.core.money.amount import format_amount
from carnet.errors import (
    BillUnpaid,
    CarnetError,
    ChainMismatch,
    DelegationReplayed,
    IdempotencyMismatch,
    NonceReplayed,
    PaymentRefused,
    PaymentRequired,
    PolicyStateInvalid,
    RateLimited,
    RunCallsExceeded,
    SpendingLimitReached,
    TokenBudgetExceeded,
    TooManyTasks,
)
from carnet.ports.calls.turns import TASKS, Denied, Quota
from carnet.ports.money.budgets import CALL, exceeded


def refusal(
    denied: Denied, admitted: Admitted, quotas: Sequence[Quota], most_run_calls: int
) -> CarnetError:
    """The error that a refused transaction stands for."""
    granted, payer = admitted.delegation, admitted.payer
    if denied.short is not None:
        is_hidden = payer.by_forwarding and not denied.short.name.startswith(CALL)
        return exceeded(denied.short, is_hidden=is_hidden)
    refusals: dict[str, CarnetError] = {
        "replayed": NonceReplayed(),
        "spent": PaymentRefused(reason="used")
        if granted is None or granted.single_use() is None
        else DelegationReplayed(link=granted.single_use_link()),
        "mismatch": IdempotencyMismatch(),
        "resolution": PolicyStateInvalid(),
        "chain": ChainMismatch("the parent turn is known here at another depth"),
        "moved": ChainMismatch("the turn is known here at another depth"),
        "rate": RateLimited(denied.bucket or "", retry_after=denied.retry_after or 1),
        "quota": _used_up(denied, quotas),
        "run_calls": RunCallsExceeded(limit=most_run_calls),
        "spending": (SpendingLimitReached if payer.own_issue else PaymentRequired)(
            **_amounts(denied, admitted)
        ),
        "unpaid": BillUnpaid(unpaid=format_amount(denied.amount)),
    }
    return refusals[denied.reason]


def _amounts(denied: Denied, admitted: Admitted) -> dict[str, str]:
    """What is needed; and what its payer has left, unless somebody else is told."""
    needed = denied.needed or admitted.reserve  # by an answer, or by the call
    facts = {"needed": format_amount(needed)} if needed else {}
    if not admitted.payer.by_forwarding:
        facts["left"] = format_amount(denied.amount)
    return facts


def _used_up(denied: Denied, quotas: Sequence[Quota]) -> CarnetError:
    """The error for a quota that is used up."""
    name = denied.bucket or ""
    quota = next((quota for quota in quotas if quota.name == name), Quota(name=name, limit=0))
    facts = {"limit": quota.limit, "retry_after": denied.retry_after or quota.retry_after}
    return TooManyTasks(**facts) if name.startswith(TASKS) else TokenBudgetExceeded(**facts)
