"""Errors in the OpenAI dialect: ours into JSON, and a peer's into an error of ours.

It does not decide who may retry or how often; it says what happened and what may follow.

Law 1. Every leaf of the error tree has one row: a status and a wire code.
Law 2. What we write is our sentence and our facts; of what a peer wrote only numbers and words that
       we know ourselves are kept, never its text (A65).
Law 3. A chain that is too deep is terminal: it never carries Retry-After, and clients that repeat
       every 429 are told not to (tangle 1.4).
Law 4. What a peer says of its own callers (who, money, load) is about us, not about ours: it is
       told as `PeerRefused`, or as `PeerBusy` where the same call may succeed later.
"""

from string import Formatter
from typing import Final

from carnet import errors
from carnet.core.events import Failed
from carnet.errors import (
    BY_CODE,
    CarnetError,
    ChainFinal,
    DepthExceeded,
    Fact,
    InvalidJson,
    Ours,
    PeerBusy,
    PeerRefused,
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
    Refused,
)
from carnet.wire import json

REFUSALS: Final[dict[type[CarnetError], tuple[int, str]]] = {
    errors.InvalidJson: (400, "invalid_json"),
    errors.InvalidRequest: (400, "invalid_request"),
    errors.MalformedCallerContext: (400, "malformed_caller_context"),
    errors.ChainMismatch: (400, "chain_mismatch"),
    errors.UnsupportedProtocolVersion: (400, "unsupported_protocol_version"),
    errors.AddressInvalid: (422, "address_invalid"),
    errors.BodyTooLarge: (413, "body_too_large"),
    errors.MediaTypeUnsupported: (415, "media_type_unsupported"),
    errors.EncodingUnsupported: (415, "encoding_unsupported"),
    errors.TokenMissing: (401, "token_missing"),
    errors.TokenInvalid: (401, "token_invalid"),
    errors.PermissionMissing: (403, "permission_missing"),
    errors.AgentNotFound: (404, "agent_not_found"),
    errors.PeerUnknown: (404, "peer_unknown"),
    errors.RunNotFound: (404, "run_not_found"),
    errors.RouteNotFound: (404, "not_found"),
    errors.MethodNotAllowed: (405, "method_not_allowed"),
    errors.DepthExceeded: (429, "bridge_depth_exceeded"),  # R1; 413 is read, never written
    errors.ChainFinal: (429, "chain_final"),
    errors.RunCallsExceeded: (429, "run_calls_exceeded"),
    errors.PaymentRequired: (402, "payment_required"),
    errors.SpendingLimitReached: (402, "spending_limit_reached"),
    errors.PayerRefused: (402, "payer_refused"),
    errors.ForwardingNotAllowed: (403, "forwarding_not_allowed"),
    errors.PeerNotListed: (403, "peer_not_listed"),
    errors.IdempotencyMismatch: (422, "idempotency_mismatch"),
    errors.InProgress: (409, "in_progress"),
    errors.DefinitionChanged: (409, "definition_changed"),
    errors.Cancelled: (409, "cancelled"),
    errors.RateLimited: (429, "rate_limited"),
    errors.TooManyCalls: (429, "too_many_calls"),
    errors.Overloaded: (503, "overloaded"),
    errors.ShuttingDown: (503, "shutting_down"),
    errors.ProviderError: (502, "provider_error"),
    errors.ProviderUnavailable: (503, "provider_unavailable"),
    errors.ProviderTimeout: (504, "provider_timeout"),
    errors.CircuitOpen: (503, "circuit_open"),
    errors.PeerRefused: (502, "peer_refused"),
    errors.PeerBusy: (503, "peer_busy"),
    errors.EgressRefused: (502, "egress_refused"),
    errors.AgentFailed: (500, "agent_failed"),
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

UNRECOGNISED: Final = "unrecognised"
UNTOLD_WAIT_SECONDS: Final = 1  # for a peer that is busy and does not say for how long
_WAIT_DIGITS: Final = 6  # eleven days; a longer number is no waiting time

_COUNTS: Final = frozenset({"observed", "limit", "hop", "hops", "retry_after", "peer_status"})
_TAKEN_OVER: Final = _COUNTS | {"peer_code"}


def error_object(error: CarnetError, *, run: str | None) -> dict[str, Fact]:
    """The one shape of an error, with the `type` that OpenAI's clients look for."""
    status, code = _row(error)
    told: dict[str, Fact] = {
        "code": code,
        "message": error.safe_text,
        "type": _type(status),
        "hint": error.next_step,
        "docs": f"/-/errors/{code}",
    }
    if run is not None:
        told["run"] = run
    return told | error.public_facts()


def write_error(
    error: CarnetError, *, run: str | None = None, turn: str | None = None
) -> tuple[int, dict[str, str], bytes]:
    """The status, the headers and the body of a refusal."""
    status, _ = _row(error)
    told = error_object(error, run=run)
    if turn is not None:
        told["turn"] = turn
    body = json.write({"error": told, "code": told["code"], "message": told["message"]})
    return status, _headers(error, status), body


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


def _row(error: CarnetError) -> tuple[int, str]:
    # A subclass that somebody derived from a leaf is told as that leaf.
    return next(
        REFUSALS[kind] for kind in (*type(error).__mro__, errors.Internal) if kind in REFUSALS
    )


def _type(status: int) -> str:
    return _TYPES.get(status, "server_error" if _is_fault(status) else "invalid_request_error")


def _is_fault(status: int) -> bool:
    return status >= 500  # noqa: PLR2004  the class of server errors


# ------------------------------------------------------------------ what a peer says


def read_refusal(status: int, body: bytes, retry_after: str | None) -> CarnetError:
    """The error of ours that a peer's refusal stands for. Its body may be anything."""
    places = _places(body)
    code = _known_code(places)
    if status in {413, 429} and code == DepthExceeded.code:  # R1: the code first, then the status
        return DepthExceeded(observed=_count(places, "observed"), limit=_count(places, "limit"))
    wait = _wait_seconds(retry_after)
    if status in {408, 504}:
        return ProviderTimeout()
    if status == 425 or _is_fault(status):  # noqa: PLR2004  425: too early, come again
        return ProviderUnavailable() if wait is None else ProviderUnavailable(retry_after=wait)
    if status < 400:  # noqa: PLR2004  neither an answer nor a refusal: a redirect, say
        return ProviderError(f"the answer has the status {status}")
    return _refused(status, code, UNTOLD_WAIT_SECONDS if wait is None else wait)


def _refused(status: int, code: str, wait: int) -> CarnetError:
    if _may_be_repeated(status, code):
        return PeerBusy(peer_status=status, peer_code=code, retry_after=wait)
    return PeerRefused(peer_status=status, peer_code=code)


def read_failure(error: object) -> Failed:
    """The terminal event that an error inside a peer's stream stands for.

    A code about the chain or about what lies further on is kept if its sentence can be said with
    numbers and words of ours; any other refusal is one of the peer.
    """
    places = [error] if isinstance(error, dict) else []
    code = _known_code(places)
    kind = BY_CODE.get(code, ProviderError)
    blanks = _BLANKS[kind.code]
    if blanks <= _TAKEN_OVER and not _is_about_us(kind):
        facts: dict[str, Fact] = {name: _count(places, name) for name in blanks & _COUNTS}
        if "peer_code" in blanks:
            facts["peer_code"] = _known_code(places, "peer_code")
        return Failed(kind.code, facts)
    if issubclass(kind, Ours):  # the peer's own fault is a fault of what we asked
        return Failed(ProviderError.code)
    return Failed.of(_refused(REFUSALS[kind][0], code, UNTOLD_WAIT_SECONDS))


def _is_about_us(kind: type[CarnetError]) -> bool:
    return issubclass(kind, Refused) and not issubclass(kind, DepthExceeded | ChainFinal)


def _places(body: bytes) -> list[dict[str, object]]:
    """Where a code may stand: in the object under `error`, then at the top."""
    try:
        top = json.read_object(body)
    except InvalidJson:
        return []
    inner = top.get("error")
    return [inner, top] if isinstance(inner, dict) else [top]


def _known_code(places: list[dict[str, object]], name: str = "code") -> str:
    for place in places:
        code = place.get(name)
        if isinstance(code, str) and code in BY_CODE:
            return code
    return UNRECOGNISED


def _count(places: list[dict[str, object]], name: str) -> int:
    for place in places:
        value = place.get(name)
        if type(value) is int and 0 <= value <= json.MAX_INTEGER:
            return value
    return 0


def _wait_seconds(text: str | None) -> int | None:
    # A date is the other form of Retry-After; without a clock it says nothing here.
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= _WAIT_DIGITS):
        return None
    return int(text)


def _may_be_repeated(status: int, code: str) -> bool:
    kind = BY_CODE.get(code)
    return kind.retryable if kind else status == 429  # noqa: PLR2004  a rate that we do not know


def _blanks(kind: type[CarnetError]) -> frozenset[str]:
    sentences = Formatter().parse(kind.template + kind.hint)
    return frozenset(name for _, name, _, _ in sentences if name)


_BLANKS: Final = {kind.code: _blanks(kind) for kind in REFUSALS}
