"""The OpenAI dialect as one object: chat completions, their tasks, and the list of models.

Law. An error before the first event is an HTTP error; after it, one error frame and no [DONE].
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from carnet.core.call import Ask, Call, Claim
from carnet.core.messages.events import Event, Failed, Usage, Waiting
from carnet.core.people.proof import Proof
from carnet.errors import CarnetError, InvalidRequest, RouteNotFound
from carnet.wire.dialects.dialect import (
    AgentList,
    Arrival,
    Fields,
    GatewayFacts,
    Question,
    QuestionResult,
    Reply,
    TaskList,
    TaskView,
    Way,
)
from carnet.wire.dialects.openai.answer import (
    digest_content,
    write_answer,
    write_model,
    write_models,
)
from carnet.wire.dialects.openai.chunk import ChunkWriter
from carnet.wire.dialects.openai.codec import SPOKEN
from carnet.wire.dialects.openai.refusals import write_error, write_waiting
from carnet.wire.dialects.openai.request import NAME, read_ask, read_chat, read_later
from carnet.wire.dialects.openai.schemas import SCHEMAS
from carnet.wire.dialects.openai.tasks import task_line, task_page
from carnet.wire.dialects.policy import addressed
from carnet.wire.grammar import json
from carnet.wire.grammar.query import read_lines, read_number, read_query, read_word

REMOVED: Final = b"carnet-removed"
_WHOLE: Final = ((b"content-type", b"application/json"),)
_STREAMED: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"x-accel-buffering", b"no"),
)
_STATES: Final = ("pending", "running", "done", "failed")


def _of_tasks(name: str, method: str, path: str, permission: str, summary: str) -> Way:
    return Way(
        name=name,
        method=method,
        path=path,
        below_agents=False,
        permission=permission,
        summary=summary,
        answer="Page",
        status=202 if method == "POST" else 200,
        query=("limit", "before", "state", "agent") if name == "list" else (),
    )


WAYS: Final = (
    Way(
        name="chat",
        method="POST",
        path="/v1/chat/completions",
        kind="call",
        auth="gate",
        summary="Ask an agent",
        body="ChatRequest",
        answer="ChatCompletion",
        streams=True,
        chain=True,
    ),
    Way(
        name="models",
        method="GET",
        path="/v1/models",
        below_agents=False,
        summary="List the agents",
        answer="Models",
    ),
    Way(
        name="model",
        method="GET",
        path="/v1/models/{model}",
        below_agents=False,
        summary="One agent",
        answer="Model",
    ),
    Way(
        name="task",
        method="POST",
        path="/tasks",
        kind="task",
        auth="gate",
        below_agents=False,
        summary="Ask an agent as a task",
        body="ChatRequest",
        answer="Accepted",
        status=202,
        chain=True,
    ),
    _of_tasks("list", "GET", "/tasks", "run:read", "List tasks"),
    _of_tasks("show", "GET", "/tasks/{task}", "run:read", "One task, with its result or error"),
    _of_tasks("cancel", "POST", "/tasks/{task}/cancel", "run:cancel", "Ask for the end of a task"),
)


class ChatWriter:
    """Writes the answer to one chat request."""

    __slots__ = ("_call", "_chunks", "_currency", "_domain")

    def __init__(self, call: Call, currency: str, domain: str = "") -> None:
        """`currency` is that of the ledger, `domain` is ours."""
        self._call = call
        self._currency = currency
        self._domain = domain
        self._chunks: ChunkWriter | None = None

    def headers(self, *, stream: bool) -> Fields:
        """The fields of an answer; the last of a whole one is its type."""
        call = self._call
        headers = [
            (b"x-tangle-runid", call.carnet.run.encode()),
            (b"x-tangle-turnid", call.carnet.turn.encode()),
            (b"cache-control", b"no-store"),
        ]
        if call.target.removes is not None and (names := call.target.removes(call.ask)):
            headers += _removed(names)
        headers += _STREAMED if stream else _WHOLE
        return headers

    def whole(self, events: Sequence[Event], /) -> bytes:
        """One chat completion."""
        call = self._call
        return write_answer(call.record, events, model=call.agent, currency=self._currency)

    def write(self, events: Sequence[Event], /) -> bytes:
        """Chunks of a chat completion."""
        chunks = self._chunks
        if chunks is None:
            call = self._call
            chunks = self._chunks = ChunkWriter(
                call.record,
                model=call.agent,
                include_usage=call.ask.include_usage,
                currency=self._currency,
                domain=self._domain,
            )
        return chunks.write(events)

    def refusal(self, failed: Failed, usage: Usage | None, /) -> Reply:
        """An error object beside what the call has cost."""
        call = self._call
        status, headers, body = write_error(
            failed.error(), run=call.carnet.run, usage=usage, currency=self._currency
        )
        return Reply(status, [*self.headers(stream=False)[:-1], *_raw(headers)], body)

    def waiting(self, waiting: Waiting, usage: Usage | None, partial: str, /) -> Reply:
        """An error object with what the turn waits for, beside what was said so far."""
        call = self._call
        status, headers, body = write_waiting(
            addressed(waiting, call.agent, self._domain),
            run=call.carnet.run,
            usage=usage,
            currency=self._currency,
            partial=partial,
        )
        return Reply(status, [*self.headers(stream=False)[:-1], *_raw(headers)], body)


class OpenAI:
    """Chat completions."""

    name = NAME
    ways = WAYS
    roots: tuple[str, ...] = ()  # it has the words for all paths that are nobody's
    schemas: Mapping[str, Any] = SCHEMAS
    begins_at_once = False
    is_signed = False
    has_long_bodies = True
    spoken = SPOKEN

    def proof(self, arrival: Arrival, /) -> Proof | None:
        """None of its own: the signature of another Carnet is no part of the dialect."""
        del arrival
        return None

    def read(self, arrival: Arrival, /) -> Claim | Question:
        """A chat, a task, or a question about tasks or models."""
        name = arrival.way.name
        if name == "chat":
            return read_chat(arrival)
        if name == "task":
            return read_later(arrival)
        if name in {"models", "model"}:
            return Question(about="agents", agent=arrival.names.get("model"))
        if name == "list":
            return _read_list(arrival)
        about: Any = "cancel" if name == "cancel" else "task"
        return Question(about=about, task=arrival.names["task"])

    def asked(self, request: bytes, /) -> Ask:
        """What a chat asked that is recorded."""
        return read_ask(json.read_object(request))[1]

    def writer(self, call: Call, gateway: GatewayFacts, /) -> ChatWriter:
        return ChatWriter(call, gateway.currency, gateway.domain)

    def refusal(self, error: CarnetError, /) -> Reply:
        """An error object."""
        status, headers, body = write_error(error, run=error.run)
        return Reply(status, _raw(headers), body)

    def result(self, events: Sequence[Event], /) -> dict[str, Any]:
        """Text, tool calls, and a result that the text does not tell."""
        return digest_content(events)

    def accepted(self, call: Call, /) -> Reply:
        """The id of a task, and where it stands."""
        ids = {"run": call.carnet.run, "turn": call.carnet.turn}
        reply = _page({"taskId": call.task, "status": "accepted"} | ids, 202)
        reply.headers.append((b"x-tangle-runid", call.carnet.run.encode()))
        if call.target.removes is not None:
            reply.headers.extend(_removed(call.target.removes(call.ask)))
        return reply

    def tell(self, way: str, result: QuestionResult, question: Question | None = None, /) -> Reply:
        """Tasks, and agents as models."""
        del question
        match result:
            case TaskView():
                return _page(task_page(result), 202 if result.is_cancel else 200)
            case TaskList():
                lines = [task_line(task) for task in result.tasks]
                return _page({"tasks": lines, "next": result.following})
            case AgentList():
                gateway = result.gateway
                write = write_model if way == "model" else write_models
                body = write(result.names, owner=gateway.domain, created=gateway.started)
                return Reply(200, [(b"content-type", b"application/json")], body)
        raise RouteNotFound


def _read_list(arrival: Arrival) -> Question:
    query = read_query(arrival.request.query)
    limit, before = read_lines(query), read_number(query, "before", 0) or None
    state = read_word(query, "state")
    if state is not None and state not in _STATES:
        raise InvalidRequest("state", f"must be one of {', '.join(_STATES)}")
    agent = read_word(query, "agent")
    return Question(about="tasks", limit=limit, before=before, state=state, of_agent=agent)


def _removed(names: Sequence[str]) -> Fields:
    """What of a request its agent does not get (R58)."""
    return [(REMOVED, ", ".join(names).encode())] if names else []


def _page(page: object, status: int = 200) -> Reply:
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    return Reply(status, headers, json.write(page))


def _raw(headers: Mapping[str, str]) -> Fields:
    return [(name.encode(), value.encode()) for name, value in headers.items()]


DIALECT: Final = OpenAI()
