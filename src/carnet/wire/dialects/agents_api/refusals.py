"""Errors in agents-api: the code of JSON-RPC, the status of HTTP, and the word of the dialect.

    over JSON-RPC    an answer with the status 200 and an error in it, unless the request never came
                     to be one: who is not known, may not call or must wait is told by the status
    over HTTP        {"code": WORD, "message": ..., "data": {"status": ...}}, as WordPress has it

Law 1. Every leaf of the error tree has one row (`row_of`): that of the dialect where it has a word
       for it, else ours behind `agents_api_`.
Law 2. What we write is our sentence and our facts, never the raw detail.
"""

from typing import Any, Final

from msgspec import Struct

from carnet import errors
from carnet.errors import CarnetError, Malformed
from carnet.wire.grammar import json

INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL: Final = -32603

PREFIX: Final = "agents_api_"
RPC_FORBIDDEN: Final = "agents_chat_jsonrpc_forbidden"
HTTP_FORBIDDEN: Final = "agents_frontend_chat_forbidden"
RPC_INVALID: Final = "agents_chat_jsonrpc_invalid_params"
HTTP_INVALID: Final = "agents_frontend_chat_invalid_input"
CEILING_SECONDS: Final = 60  # after which a chain that was too deep may be tried again

# What a request is refused with before it is one: then the status says so.
_AS_HTTP: Final = frozenset({401, 402, 403, 405, 408, 413, 414, 415, 421, 429, 431, 503})


class ErrorRow(Struct, frozen=True):
    """How an error is told."""

    code: int  # of JSON-RPC
    status: int  # of HTTP
    word: str  # over JSON-RPC
    http_word: str  # and over HTTP
    is_http: bool = False  # it is told by the status, whatever was asked in


def _row(code: int, status: int, word: str, http_word: str = "", *, http: bool = False) -> ErrorRow:
    return ErrorRow(code, status, word, http_word or word, http)


_NO_HANDLER: Final = _row(INTERNAL, 404, "agents_chat_no_handler")
_FORBIDDEN: Final = _row(INTERNAL, 403, RPC_FORBIDDEN, HTTP_FORBIDDEN, http=True)
_NOT_PENDING: Final = _row(INTERNAL, 409, "agents_pending_action_not_pending")

# What the dialect has a word for.
REFUSALS: Final[dict[type[CarnetError], ErrorRow]] = {
    errors.InvalidJson: _row(INVALID_REQUEST, 400, "rest_invalid_json", http=True),
    errors.RouteNotFound: _row(METHOD_NOT_FOUND, 404, "rest_no_route", http=True),
    errors.MethodNotAllowed: _row(METHOD_NOT_FOUND, 405, "rest_no_route", http=True),
    errors.InvalidRequest: _row(INVALID_PARAMS, 400, RPC_INVALID, HTTP_INVALID),
    errors.MalformedCallerContext: _row(
        INVALID_REQUEST, 400, "invalid_agent_caller_context", http=True
    ),
    errors.ChainMismatch: _row(INVALID_REQUEST, 400, "invalid_agent_caller_context", http=True),
    errors.PermissionMissing: _FORBIDDEN,
    errors.SkillForbidden: _FORBIDDEN,
    errors.AnswerForbidden: _FORBIDDEN,
    errors.AgentNotFound: _NO_HANDLER,
    errors.PeerUnknown: _NO_HANDLER,
    errors.SkillNotFound: _NO_HANDLER,
    errors.RunAlreadyStarted: _row(INTERNAL, 409, "agents_chat_run_already_started"),
    errors.RunOwnerForbidden: _row(INTERNAL, 403, "agents_chat_run_owner_forbidden"),
    errors.TaskNotFound: _row(INTERNAL, 404, "agents_pending_action_not_found"),
    errors.OperationUnsupported: _NOT_PENDING,
    errors.PolicyStateInvalid: _NOT_PENDING,
    errors.AnsweredOtherwise: _NOT_PENDING,
    errors.PeerResponseInvalid: _row(INTERNAL, 502, "agents_chat_invalid_result"),
    errors.StatementInvalid: _row(INTERNAL, 502, "agents_chat_invalid_result"),
    errors.DepthExceeded: _row(INTERNAL, 429, f"{PREFIX}chain_depth_exceeded", http=True),
    errors.ChainFinal: _row(INTERNAL, 429, f"{PREFIX}chain_depth_exceeded", http=True),
}


def row_of(kind: type[CarnetError]) -> ErrorRow:
    """The row of a leaf: its own, or what follows from its family."""
    for each in kind.__mro__:
        if each in REFUSALS:
            return REFUSALS[each]
    is_wrong = issubclass(kind, Malformed)
    word = f"{PREFIX}{kind.sent_as or kind.code}"
    code = INVALID_PARAMS if is_wrong else INTERNAL
    return ErrorRow(code, kind.status, word, word, kind.status in _AS_HTTP)


def rpc_code(error: CarnetError) -> int:
    """The code of an error in a frame; of one in the frame itself, that of the frame."""
    field = error.facts.get("field") if isinstance(error, errors.InvalidRequest) else None
    frames = {"jsonrpc": INVALID_REQUEST, "method": METHOD_NOT_FOUND}
    return frames.get(str(field), row_of(type(error)).code)


def text_of(error: CarnetError) -> str:
    """The sentence of an error; where the dialect fixes one, that."""
    if isinstance(error, errors.InvalidRequest):
        if error.facts["field"] == "jsonrpc":
            return "Request must be JSON-RPC 2.0."
        if error.facts["field"] == "method":
            return f'Unknown JSON-RPC method "{error.facts.get("method", "")}".'
    return error.safe_text


def word_of(error: CarnetError, *, rpc: bool) -> str:
    """The word of the dialect for an error."""
    own = error.facts.get("word") if isinstance(error, errors.InvalidRequest) else None
    row = row_of(type(error))
    return str(own) if own else row.word if rpc else row.http_word


def data_of(error: CarnetError, *, rpc: bool) -> dict[str, Any]:
    """What stands beside the sentence, for programs and for whoever looks for the next step."""
    chain = {"observed": "chain_depth", "limit": "ceiling"}
    is_deep = isinstance(error, errors.DepthExceeded | errors.ChainFinal)
    facts = error.public_facts()
    root = facts.pop("root", error.run)  # as the caller has named it
    if is_deep:
        facts |= {chain[name]: error.facts.get(name) for name in chain}
    more = {
        "hint": error.next_step,
        "chain_root_request_id" if is_deep else "run": root,
        "docs": f"/-/errors/{error.code}",
        "retry_after": CEILING_SECONDS if is_deep else error.retry_after,
    }
    found = {name: value for name, value in {**facts, **more}.items() if value is not None}
    if rpc:
        return {"code": word_of(error, rpc=True), **found}
    return {"status": row_of(type(error)).status, **found}


def rpc_error(error: CarnetError) -> dict[str, Any]:
    """The error member of a frame."""
    return {
        "code": rpc_code(error),
        "message": text_of(error),
        "data": data_of(error, rpc=True),
    }


def rpc_frame(error: CarnetError, name: str | int | None) -> dict[str, Any]:
    """The frame that tells an error."""
    return {"jsonrpc": "2.0", "id": name, "error": rpc_error(error)}


def http_body(error: CarnetError, *, rpc: bool) -> bytes:
    """An error that is told by a status."""
    return json.write(
        {
            "code": word_of(error, rpc=rpc),
            "message": text_of(error),
            "data": {**data_of(error, rpc=False)},
        }
    )
