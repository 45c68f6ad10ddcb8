"""Errors in the OpenAI dialect: ours into JSON. A peer's are read by `reports`.

It does not decide who may retry or how often; it says what happened and what may follow.

Law 1. Every leaf of the error tree has one row: a status and a wire code.
Law 2. What we write is our sentence and our facts, never the raw detail.
Law 3. A chain that is too deep is terminal: it never carries Retry-After, and clients that repeat
       every 429 are told not to (tangle 1.4).
Law 4. What a turn waits for stands beside its error: `interrupt` is the oldest, `interrupts` are
       all of them. Nobody is to repeat it by itself, whatever the status.
Law 5. What a failed call has cost stands beside its error, so that the caller's books agree with
       ours; where it cost nothing, or nobody knows, there is no word of it.
"""

from typing import Any, Final

from carnet import errors
from carnet.core.messages.events import Usage, Waiting
from carnet.errors import CarnetError, DepthExceeded, Fact
from carnet.wire.dialects.openai.answer import charge_member
from carnet.wire.dialects.policy import interrupt_objects
from carnet.wire.dialects.refusal import find_row
from carnet.wire.grammar import json

REFUSALS: Final[dict[type[CarnetError], tuple[int, str]]] = {
    errors.InvalidJson: (400, "invalid_json"),
    errors.InvalidRequest: (400, "invalid_request"),
    errors.MalformedCallerContext: (400, "malformed_caller_context"),
    errors.ChainMismatch: (400, "chain_mismatch"),
    errors.UnsupportedProtocolVersion: (400, "unsupported_protocol_version"),
    errors.AddressInvalid: (422, "address_invalid"),
    errors.SchemaInvalid: (422, "schema_invalid"),
    errors.NonceInvalid: (400, "nonce_invalid"),
    errors.TimestampInvalid: (400, "timestamp_invalid"),
    errors.TravelDocumentInvalid: (400, "travel_document_invalid"),
    errors.KeyInvalid: (422, "key_invalid"),
    errors.CallbackForbidden: (422, "callback_forbidden"),
    errors.BodyTooLarge: (413, "body_too_large"),
    errors.MediaTypeUnsupported: (415, "media_type_unsupported"),
    errors.EncodingUnsupported: (415, "encoding_unsupported"),
    errors.MalformedRequest: (400, "malformed_request"),
    errors.HeadersTooLarge: (431, "headers_too_large"),
    errors.UriTooLong: (414, "uri_too_long"),
    errors.HeaderTimeout: (408, "header_timeout"),
    errors.BodyTimeout: (408, "body_timeout"),
    errors.TokenMissing: (401, "token_missing"),
    errors.TokenInvalid: (401, "token_invalid"),
    errors.CallerNotVerified: (401, "caller_not_verified"),
    errors.PolicyDenied: (403, "policy_denied"),
    errors.SessionInvalid: (401, "session_invalid"),
    errors.SignInCodeInvalid: (401, "sign_in_code_invalid"),
    errors.CrossSite: (403, "cross_site"),
    errors.HostUnknown: (421, "host_unknown"),
    errors.TooManyFailures: (429, "too_many_failures"),
    errors.PermissionMissing: (403, "permission_missing"),
    errors.AccessDenied: (403, "access_denied"),
    errors.CredentialInvalid: (401, "credential_invalid"),
    errors.SignatureMissing: (401, "signature_missing"),
    errors.SignatureInvalid: (401, "signature_invalid"),
    errors.SignatureExpired: (401, "signature_expired"),
    errors.InsufficientCoverage: (401, "insufficient_coverage"),
    errors.HeaderNotSigned: (401, "header_not_signed"),
    errors.DigestInvalid: (401, "digest_invalid"),
    errors.DigestMismatch: (401, "digest_mismatch"),
    errors.DestinationMismatch: (401, "destination_mismatch"),
    errors.KeyUnknown: (401, "key_unknown"),
    errors.KeyRevoked: (401, "key_revoked"),
    errors.NonceReplayed: (401, "nonce_replayed"),
    errors.TimestampOutOfWindow: (401, "timestamp_out_of_window"),
    errors.DelegationInvalid: (401, "delegation_invalid"),
    errors.DelegationWidened: (403, "delegation_widened"),
    errors.DelegationExceeded: (403, "delegation_exceeded"),
    errors.DelegationReplayed: (401, "delegation_replayed"),
    errors.InjectionDetected: (400, "injection_detected"),
    errors.SkillNotFound: (404, "skill_not_found"),
    errors.SkillForbidden: (403, "skill_forbidden"),
    errors.AgentNotFound: (404, "agent_not_found"),
    errors.PeerUnknown: (404, "peer_unknown"),
    errors.PeerAgentNotFound: (404, "peer_agent_not_found"),
    errors.StrangerKeyChanged: (403, "stranger_key_changed"),
    errors.RunNotFound: (404, "run_not_found"),
    errors.PersonNotFound: (404, "person_not_found"),
    errors.TaskNotFound: (404, "task_not_found"),
    errors.TaskNotCancelable: (409, "task_not_cancelable"),
    errors.OperationUnsupported: (400, "operation_unsupported"),
    errors.TaskRejected: (422, "rejected"),
    errors.ConversationNotFound: (404, "conversation_not_found"),
    errors.MessageNotFound: (404, "message_not_found"),
    errors.DeliveryNotFound: (404, "delivery_not_found"),
    errors.RouteNotFound: (404, "not_found"),
    errors.MethodNotAllowed: (405, "method_not_allowed"),
    errors.DepthExceeded: (429, "bridge_depth_exceeded"),  # R1; 413 is read, never written
    errors.ChainFinal: (429, "chain_final"),
    errors.RunCallsExceeded: (429, "run_calls_exceeded"),
    errors.LoopDetected: (409, "loop_detected"),
    errors.PaymentRequired: (402, "payment_required"),
    errors.SpendingLimitReached: (402, "spending_limit_reached"),
    errors.BillUnpaid: (402, "bill_unpaid"),
    errors.BudgetExceeded: (402, "budget_exceeded"),
    errors.PayerRefused: (402, "payer_refused"),
    errors.PaymentRefused: (402, "payment_refused"),
    errors.ForwardingNotAllowed: (403, "forwarding_not_allowed"),
    errors.PeerNotListed: (403, "peer_not_listed"),
    errors.IdempotencyMismatch: (422, "idempotency_mismatch"),
    errors.RunAlreadyStarted: (409, "run_already_started"),
    errors.RunOwnerForbidden: (403, "run_owner_forbidden"),
    errors.InProgress: (409, "in_progress"),
    errors.DefinitionChanged: (409, "definition_changed"),
    errors.Cancelled: (409, "cancelled"),
    errors.InputRequired: (403, "input_required"),
    errors.ApprovalRequired: (403, "approval_required"),
    errors.ConsentRequired: (403, "consent_required"),
    errors.SignInRequired: (401, "sign_in_required"),
    errors.PaymentWanted: (402, "payment_required"),
    errors.WaitRequired: (429, "rate_limited"),
    errors.RecoveryRequired: (503, "unavailable"),
    errors.LegalRestriction: (451, "legal_restriction"),
    errors.PolicyForbidden: (403, "policy_forbidden"),
    errors.AnswerForbidden: (403, "answer_forbidden"),
    errors.Declined: (403, "declined"),
    errors.AnsweredOtherwise: (409, "answered_otherwise"),
    errors.InterruptNotFound: (404, "interrupt_not_found"),
    errors.RuleNotFound: (404, "rule_not_found"),
    errors.MemoryFileNotFound: (404, "memory_file_not_found"),
    errors.InterruptExpired: (410, "interrupt_expired"),
    errors.PolicyStateInvalid: (409, "policy_state_invalid"),
    errors.SessionNotFound: (404, "session_not_found"),
    errors.PersonExists: (409, "person_exists"),
    errors.HookRefused: (401, "hook_refused"),
    errors.TriggerPaused: (409, "trigger_paused"),
    errors.TriggerNotFound: (404, "trigger_not_found"),
    errors.TriggerExists: (409, "trigger_exists"),
    errors.TooManyTriggers: (429, "too_many_triggers"),
    errors.TooManyFirings: (429, "too_many_firings"),
    errors.Deleted: (410, "deleted"),
    errors.ConversationBusy: (409, "conversation_busy"),
    errors.ConversationFull: (409, "conversation_full"),
    errors.TooManyConversations: (409, "too_many_conversations"),
    errors.MemoryChanged: (409, "memory_changed"),
    errors.MemoryFull: (409, "memory_full"),
    errors.PersonRequired: (403, "person_required"),
    errors.SessionRequired: (403, "session_required"),
    errors.RateLimited: (429, "rate_limited"),
    errors.TokenBudgetExceeded: (429, "token_budget_exceeded"),
    errors.TooManyTasks: (429, "too_many_tasks"),
    errors.TooManyWaiting: (429, "too_many_waiting"),
    errors.TooManyQuestions: (429, "too_many_questions"),
    errors.TooManyCalls: (429, "too_many_calls"),
    errors.TooManyStreams: (429, "too_many_streams"),
    errors.Overloaded: (503, "overloaded"),
    errors.ShuttingDown: (503, "shutting_down"),
    errors.TurnElsewhere: (421, "turn_elsewhere"),
    errors.ProviderError: (502, "provider_error"),
    errors.ProviderUnavailable: (503, "provider_unavailable"),
    errors.ProviderTimeout: (504, "provider_timeout"),
    errors.ContextTooLong: (400, "context_length_exceeded"),
    errors.ModelRefused: (400, "model_refused"),
    errors.ModelKeyRefused: (502, "model_key_refused"),
    errors.ModelQuotaExceeded: (503, "model_quota_exceeded"),
    errors.ModelRateLimited: (429, "model_rate_limited"),
    errors.ModelNotFound: (502, "model_not_found"),
    errors.CircuitOpen: (503, "circuit_open"),
    errors.PeerRefused: (502, "peer_refused"),
    errors.PeerBusy: (503, "peer_busy"),
    errors.PeerUnreachable: (502, "peer_unreachable"),
    errors.PeerResponseInvalid: (502, "peer_response_invalid"),
    errors.StatementInvalid: (502, "statement_invalid"),
    errors.PeerCredentialMissing: (502, "peer_credential_missing"),
    errors.EgressRefused: (502, "egress_refused"),
    errors.AgentFailed: (500, "agent_failed"),
    errors.FaultInjected: (500, "fault_injected"),
    errors.ToolUnusable: (502, "tool_error"),
    errors.Internal: (500, "internal"),
    errors.StorageUnavailable: (503, "storage_unavailable"),
    errors.OutcomeUnknown: (503, "outcome_unknown"),
    # These three speak to people at a terminal; a row keeps the table whole.
    errors.ConfigInvalid: (500, "config_invalid"),
    errors.UsageInvalid: (400, "usage_invalid"),
    errors.Unreachable: (503, "unreachable"),
}

