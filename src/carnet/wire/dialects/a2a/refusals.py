"""Errors in A2A: the code of JSON-RPC, the status of HTTP, and the name that both give it.

Law 1. Every leaf of the error tree has one row. Where A2A has an error of its own for it, that is
       what is told; else the caller is told that the request is wrong, refused, or our fault, and
       our own code stands beside it.
Law 2. What we write is our sentence and our facts, never the raw detail.
Law 3. Who activated policy parts is told a refusal by one as well, where there is a kind for it.
Law 4. Over JSON-RPC an error is an answer: its status is 200, unless the caller is not known, must
       wait, or the request never came to be one.
"""

from typing import Any, Final

from msgspec import Struct

from carnet import errors
from carnet.errors import CarnetError, Malformed, Ours, Refused, Upstream
from carnet.wire.dialects.a2a.extensions.questions.policy_part import POLICY_URI, failure_part
from carnet.wire.grammar import json

DOMAIN: Final = "a2a-protocol.org"
OWN_DOMAIN: Final = "carnet"
INFO: Final = "type.googleapis.com/google.rpc.ErrorInfo"

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL: Final = -32603
REFUSED: Final = -32050  # of those that are left to implementations
FRAME: Final = frozenset({"jsonrpc", "method", "params", "request id"})  # of a request itself

_GRPC: Final = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "FAILED_PRECONDITION",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    410: "NOT_FOUND",
    413: "OUT_OF_RANGE",
    414: "INVALID_ARGUMENT",
    415: "INVALID_ARGUMENT",
    421: "FAILED_PRECONDITION",
    422: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    431: "INVALID_ARGUMENT",
    451: "PERMISSION_DENIED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    502: "UNAVAILABLE",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_UNPROCESSABLE: Final = 422
_PRECONDITION: Final = "FAILED_PRECONDITION"
_AS_HTTP: Final = frozenset({401, 403, 405, 408, 413, 414, 415, 429, 431, 503})


class ErrorForm(Struct, frozen=True):
    """How an error is told."""

    code: int  # of JSON-RPC
    status: int  # of HTTP
    reason: str = ""  # in capitals; empty: our own code
    grpc: str = ""  # the word for the status; empty: the usual one
    domain: str = DOMAIN


# What A2A and JSON-RPC have a word for.
REFUSALS: Final[dict[type[CarnetError], ErrorForm]] = {
    errors.InvalidJson: ErrorForm(PARSE_ERROR, 400, domain=OWN_DOMAIN),
    errors.MalformedRequest: ErrorForm(INVALID_REQUEST, 400, domain=OWN_DOMAIN),
    errors.RouteNotFound: ErrorForm(METHOD_NOT_FOUND, 404, domain=OWN_DOMAIN),
    errors.MethodNotAllowed: ErrorForm(METHOD_NOT_FOUND, 405, domain=OWN_DOMAIN),
    errors.TaskNotFound: ErrorForm(-32001, 404, "TASK_NOT_FOUND"),
    errors.TaskNotCancelable: ErrorForm(-32002, 400, "TASK_NOT_CANCELABLE", _PRECONDITION),
    errors.OperationUnsupported: ErrorForm(-32004, 400, "UNSUPPORTED_OPERATION", _PRECONDITION),
    errors.MediaTypeUnsupported: ErrorForm(-32005, 415, "CONTENT_TYPE_NOT_SUPPORTED"),
    errors.EncodingUnsupported: ErrorForm(-32005, 415, "CONTENT_TYPE_NOT_SUPPORTED"),
    errors.PeerResponseInvalid: ErrorForm(-32006, 500, "INVALID_AGENT_RESPONSE"),
    errors.StatementInvalid: ErrorForm(-32006, 500, "INVALID_AGENT_RESPONSE"),
    errors.UnsupportedProtocolVersion: ErrorForm(
        -32009, 400, "VERSION_NOT_SUPPORTED", _PRECONDITION
    ),
}
_FAMILIES: Final[tuple[tuple[type[CarnetError], int], ...]] = (
    (Malformed, INVALID_PARAMS),
    (Refused, REFUSED),
    (Upstream, INTERNAL),
    (Ours, INTERNAL),
)


def form_of(error: CarnetError) -> ErrorForm:
    """How an error is told, by its own row or by that of its family."""
    for kind in type(error).__mro__:
        if kind in REFUSALS:
            return REFUSALS[kind]
    code = next((code for family, code in _FAMILIES if isinstance(error, family)), INTERNAL)
    # What is wrong with a request is 400 here, as google.rpc has it.
    status = 400 if error.status == _UNPROCESSABLE else error.status
    return ErrorForm(code, status, domain=OWN_DOMAIN)


def details_of(error: CarnetError, form: ErrorForm) -> list[dict[str, Any]]:
    """What stands beside the sentence: the name of the error, and what the caller can do."""
    own: dict[str, Any] = {"code": error.sent_as or error.code, **error.public_facts()}
    more = {"hint": error.next_step, "run": error.run, "docs": f"/-/errors/{error.code}"}
    own |= {name: value for name, value in more.items() if value}
    if error.retry_after is not None:
        own["retry_after"] = error.retry_after
    info = {
        "@type": INFO,
        "reason": form.reason or error.code.upper(),
        "domain": form.domain,
        "metadata": {name: str(value) for name, value in own.items()},
    }
    part = failure_part(error) if POLICY_URI in error.wanted else None
    return [info] if part is None else [info, {"@type": POLICY_URI, **part}]


def rpc_error(error: CarnetError) -> dict[str, Any]:
    """The error member of a JSON-RPC answer."""
    form = form_of(error)
    is_frame = isinstance(error, errors.InvalidRequest) and error.facts["field"] in FRAME
    code = INVALID_REQUEST if is_frame else form.code
    return {"code": code, "message": error.safe_text, "data": details_of(error, form)}


def rpc_body(error: CarnetError) -> bytes:
    """A JSON-RPC answer that is an error."""
    return json.write({"jsonrpc": "2.0", "id": error.request_id, "error": rpc_error(error)})


def rpc_status(error: CarnetError) -> int:
    """The status that such an answer has."""
    form = form_of(error)
    return form.status if form.status in _AS_HTTP else 200


def http_status(error: CarnetError) -> int:
    """The status of an error over HTTP+JSON."""
    return form_of(error).status


def http_body(error: CarnetError) -> bytes:
    """An error over HTTP+JSON."""
    return json.write({"error": http_error(error)})


def http_error(error: CarnetError) -> dict[str, Any]:
    """The status of google.rpc that tells an error."""
    form = form_of(error)
    return {
        "code": form.status,
        "status": form.grpc or _GRPC[form.status],
        "message": error.safe_text,
        "details": details_of(error, form),
    }
