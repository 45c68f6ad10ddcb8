"""A2A as two objects: one for each binding, with the same operations.

    JSON-RPC    POST /a2a                       every operation
    HTTP+JSON   /a2a/message:send, /a2a/tasks   one path each

Law 1. Both bindings read the same objects and tell the same ones; only what is around them differs.
Law 2. A version that we do not speak is refused before anything is read. Who names none speaks the
       former one, or the present one where its words are those of the present one.
Law 3. The path alone says in which binding a refusal is told.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, convert
from msgspec.structs import replace

from carnet.core.call import Ask, Call, Claim
from carnet.core.messages.events import Event
from carnet.core.messages.interrupt import InterruptRecord, StatedResolution
from carnet.core.people.proof import Proof
from carnet.errors import CarnetError, InvalidRequest, RouteNotFound, UnsupportedProtocolVersion
from carnet.wire.dialects.a2a import legacy
from carnet.wire.dialects.a2a.answers.answer import artifacts_of
from carnet.wire.dialects.a2a.answers.pages import tell
from carnet.wire.dialects.a2a.answers.writer import MessageWriter
from carnet.wire.dialects.a2a.extensions import activated_by, envoys
from carnet.wire.dialects.a2a.form import CURRENT, FORMER, Binding, Form, Version
from carnet.wire.dialects.a2a.refusals import http_body, http_status, rpc_body, rpc_status
from carnet.wire.dialects.a2a.request import (
    CANCEL,
    CREATE_PUSH,
    DELETE_PUSH,
    EXTENDED_CARD,
    GET,
    GET_PUSH,
    LIST,
    LIST_PUSH,
    NAME,
    OPERATIONS,
    OVER_HTTP,
    SEND,
    STREAM,
    SUBSCRIBE,
    read_again,
    read_asked,
    read_operation,
)
from carnet.wire.dialects.a2a.resolution import answer_of
from carnet.wire.dialects.a2a.schemas import SCHEMAS
from carnet.wire.dialects.dialect import (
    Arrival,
    GatewayFacts,
    Question,
    QuestionResult,
    Reply,
    Way,
)
from carnet.wire.dialects.outbound import Spoken
from carnet.wire.grammar import json
from carnet.wire.grammar.headers import Headers
from carnet.wire.grammar.query import read_query

MEDIA: Final = "application/a2a+json"
_VERSION: Final = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}(?:\.[0-9]{1,5})?", re.ASCII)
_SPOKEN: Final[dict[str, Version]] = {"1.0": "1.0", "0.3": "0.3"}
_IDS: Final = frozenset({str, int})  # by which callers tell answers apart
_UNKNOWN_CALLER: Final = 401
_CHALLENGE: Final = (b"www-authenticate", b"Bearer")
_JSON: Final = (b"content-type", b"application/json")


class _Envelope(Struct, frozen=True):
    """What is around an operation in JSON-RPC, of whatever type it is."""

    jsonrpc: Any = None
    id: Any = None
    method: Any = None
    params: Any = None


def _rpc(path: str) -> Way:
    return Way(
        name="rpc",
        method="POST",
        path=path,
        kind="any",
        auth="gate",
        summary="Any operation of A2A, as JSON-RPC",
        body="A2ARequest",
        answer="A2AResponse",
        failure="A2AResponse",
        streams=True,
        chain=True,
    )


def _http(name: str, method: str, path: str, summary: str, **more: Any) -> Way:
    return Way(
        name=name,
        method=method,
        path=f"/a2a{path}",
        kind="any",
        auth="gate",
        summary=summary,
        answer="A2AObject",
        failure="A2AStatus",
        **more,
    )


RPC_WAYS: Final = (_rpc("/a2a"), _rpc("/a2a/"))
_PAGED: Final = ("contextId", "status", "pageSize", "pageToken", "historyLength")
HTTP_WAYS: Final = (
    _http(
        SEND, "POST", "/message:send", "Send a message to an agent", body="A2AObject", chain=True
    ),
    _http(
        STREAM,
        "POST",
        "/message:stream",
        "Send a message, and read what comes of it",
        body="A2AObject",
        streams=True,
        chain=True,
    ),
    _http(CANCEL, "POST", "/tasks/{task}:cancel", "Cancel a task"),
    _http(SUBSCRIBE, "POST", "/tasks/{task}:subscribe", "Read what a task says", streams=True),
    _http(SUBSCRIBE, "GET", "/tasks/{task}:subscribe", "Read what a task says", streams=True),
    _http(
        LIST,
        "GET",
        "/tasks",
        "List your tasks",
        query=(*_PAGED, "statusTimestampAfter", "includeArtifacts"),
    ),
    _http(GET, "GET", "/tasks/{task}", "One task", query=("historyLength",)),
    _http(
        CREATE_PUSH,
        "POST",
        "/tasks/{task}/pushNotificationConfigs",
        "Be told of a task",
        body="A2AObject",
    ),
    _http(
        LIST_PUSH,
        "GET",
        "/tasks/{task}/pushNotificationConfigs",
        "Where a task is told of",
        query=("pageSize", "pageToken"),
    ),
    _http(GET_PUSH, "GET", "/tasks/{task}/pushNotificationConfigs/{config}", "One of these"),
    _http(
        DELETE_PUSH, "DELETE", "/tasks/{task}/pushNotificationConfigs/{config}", "Be told no more"
    ),
    _http(EXTENDED_CARD, "GET", "/extendedAgentCard", "The card for those who are known"),
)


class A2A:
    """One binding."""

    schemas: Mapping[str, Any] = SCHEMAS
    begins_at_once = True
    is_signed = False
    has_long_bodies = True

    def __init__(
        self, name: str, binding: Binding, ways: tuple[Way, ...], spoken: Spoken | None = None
    ) -> None:
        """`spoken` is how peers are called, which one of the bindings says for both."""
        self.name = name
        self.ways = ways
        self.spoken = spoken
        self._binding = binding
        self.roots: tuple[str, ...] = ("/a2a",) if binding == "http" else ()

    def proof(self, arrival: Arrival, /) -> Proof | None:
        """That of a request which is signed as Envoys does, without a token beside it.

        The signature of another Carnet is no part of the dialect.
        """
        headers = arrival.headers
        if not envoys.is_presented(headers) or headers.get("authorization") is not None:
            return None
        return envoys.read_proof(
            arrival.request, arrival.body or None, arrival.stamps, recipient=arrival.recipient()
        )

    def read(self, arrival: Arrival, /) -> Claim | Question:
        """A message, or a question about tasks or the agent."""
        claim = self._read_rpc(arrival) if self._binding == "rpc" else self._read_http(arrival)
        if type(claim) is not Claim or not envoys.is_presented(arrival.headers):
            return claim
        return replace(claim, proof=self.proof(arrival))

    def asked(self, request: bytes, /) -> Ask:
        """What a message asked that is recorded."""
        return read_asked(request)

    def reread(self, request: bytes, arrival: Arrival, /) -> Claim:
        """The claim that a recorded request made."""
        return read_again(request, arrival, Form(binding=self._binding))

    def answer_of(self, claim: Claim, asked: tuple[InterruptRecord, ...], /) -> StatedResolution:
        """What a message answers of all that its task waits for."""
        return answer_of(claim, asked)

    def is_answered(self, claim: Claim, asked: tuple[InterruptRecord, ...], /) -> bool:
        """Never: a message does not name what it answers, and the next one may answer the next."""
        del claim, asked
        return False

    def _read_rpc(self, arrival: Arrival) -> Claim | Question:
        body = json.read_object(arrival.body)
        found = convert(body, _Envelope)
        name = found.id
        if name is not None and type(name) not in _IDS:
            raise InvalidRequest("request id", "must be a text or a whole number")
        arrival.request_id = name
        if found.jsonrpc != "2.0":
            raise InvalidRequest("jsonrpc", 'must be "2.0"')
        method, params = found.method, found.params
        if type(method) is not str:
            raise InvalidRequest("method", "must be the name of an operation")
        if params is None:
            params = {}
        if type(params) is not dict:
            raise InvalidRequest("params", "must be an object")
        version = _read_version(arrival)
        form = Form(id=name, extensions=activated_by(arrival.headers))
        if method in legacy.METHODS and version != CURRENT:
            method, params = legacy.newer(method, params)
            form = replace(form, version=FORMER)
        if method not in OPERATIONS:
            raise RouteNotFound
        return read_operation(method, params, arrival, form)

    def _read_http(self, arrival: Arrival) -> Claim | Question:
        _read_version(arrival)
        way, names = arrival.way, arrival.names
        params: dict[str, Any] = {}
        if way.method == "POST" and arrival.body:
            params = json.read_object(arrival.body)
        elif way.method == "GET":
            params = query_params(arrival.request.query or "")
        if "task" in names:
            name = "id" if way.name in {GET, CANCEL, SUBSCRIBE} else "taskId"
            params = {**params, name: names["task"]}
        if "config" in names:
            params = {**params, "id": names["config"]}
        uris = activated_by(arrival.headers)
        form = Form(binding="http", extensions=uris, media=_media(arrival.headers))
        return read_operation(way.name, params, arrival, form)

    def writer(self, call: Call, gateway: GatewayFacts, /) -> MessageWriter:
        return MessageWriter(call, gateway, self._binding)

    def refusal(self, error: CarnetError, /) -> Reply:
        """An error in the form of the binding."""
        retry = error.retry_after
        fields = [_JSON, (b"cache-control", b"no-store")]
        if retry is not None:
            fields.append((b"retry-after", str(retry).encode()))
        if http_status(error) == _UNKNOWN_CALLER:
            fields.append(_CHALLENGE)
        if self._binding == "rpc":
            return Reply(rpc_status(error), fields, rpc_body(error))
        return Reply(http_status(error), fields, http_body(error))

    def result(self, events: Sequence[Event], /) -> dict[str, Any]:
        """What a receipt is about: all that was named."""
        return {"artifacts": artifacts_of(events)}

    def accepted(self, call: Call, /) -> Reply:
        """The task that was taken on."""
        return self.writer(call, GatewayFacts(domain="", currency="")).accepted()

    def tell(self, way: str, result: QuestionResult, question: Question, /) -> Reply:
        """Tasks, where they are told of, and the card of the agent."""
        del way
        return tell(result, question)


def _read_version(arrival: Arrival) -> str | None:
    """The version that a caller speaks; None if it does not say."""
    named = arrival.headers.get("a2a-version")
    if named in _SPOKEN:
        return named
    if not named:
        named = str(query_params(arrival.request.query or "").get("A2A-Version") or "")
    if not named:
        return None
    if not _VERSION.fullmatch(named.strip()):
        raise UnsupportedProtocolVersion
    spoken = ".".join(named.strip().split(".")[:2])
    if spoken not in _SPOKEN:
        raise UnsupportedProtocolVersion
    return spoken


def _media(headers: Headers) -> str:
    """What an answer over HTTP+JSON is called: as the caller takes it."""
    return MEDIA if MEDIA in (headers.get("accept") or "") else "application/json"


_NUMBERS: Final = frozenset({"historyLength", "pageSize"})
_FLAGS: Final = {"true": True, "false": False}


def query_params(query: str) -> dict[str, Any]:
    """The members that a query spells; what is no number or flag is left as it is, and refused."""
    found: dict[str, Any] = {}
    for name, values in read_query(query).items():
        if len(values) > 1:
            raise InvalidRequest(name, "must stand once")
        value = values[0]
        if name in _NUMBERS and re.fullmatch(r"-?[0-9]{1,9}", value, re.ASCII):
            found[name] = int(value)
        elif name == "includeArtifacts" and value in _FLAGS:
            found[name] = _FLAGS[value]
        else:
            found[name] = value
    return found


SPOKEN: Final = Spoken(name=NAME, reach=lambda ways: ways.by_card())
DIALECT: Final = A2A(NAME, "rpc", RPC_WAYS, SPOKEN)
HTTP_DIALECT: Final = A2A(OVER_HTTP, "http", HTTP_WAYS)