# The words that OpenAI's clients know, by status; any other status has the first or the last.
_TYPES: Final = {
    401: "authentication_error",
    402: "payment_required",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    429: "rate_limit_error",
}

# OpenAI's own client repeats these statuses unless x-should-retry forbids it.
_REPEATED_BY_CLIENTS: Final = frozenset({408, 409, 429})


def error_object(error: CarnetError, *, run: str | None) -> dict[str, Fact]:
    """The one shape of an error, with the `type` that OpenAI's clients look for."""
    status, code = find_row(REFUSALS, error)
    facts: dict[str, Fact] = {
        "code": code,
        "message": error.safe_text,
        "type": _type(status),
        "hint": error.next_step,
        "docs": f"/-/errors/{code}",
    }
    if run is not None:
        facts["run"] = run
    return facts | error.public_facts()


def write_error(
    error: CarnetError,
    *,
    run: str | None = None,
    turn: str | None = None,
    usage: Usage | None = None,
    currency: str | None = None,
) -> tuple[int, dict[str, str], bytes]:
    """The status, the headers and the body of a refusal; `usage` is what the call has cost."""
    status, _ = find_row(REFUSALS, error)
    facts = error_object(error, run=run)
    if turn is not None:
        facts["turn"] = turn
    body: dict[str, Any] = {"error": facts, "code": facts["code"], "message": facts["message"]}
    return status, _headers(error, status), json.write(body | charge_member(usage, currency))


