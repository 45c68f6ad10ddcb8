"""Errors in the SAMVAD dialect: ours into one of its nine codes.

Law 1. Every leaf of the error tree has one row: a status and one of the nine. The status is the one
       that the protocol's text gives the code, unless HTTP has a word for the matter that the nine
       lack: too large, wrong media type, payment, not now.
Law 2. An error holds exactly `code` and `message`. The message is our sentence and the next step,
       never what was sent; which of our own errors it was is told by the header `carnet-code`.
Law 3. What a schema refuses names the field and the constraint, and nothing else (R12). The header
       `carnet-field` names the field once more, for callers that keep no text of ours.
Law 4. Every 429 says when to come back. A chain that is too deep is no 429 here: clients of the
       protocol repeat those.
"""

from typing import Final

from carnet import errors
from carnet.errors import CarnetError, SchemaInvalid
from carnet.wire.dialects.refusal import find_row
from carnet.wire.dialects.samvad.answer import span_from
from carnet.wire.dialects.samvad.reports import (
    AGENT_UNAVAILABLE,
    AUTH_FAILED,
    DELEGATION_EXCEEDED,
    INJECTION_DETECTED,
    RATE_LIMITED,
    REPLAY_DETECTED,
    SCHEMA_INVALID,
    SKILL_NOT_FOUND,
    STATUSES,
    TOKEN_BUDGET_EXCEEDED,
)
from carnet.wire.grammar import json
from carnet.wire.grammar.field_name import read_field

CODE_HEADER: Final = "carnet-code"
FIELD_HEADER: Final = "carnet-field"

_TOO_MANY: Final = 429
_UNAUTHORIZED: Final = 401


def _with_status(code: str, *kinds: type[CarnetError]) -> dict[type[CarnetError], tuple[int, str]]:
    """Rows with the status that the protocol gives the code."""
    return dict.fromkeys(kinds, (STATUSES[code], code))


