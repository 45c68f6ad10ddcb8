"""How a run has ended, in the words of agents-api.

    status       completed failed approval_required runtime_tool_pending budget_exceeded cancelled
                 interrupted
    stop_reason  natural, provider_error, or the status

Law 1. Every end of a turn is one of these. What is not `completed` is not complete.
Law 2. Of the other words, no run of ours ends so: it knows no spin (`stalled`), no number of its
       turns (`max_turns`), nothing half-done (`incomplete`) and no lock on a transcript.
"""

from typing import Any, Final

from carnet import errors
from carnet.core.messages.events import Done, End, Failed, Waiting
from carnet.errors import BY_CODE, CarnetError, Internal, Upstream

COMPLETED: Final = "completed"
APPROVAL: Final = "approval_required"
TOOL_PENDING: Final = "runtime_tool_pending"
FAILED: Final = "failed"
BUDGET: Final = "budget_exceeded"
CANCELLED: Final = "cancelled"
INTERRUPTED: Final = "interrupted"
TOOL_CALLS: Final = "tool_calls"  # the reason of an end that wants tools run

_STATUSES: Final[dict[type[CarnetError], str]] = {
    errors.Cancelled: CANCELLED,
    errors.InterruptExpired: INTERRUPTED,
    errors.Declined: INTERRUPTED,
    errors.TokenBudgetExceeded: BUDGET,
    errors.SpendingLimitReached: BUDGET,
    errors.PaymentRequired: BUDGET,
    errors.BillUnpaid: BUDGET,
    errors.PaymentRefused: BUDGET,
    errors.BudgetExceeded: BUDGET,
    errors.RunCallsExceeded: BUDGET,
    errors.DepthExceeded: BUDGET,
}
_REASONS: Final = {TOOL_CALLS: TOOL_PENDING, BUDGET: BUDGET}  # of an end that is none
_RETRYABLE: Final = frozenset({FAILED, BUDGET})


def status_of(end: End) -> str:
    """The status of a run that ends so."""
    if isinstance(end, Done):
        return _REASONS.get(end.reason, COMPLETED)
    if isinstance(end, Waiting):
        return APPROVAL
    return _STATUSES.get(BY_CODE.get(end.code, Internal), FAILED)


def outcome_of(end: End) -> dict[str, Any]:
    """The outcome of a run, as results carry it."""
    status = status_of(end)
    reason = status
    if status == COMPLETED:
        reason = "natural"
    elif status == FAILED and isinstance(end, Failed):
        is_theirs = issubclass(BY_CODE.get(end.code, Internal), Upstream)
        reason = "provider_error" if is_theirs else FAILED
    return {
        "status": status,
        "completed": status == COMPLETED,
        "stop_reason": reason,
        "retryable": status in _RETRYABLE,
    }
