"""What went wrong, in the words of the contract: before the stream by a status, in it by its end.

Law 1. An error holds exactly `code` and `message`.
Law 2. In a stream there are three codes, each with one fixed sentence. Which of them it is depends
       on what kind of error was raised, never on its text.
Law 3. What stops a loop and is no failure (a budget, a cancellation, a stop, a question to
       somebody) is `done` with a reason of its own.
Law 4. What the contract has no word for is a fault of the loop: its stream ends without an end, and
       whoever reads it says so.
Law 5. Before the stream the status says it, and a code goes with each status. Only a request that
       is not in its form is told more, by its place.
"""

from typing import Final

from carnet import errors
from carnet.core.messages.events import Done, Failed
from carnet.errors import CarnetError, ContextTooLong, Malformed, ProviderError, ToolUnusable
from carnet.wire.grammar import json

PROVIDER_ERROR: Final = "provider_error"
TOOL_ERROR: Final = "tool_error"
CONTEXT_OVERFLOW: Final = "context_overflow"

MESSAGES: Final = {
    PROVIDER_ERROR: "The model could not be asked, or did not give a proper answer.",
    TOOL_ERROR: "A tool that is needed for the answer cannot be used.",
    CONTEXT_OVERFLOW: "The conversation is longer than the model can read.",
}

TOO_MANY_ITERATIONS: Final = "max_iterations"
BUDGET_EXCEEDED: Final = "budget_exceeded"
CANCELLED: Final = "cancelled"
SHUTTING_DOWN: Final = "shutting_down"
APPROVAL_REQUIRED: Final = "approval_required"

# What the codes stand for where they are read.
FAILURES: Final[dict[str, type[CarnetError]]] = {
    PROVIDER_ERROR: ProviderError,
    TOOL_ERROR: ToolUnusable,
    CONTEXT_OVERFLOW: ContextTooLong,
}

_CAUSES: Final[dict[type[CarnetError], str]] = {
    **dict.fromkeys(
        (
            *(errors.ProviderError, errors.ProviderUnavailable, errors.ProviderTimeout),
            *(errors.CircuitOpen, errors.EgressRefused, errors.ModelRefused),
            *(errors.ModelKeyRefused, errors.ModelQuotaExceeded, errors.ModelRateLimited),
            errors.ModelNotFound,
        ),
        PROVIDER_ERROR,
    ),
    errors.ContextTooLong: CONTEXT_OVERFLOW,
    # An agent of somebody else is asked as a tool is.
    **dict.fromkeys(
        (
            *(errors.ToolUnusable, errors.PeerRefused, errors.PeerBusy, errors.PeerUnreachable),
            *(errors.PeerResponseInvalid, errors.PeerCredentialMissing, errors.StatementInvalid),
        ),
        TOOL_ERROR,
    ),
}
_REASONS: Final[dict[type[CarnetError], str]] = {
    errors.Cancelled: CANCELLED,
    errors.ShuttingDown: SHUTTING_DOWN,
    **dict.fromkeys(
        (
            *(errors.SpendingLimitReached, errors.PaymentRequired, errors.BillUnpaid),
            *(errors.PayerRefused, errors.PaymentRefused),
            *(errors.TokenBudgetExceeded, errors.BudgetExceeded),
        ),
        BUDGET_EXCEEDED,
    ),
}


def end_of(error: CarnetError) -> Done | Failed | None:
    """How a stream ends that met this error: with a reason, a code of the three, or not at all."""
    for kind in type(error).__mro__:
        if kind in _CAUSES:
            return Failed(_CAUSES[kind])
        if kind in _REASONS:
            return Done(_REASONS[kind])
    return None


def error_object(code: str) -> dict[str, str]:
    """What the event of an error holds."""
    return {"code": code, "message": MESSAGES[code]}


# ------------------------------------------------------------------ before the stream

_UNAVAILABLE: Final = 503
_SERVER_FAULT: Final = 500

BEFORE: Final[dict[int, tuple[str, str]]] = {
    400: ("invalid_request", "The request is not in its form."),
    401: ("unauthorized", "The request needs a valid credential."),
    403: ("forbidden", "This credential may not do that."),
    404: ("not_found", "There is nothing at this path."),
    405: ("method_not_allowed", "This path does not take that method."),
    408: ("timeout", "The request did not come in time."),
    413: ("too_large", "The request is too large."),
    414: ("too_large", "The path is too long."),
    415: ("unsupported_media_type", "The body must be JSON, and not compressed."),
    429: ("too_many_requests", "There were too many requests."),
    431: ("too_large", "The headers are too large."),
    _SERVER_FAULT: ("internal_error", "The engine failed before it began."),
    _UNAVAILABLE: ("engine_unavailable", "The engine takes no request at the moment."),
}


def write_refusal(error: CarnetError) -> tuple[int, bytes]:
    """The status and the body for a request that began no stream."""
    status = _status(error.status)
    code, message = BEFORE[status]
    if isinstance(error, Malformed):
        message = error.safe_text
    return status, json.write({"code": code, "message": message})


def _status(status: int) -> int:
    """One of the statuses that the contract has; others are told by their class."""
    if status in BEFORE:
        return status
    return 400 if status < _SERVER_FAULT else _UNAVAILABLE