REFUSALS: Final[dict[type[CarnetError], tuple[int, str]]] = {
    **_with_status(
        SCHEMA_INVALID,
        *(errors.InvalidJson, errors.InvalidRequest, errors.SchemaInvalid, errors.AddressInvalid),
        *(errors.NonceInvalid, errors.TimestampInvalid, errors.KeyInvalid),
        *(errors.MalformedCallerContext, errors.ChainMismatch, errors.TravelDocumentInvalid),
        *(errors.UnsupportedProtocolVersion, errors.MalformedRequest),
        errors.IdempotencyMismatch,  # a span that was used before, for something else
        *(errors.PersonExists, errors.TriggerExists, errors.TriggerPaused),
        *(errors.MemoryChanged, errors.MemoryFull),
        errors.UsageInvalid,
    ),
    # Asked of tasks in other dialects; rows keep the table whole.
    errors.TaskNotCancelable: (409, SCHEMA_INVALID),
    errors.OperationUnsupported: (400, SCHEMA_INVALID),
    errors.TaskRejected: (400, SCHEMA_INVALID),
    errors.RunAlreadyStarted: (409, SCHEMA_INVALID),
    errors.RunOwnerForbidden: (403, SCHEMA_INVALID),
    errors.PolicyStateInvalid: (409, SCHEMA_INVALID),
    errors.BodyTooLarge: (413, SCHEMA_INVALID),
    errors.MediaTypeUnsupported: (415, SCHEMA_INVALID),
    errors.EncodingUnsupported: (415, SCHEMA_INVALID),
    errors.UriTooLong: (414, SCHEMA_INVALID),
    errors.HeadersTooLarge: (431, SCHEMA_INVALID),
    errors.MethodNotAllowed: (405, SCHEMA_INVALID),
    errors.HeaderTimeout: (408, AGENT_UNAVAILABLE),
    errors.BodyTimeout: (408, AGENT_UNAVAILABLE),
    **_with_status(
        AUTH_FAILED,
        *(errors.SignatureMissing, errors.SignatureInvalid, errors.SignatureExpired),
        *(errors.InsufficientCoverage, errors.HeaderNotSigned),
        *(errors.DigestInvalid, errors.DigestMismatch, errors.DestinationMismatch),
        *(errors.KeyUnknown, errors.KeyRevoked, errors.TokenMissing, errors.TokenInvalid),
        errors.CallerNotVerified,
        *(errors.PermissionMissing, errors.SkillForbidden),
        *(errors.AccessDenied, errors.CredentialInvalid),
        *(errors.ForwardingNotAllowed, errors.PeerNotListed),
        *(errors.DelegationInvalid, errors.DelegationReplayed),
        # Hooks and sessions are no part of this dialect; rows keep the table whole.
        *(errors.HookRefused, errors.SessionInvalid, errors.SignInCodeInvalid, errors.CrossSite),
        errors.HostUnknown,
    ),
    errors.DelegationWidened: (400, DELEGATION_EXCEEDED),  # R12
    errors.DelegationExceeded: (400, DELEGATION_EXCEEDED),
    errors.CallbackForbidden: (400, SCHEMA_INVALID),
    errors.TokenBudgetExceeded: (429, TOKEN_BUDGET_EXCEEDED),
    errors.PaymentRequired: (402, AUTH_FAILED),
    errors.PayerRefused: (402, AUTH_FAILED),
    errors.PaymentRefused: (402, AUTH_FAILED),
    errors.SpendingLimitReached: (402, TOKEN_BUDGET_EXCEEDED),
    errors.BillUnpaid: (402, TOKEN_BUDGET_EXCEEDED),
    errors.BudgetExceeded: (402, TOKEN_BUDGET_EXCEEDED),
    # What is asked for before it goes on is more than a signature; nobody repeats these.
    errors.PaymentWanted: (402, AUTH_FAILED),
    errors.InputRequired: (403, AUTH_FAILED),
    errors.ApprovalRequired: (403, AUTH_FAILED),
    errors.ConsentRequired: (403, AUTH_FAILED),
    errors.SignInRequired: (403, AUTH_FAILED),  # 401 is for who has not signed
    errors.WaitRequired: (429, RATE_LIMITED),
    errors.RecoveryRequired: (503, AGENT_UNAVAILABLE),
    errors.LegalRestriction: (451, AUTH_FAILED),
    errors.PolicyForbidden: (403, AUTH_FAILED),
    errors.PolicyDenied: (403, AUTH_FAILED),
    errors.AnswerForbidden: (403, AUTH_FAILED),
    errors.PersonRequired: (403, AUTH_FAILED),
    errors.SessionRequired: (403, AUTH_FAILED),
    errors.StrangerKeyChanged: (403, AUTH_FAILED),
    **_with_status(REPLAY_DETECTED, errors.NonceReplayed, errors.TimestampOutOfWindow),  # R11
    **_with_status(INJECTION_DETECTED, errors.InjectionDetected),
    **_with_status(
        SKILL_NOT_FOUND,
        *(errors.SkillNotFound, errors.AgentNotFound, errors.PeerUnknown),
        *(errors.PeerAgentNotFound, errors.RunNotFound, errors.RouteNotFound),
        *(errors.TaskNotFound, errors.DeliveryNotFound, errors.InterruptNotFound),
        *(errors.RuleNotFound, errors.PersonNotFound, errors.TriggerNotFound),
        *(errors.ConversationNotFound, errors.MessageNotFound, errors.MemoryFileNotFound),
        *(errors.Deleted, errors.SessionNotFound),
    ),
    errors.ConversationBusy: (409, AGENT_UNAVAILABLE),
    errors.ConversationFull: (409, AGENT_UNAVAILABLE),
    errors.TooManyConversations: (409, AGENT_UNAVAILABLE),
    **_with_status(
        DELEGATION_EXCEEDED,  # final, as our own words for these are
        *(errors.DepthExceeded, errors.ChainFinal, errors.LoopDetected, errors.RunCallsExceeded),
    ),
    **_with_status(
        RATE_LIMITED,
        *(errors.RateLimited, errors.TooManyCalls, errors.TooManyStreams, errors.TooManyFailures),
        *(
            errors.TooManyTasks,
            errors.TooManyWaiting,
            errors.TooManyQuestions,
            errors.ModelRateLimited,
        ),
        *(errors.TooManyTriggers, errors.TooManyFirings),
    ),
    errors.Overloaded: (503, AGENT_UNAVAILABLE),  # not begun: R14, and what balancers look for
    errors.ShuttingDown: (503, AGENT_UNAVAILABLE),
    errors.TurnElsewhere: (503, AGENT_UNAVAILABLE),
    errors.InProgress: (503, AGENT_UNAVAILABLE),
    errors.StorageUnavailable: (503, AGENT_UNAVAILABLE),
    errors.OutcomeUnknown: (503, AGENT_UNAVAILABLE),
    **_with_status(
        AGENT_UNAVAILABLE,
        *(errors.AgentFailed, errors.Cancelled, errors.DefinitionChanged, errors.Internal),
        *(errors.Declined, errors.AnsweredOtherwise, errors.InterruptExpired),
        *(errors.ProviderError, errors.ProviderUnavailable, errors.ProviderTimeout),
        *(errors.CircuitOpen, errors.PeerRefused, errors.PeerBusy, errors.PeerUnreachable),
        *(errors.PeerResponseInvalid, errors.PeerCredentialMissing, errors.StatementInvalid),
        *(errors.EgressRefused, errors.FaultInjected, errors.ToolUnusable),
        *(errors.ModelRefused, errors.ModelKeyRefused, errors.ModelQuotaExceeded),
        *(errors.ModelNotFound, errors.ContextTooLong),
        # These two speak to people at a terminal; a row keeps the table whole.
        *(errors.ConfigInvalid, errors.Unreachable),
    ),
}


