"""agents-api as two objects: messages by JSON-RPC, and what has a path of its own.

    JSON-RPC    POST /agents-api/v1/agent/{name}                messages and pending actions
    HTTP        POST /agents-api/v1/chat                        one turn of a chat
                GET, POST /agents-api/v1/pending-actions/{id}   one pending action, and its decision

Law 1. Both read the same input and have it run once; only what is around it differs.
Law 2. The path alone says in which form a refusal is told.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from carnet.core.call import Ask, Call, Claim
from carnet.core.messages.events import Event
from carnet.core.messages.interrupt import InterruptRecord, Resolution, StatedResolution
from carnet.core.people.proof import Proof
from carnet.errors import CarnetError, OperationUnsupported, RouteNotFound, TaskNotFound
from carnet.wire.dialects.agents_api.actions import write_action, write_record
from carnet.wire.dialects.agents_api.form import RunForm, read_form
from carnet.wire.dialects.agents_api.parts import parts_of, without_index
from carnet.wire.dialects.agents_api.refusals import http_body, row_of, rpc_frame
from carnet.wire.dialects.agents_api.request import (
    NAME,
    OVER_HTTP,
    action_place,
    read_again,
    read_asked,
    read_http,
    read_rpc,
)
from carnet.wire.dialects.agents_api.schemas import SCHEMAS
from carnet.wire.dialects.agents_api.writer import STREAMED, RunWriter
from carnet.wire.dialects.dialect import (
    Arrival,
    GatewayFacts,
    Question,
    QuestionResult,
    Removed,
    Reply,
    TaskQuestion,
    TaskView,
    Way,
)
from carnet.wire.dialects.outbound import Spoken
from carnet.wire.grammar import json, sse

ROOT: Final = "/agents-api/v1"
_JSON: Final = (b"content-type", b"application/json")
_NO_STORE: Final = (b"cache-control", b"no-store")
_CHALLENGE: Final = (b"www-authenticate", b"Bearer")
_UNKNOWN_CALLER: Final = 401


def _way(name: str, method: str, path: str, summary: str, **more: Any) -> Way:
    return Way(
        name=name,
        method=method,
        path=ROOT + path,
        kind="any",
        auth="gate",
        below_agents=False,
        summary=summary,
        **more,
    )


RPC_WAYS: Final = (
    _way(
        "rpc",
        "POST",
        "/agent/{name}",
        "A message to an agent, or a decision, as JSON-RPC of agents-api",
        body="AgentsApiRequest",
        answer="AgentsApiResponse",
        failure="AgentsApiError",
        streams=True,
        chain=True,
    ),
)
HTTP_WAYS: Final = (
    _way(
        "chat",
        "POST",
        "/chat",
        "One turn of a chat with an agent",
        body="AgentsApiChat",
        answer="AgentsApiOutput",
        failure="AgentsApiError",
        chain=True,
    ),
    _way(
        "show",
        "GET",
        "/pending-actions/{action}",
        "What a run of yours waits for",
        answer="AgentsApiAction",
        failure="AgentsApiError",
        query=("include_resolved",),
    ),
    _way(
        "resolve",
        "POST",
        "/pending-actions/{action}",
        "Decide what a run of yours waits for, and have it go on",
        body="AgentsApiDecision",
        answer="AgentsApiDecided",
        failure="AgentsApiError",
    ),
)


class AgentsApi:
    """One of the two forms."""

    schemas: Mapping[str, Any] = SCHEMAS
    begins_at_once = True
    is_signed = False
    has_long_bodies = True

    def __init__(self, name: str, ways: tuple[Way, ...], spoken: Spoken | None = None) -> None:
        """`spoken` is how peers are called, which one of the two says for both."""
        self.name = name
        self.ways = ways
        self.spoken = spoken
        self._is_rpc = name == NAME
        self.roots: tuple[str, ...] = () if self._is_rpc else ("/agents-api",)

    def proof(self, arrival: Arrival, /) -> Proof | None:
        """None of its own: the signature of another Carnet is no part of the dialect."""
        del arrival
        return None

    def read(self, arrival: Arrival, /) -> Claim | Question:
        """A message, a decision, or the question for an action."""
        asked = read_rpc(arrival) if self._is_rpc else read_http(arrival)
        return replace(asked, dialect=self.name) if isinstance(asked, Claim) else asked

    def asked(self, request: bytes, /) -> Ask:
        """What a turn of a chat asked that is recorded."""
        return read_asked(request)

    def reread(self, request: bytes, arrival: Arrival, /) -> Claim:
        """The claim that a recorded request made."""
        return replace(read_again(request, arrival, ""), dialect=self.name)

    def answer_of(self, claim: Claim, asked: tuple[InterruptRecord, ...], /) -> StatedResolution:
        """What a decision decides of all that a run waits for."""
        form = read_form(claim.ask.form)
        _, name = action_place(form.action)
        meant = [one.interrupt for one in asked if one.interrupt.id == name]
        if not meant or form.decision is None:
            raise OperationUnsupported(reason="it does not wait for that, or no longer")
        return StatedResolution(meant[0].state, Resolution(outcome=form.decision, value=form.value))

    def is_answered(self, claim: Claim, asked: tuple[InterruptRecord, ...], /) -> bool:
        """Whether the same was decided before."""
        form = read_form(claim.ask.form)
        _, name = action_place(form.action)
        meant = [one for one in asked if one.interrupt.id == name]
        if not meant:
            raise TaskNotFound  # it is like an action that there never was
        return meant[0].outcome is not None and meant[0].outcome == form.decision

    def writer(self, call: Call, gateway: GatewayFacts, /) -> RunWriter:
        return RunWriter(call, gateway, rpc=self._is_rpc)

    def refusal(self, error: CarnetError, /) -> Reply:
        """An error in the form of the path."""
        row = row_of(type(error))
        fields = [_JSON, _NO_STORE]
        if error.retry_after is not None:
            fields.append((b"retry-after", str(error.retry_after).encode()))
        if row.status == _UNKNOWN_CALLER:
            fields.append(_CHALLENGE)
        if not self._is_rpc or row.is_http:
            return Reply(row.status, fields, http_body(error, rpc=self._is_rpc))
        body = json.write(rpc_frame(error, error.request_id))
        if error.in_stream:
            return Reply(200, [*STREAMED], sse.write_event(body))
        return Reply(200, fields, body)

    def result(self, events: Sequence[Event], /) -> dict[str, Any]:
        """What a receipt is about: all that an answer is made of."""
        return {"parts": parts_of([without_index(event) for event in events])}

    def accepted(self, call: Call, /) -> Reply:
        """Nothing is taken on for later in this dialect."""
        del call
        raise RouteNotFound

    def tell(self, way: str, result: QuestionResult, question: Question, /) -> Reply:
        """A pending action, or that there is none."""
        del way
        if not isinstance(question, TaskQuestion):
            raise RouteNotFound
        form = read_form(question.form)
        action = None
        if isinstance(result, TaskView):
            action = _shown(result, form)
        elif not isinstance(result, Removed):
            raise RouteNotFound
        page: dict[str, Any] = {"action": action}
        if self._is_rpc:
            page = {"jsonrpc": "2.0", "id": form.id, "result": page}
        return Reply(200, [_JSON, _NO_STORE], json.write(page))


def _shown(view: TaskView, form: RunForm) -> dict[str, Any] | None:
    """The action that is asked for; one that was decided where that is wanted."""
    _, name = action_place(form.action)
    for asked in view.interrupts:
        if asked.id == name:
            return write_action(asked, view.id, created=view.turn.created)
    for kept in view.answered if form.resolved else ():
        if kept.interrupt.id == name:
            return write_record(kept, view.id)
    return None


SPOKEN: Final = Spoken(name=NAME, reach=lambda ways: ways.by_run())
DIALECT: Final = AgentsApi(NAME, RPC_WAYS, SPOKEN)
HTTP_DIALECT: Final = AgentsApi(OVER_HTTP, HTTP_WAYS)
