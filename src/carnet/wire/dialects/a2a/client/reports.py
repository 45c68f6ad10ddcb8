"""What an A2A agent says when it does not answer: its errors as errors of ours.

Law 1. Of what the other side wrote, only numbers and words of the protocol or of ours are kept,
       never its text (A65). What may be policy parts goes along as it came; who reads those
       cleans and bounds them. A Carnet has said by its code what they would say.
Law 2. A refusal is the end of it, unless the other side says that the same call may succeed later.
       A chain that is too deep is one (R1).
Law 3. A task that the other side does not know is `TaskNotFound`; whoever asked for it knows what
       that means.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from carnet.errors import (
    BY_CODE,
    AgentFailed,
    CarnetError,
    ChainFinal,
    DepthExceeded,
    Fact,
    InvalidJson,
    Malformed,
    Overloaded,
    PeerBusy,
    PeerRefused,
    ProviderError,
    RateLimited,
    Refused,
    ShuttingDown,
    TaskNotFound,
    TooManyCalls,
    TooManyStreams,
    TooManyTasks,
)
from carnet.wire.dialects.refusal import (
    BY_CALLEE,
    BY_PEER,
    DEFAULT_WAIT_SECONDS,
    STAMP,
    UNRECOGNISED,
    limit_of,
    unexplained,
    waiting,
)
from carnet.wire.grammar import json
from carnet.wire.grammar.retry_after import read_wait

ERROR: Final = "urn:carnet:a2a:error:v1"  # in the metadata of the last words of a task that failed
TASK_NOT_FOUND: Final = "TASK_NOT_FOUND"
TASK_NOT_CANCELABLE: Final = "TASK_NOT_CANCELABLE"
UNSUPPORTED: Final = "UNSUPPORTED_OPERATION"
VERSION_NOT_SUPPORTED: Final = "VERSION_NOT_SUPPORTED"
METHOD_NOT_FOUND: Final = "METHOD_NOT_FOUND"
INTERNAL: Final = "INTERNAL_ERROR"
INVALID_ANSWER: Final = "INVALID_AGENT_RESPONSE"

# The protocol's words, by the codes of JSON-RPC, and the status that its text gives each.
REASONS: Final[dict[int, str]] = {
    -32001: TASK_NOT_FOUND,
    -32002: TASK_NOT_CANCELABLE,
    -32003: "PUSH_NOTIFICATION_NOT_SUPPORTED",
    -32004: UNSUPPORTED,
    -32005: "CONTENT_TYPE_NOT_SUPPORTED",
    -32006: INVALID_ANSWER,
    -32007: "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    -32008: "EXTENSION_SUPPORT_REQUIRED",
    -32009: VERSION_NOT_SUPPORTED,
    -32600: "INVALID_REQUEST",
    -32601: METHOD_NOT_FOUND,
    -32602: "INVALID_PARAMS",
    -32603: INTERNAL,
    -32700: "PARSE_ERROR",
}
STATUSES: Final[dict[str, int]] = {
    **dict.fromkeys(REASONS.values(), 400),
    TASK_NOT_FOUND: 404,
    METHOD_NOT_FOUND: 404,
    INTERNAL: 500,
    INVALID_ANSWER: 500,
}

_ERROR_INFO: Final = "type.googleapis.com/google.rpc.ErrorInfo"
_MOST_DETAILS: Final = 32
_BUSY_STATUSES: Final = frozenset({429, 503})
_BUSY: Final = frozenset(
    {RateLimited, TooManyCalls, TooManyStreams, TooManyTasks, Overloaded, ShuttingDown}
)
_CHAIN: Final[dict[type[CarnetError], tuple[str, str]]] = {
    DepthExceeded: ("observed", "limit"),
    ChainFinal: ("hop", "hops"),
}


def read_refusal(
    status: int, body: bytes, *, retry_after: str | None = None, date: str | None = None
) -> CarnetError:
    """The error of ours that an answer of this status stands for; its body may be anything."""
    if status < 400:  # noqa: PLR2004  neither an answer nor a refusal: a redirect, say
        return ProviderError(f"the answer has the status {status}")
    try:
        page = json.read_object(body)
    except InvalidJson:
        page = {}
    return _asking(_read(status, page.get("error"), read_wait(retry_after, date)), page)


def read_error(error: object) -> CarnetError:
    """The error that stands in an answer of status 200, or in a stream."""
    return _asking(_read(None, error, None), {"error": error})


def read_failure(metadata: Mapping[str, Any]) -> CarnetError:
    """What a task has failed with, by what stands beside its last words; a Carnet says why."""
    given = metadata.get(ERROR)
    code = given.get("code") if isinstance(given, dict) else None
    kind = BY_CODE.get(code) if isinstance(code, str) else None
    if kind in _CHAIN:
        return _too_deep(kind, {"data": [{"@type": _ERROR_INFO, "metadata": given}]})
    if kind is not None and issubclass(kind, Refused | Malformed):
        return PeerRefused(peer_status=kind.status, peer_code=kind.code)
    return AgentFailed("the task has failed" if kind is None else kind.code, by=BY_PEER)


def _read(status: int | None, error: object, wait: int | None) -> CarnetError:
    reason, kind = _reason(error), _own_kind(error)
    if kind in _CHAIN:
        return _too_deep(kind, error)
    shown = status or STATUSES.get(reason, 500)
    if kind in _BUSY or (status in _BUSY_STATUSES and (wait is not None or status != 503)):  # noqa: PLR2004
        seconds = DEFAULT_WAIT_SECONDS if wait is None else wait
        code = UNRECOGNISED if kind is None else kind.code
        return PeerBusy(peer_status=shown, peer_code=code, retry_after=seconds)
    if kind is not None:
        return _of_carnet(kind, shown, reason)
    if reason != UNRECOGNISED:
        return _explained(shown, reason, wait)
    nothing = ProviderError("the answer holds an error of no known code")
    return nothing if status is None else unexplained(status, wait)


def _explained(status: int, reason: str, wait: int | None) -> CarnetError:
    """What a word of the protocol stands for."""
    if reason == TASK_NOT_FOUND:
        return TaskNotFound()
    if reason in {INTERNAL, INVALID_ANSWER}:
        by: dict[str, Fact] = {"by": BY_CALLEE} if reason == INTERNAL else {}
        return ProviderError(peer_status=status, peer_code=reason, **by, **waiting(wait))
    return PeerRefused(peer_status=status, peer_code=reason)


def _of_carnet(kind: type[CarnetError], status: int, reason: str) -> CarnetError:
    """What a Carnet says, in our own word for it."""
    if kind is TaskNotFound:
        return TaskNotFound()
    code = kind.code if reason == UNRECOGNISED else reason
    if status >= 500:  # noqa: PLR2004  it was dealt with there
        return ProviderError(peer_status=status, peer_code=code, peer_reason=kind.code)
    return PeerRefused(peer_status=status, peer_code=code, peer_reason=kind.code)


def _asking(found: CarnetError, page: dict[str, Any]) -> CarnetError:
    """The error, with what may be policy parts in it: the body itself, or beside an error."""
    error = page.get("error")
    if _own_kind(error) is None:
        beside = [error.get("data"), error.get("details")] if isinstance(error, dict) else [page]
        found.policies = tuple([part for each in beside for part in _objects(each)])
    return found


def _objects(value: object) -> Iterator[dict[str, Any]]:
    """The object that stands somewhere, or those of the list, perhaps each as a data part."""
    for each in value[:_MOST_DETAILS] if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            inner = each.get("data")
            given = inner if isinstance(inner, dict) and "kind" not in each else each
            yield {name: held for name, held in given.items() if name != "@type"}


def _too_deep(kind: type[CarnetError], error: object) -> CarnetError:
    found = kind.__new__(kind)
    facts: dict[str, Fact] = {}
    for info in _infos(error):
        metadata = info.get("metadata")
        given = metadata if isinstance(metadata, dict) else {}
        for name in _CHAIN[kind]:
            if (number := _number(given.get(name))) is not None:
                facts[name] = number
        facts |= limit_of(given.get(STAMP))
    CarnetError.__init__(found, **facts)
    return found


def _number(value: object) -> int | None:
    """A number, which the metadata of an ErrorInfo writes as text."""
    if type(value) is int and 0 <= value <= json.MAX_INTEGER:
        return value
    is_digits = isinstance(value, str) and value.isascii() and value.isdigit()
    return int(str(value)) if is_digits and len(str(value)) <= 9 else None  # noqa: PLR2004


def _reason(error: object) -> str:
    """The protocol's word: by its ErrorInfo, else by its code."""
    for info in _infos(error):
        if info.get("reason") in STATUSES:
            return str(info["reason"])
    code = error.get("code") if isinstance(error, dict) else None
    return REASONS.get(code, UNRECOGNISED) if type(code) is int else UNRECOGNISED


def _own_kind(error: object) -> type[CarnetError] | None:
    """The error of ours that a Carnet names beside."""
    for info in _infos(error):
        reason, metadata = info.get("reason"), info.get("metadata")
        named = metadata.get("code") if isinstance(metadata, dict) else None
        for word in (named, None if reason in STATUSES else reason):
            kind = BY_CODE.get(word.lower()) if isinstance(word, str) else None
            if kind is not None:
                return kind
    return None


def _infos(error: object) -> Iterator[dict[str, Any]]:
    if not isinstance(error, dict):
        return
    for name in ("data", "details"):
        listed = error.get(name)
        for each in listed[:_MOST_DETAILS] if isinstance(listed, list) else ():
            if isinstance(each, dict) and each.get("@type") == _ERROR_INFO:
                yield each