def error_object(error: CarnetError) -> dict[str, str]:
    """The two members that an error of the protocol has."""
    return {"code": find_row(REFUSALS, error)[1], "message": _message(error)}


def write_error(
    error: CarnetError, *, trace_id: str | None = None, span_id: str = ""
) -> tuple[int, dict[str, str], bytes]:
    """The status, the headers and the body of a refusal.

    Args:
        error: What happened.
        trace_id: The trace of the request; if not given, the run that the error met.
        span_id: The span of the answer, where there is a turn.
    """
    trace = error.run or "" if trace_id is None else trace_id
    facts = error_object(error)
    status, _ = find_row(REFUSALS, error)
    body = {
        "traceId": trace,
        "spanId": span_id or span_from(trace, error.code),
        "status": "error",
        "error": facts,
    }
    return status, _headers(error, status), json.write(body)


def _message(error: CarnetError) -> str:
    if isinstance(error, SchemaInvalid):
        return error.safe_text
    stamp = error.facts.get("stamp")
    whose = "" if stamp is None else f" The limit belongs to {stamp}."  # it has no other place
    return f"{error.safe_text}{whose} {error.next_step}"


def _headers(error: CarnetError, status: int) -> dict[str, str]:
    headers = {"content-type": "application/json", CODE_HEADER: error.code}
    field = read_field(error.public_facts().get("field"))
    if field is not None:
        headers[FIELD_HEADER] = field
    wait = error.retry_after
    if status == _TOO_MANY:
        headers["retry-after"] = str(max(wait or 0, 1))
    elif wait is not None and error.retryable:
        headers["retry-after"] = str(wait)
    if status == _UNAUTHORIZED:  # RFC 9110 asks for a challenge beside it
        headers["www-authenticate"] = "Signature"
    return headers