def waiting_object(waiting: Waiting, *, run: str | None) -> dict[str, Any]:
    """The error of a turn that waits, with what it waits for."""
    asked = interrupt_objects(waiting)
    return {**error_object(waiting.error(), run=run), "interrupt": asked[0], "interrupts": asked}


def write_waiting(
    waiting: Waiting, *, run: str | None, usage: Usage | None, currency: str, partial: str = ""
) -> tuple[int, dict[str, str], bytes]:
    """The status, the headers and the body for a turn that waits, by what it asked for first."""
    error = waiting.error()
    status, _ = find_row(REFUSALS, error)
    facts = waiting_object(waiting, run=run)
    body: dict[str, Any] = {"error": facts, "code": facts["code"], "message": facts["message"]}
    if partial:  # such as the answers of those who were asked beside
        body["partial"] = partial
    headers = {**_headers(error, status), "x-should-retry": "false"}
    return status, headers, json.write(body | charge_member(usage, currency))


def _headers(error: CarnetError, status: int) -> dict[str, str]:
    headers = {"content-type": "application/json"}
    wait = None if isinstance(error, DepthExceeded) else error.retry_after
    if wait is not None:
        headers["retry-after"] = str(wait)
    elif not error.retryable and (status in _REPEATED_BY_CLIENTS or _is_fault(status)):
        headers["x-should-retry"] = "false"
    if status == 401:  # noqa: PLR2004  RFC 9110 asks for a challenge beside it
        headers["www-authenticate"] = "Bearer"
    return headers


def _type(status: int) -> str:
    return _TYPES.get(status, "server_error" if _is_fault(status) else "invalid_request_error")


def _is_fault(status: int) -> bool:
    return status >= 500  # noqa: PLR2004  the class of server errors
