"""The SAMVAD dialect as one object: signed envelopes, tasks, and what agents say of themselves.

Law 1. What is asked of an agent comes signed; its card, introduction and health are for everybody.
Law 2. At the root the host decides: `NAME.DOMAIN` is that agent, any other host the default one.
Law 3. A stream begins when the call is admitted: what fails after that is told in its last frame.
Law 4. A task that is not there is told with the same bytes, whichever way it is not there.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from carnet.core.call import Ask, Call, Claim
from carnet.core.messages.events import Event, Failed, Usage, Waiting
from carnet.core.people.identity import Mode
from carnet.core.people.proof import Proof
from carnet.errors import CarnetError, RouteNotFound, TaskNotFound
from carnet.wire.dialects import policy
from carnet.wire.dialects.dialect import (
    AgentView,
    Arrival,
    Fields,
    GatewayFacts,
    Question,
    QuestionResult,
    Reply,
    TaskView,
    Way,
)
from carnet.wire.dialects.outbound import Spoken
from carnet.wire.dialects.results import result_of
from carnet.wire.dialects.samvad.answer import span_of, write_answer
from carnet.wire.dialects.samvad.card import (
    CardFacts,
    write_card,
    write_health,
    write_intro,
)
from carnet.wire.dialects.samvad.claim import NAME, foretold, read_asked, read_claim
from carnet.wire.dialects.samvad.refusals import CODE_HEADER, write_error
from carnet.wire.dialects.samvad.schemas import SCHEMAS
from carnet.wire.dialects.samvad.stream import StreamWriter
from carnet.wire.dialects.samvad.task_reports import TaskStatus
from carnet.wire.dialects.samvad.tasks import (
    read_asking,
    write_accepted,
    write_not_found,
    write_record,
)

TASK: Final = "/agent/task"
RECEIPT: Final = b"carnet-receipt"

_NO_TASK: Final = ((404, "TaskNotFound"),)
_JSON: Final = (b"content-type", b"application/json")
_NO_STORE: Final = (b"cache-control", b"no-store")
_MODES: Final[dict[str, Mode]] = {"message": "sync", "stream": "stream", "task": "async"}
_WORDS: Final[dict[str, TaskStatus]] = {"queued": "pending", "done": "done", "failed": "failed"}


def _signed(name: str, path: str, summary: str, **more: Any) -> Way:
    given = {"kind": "call", "body": "Envelope", "answer": "Response", **more}
    return Way(
        name=name,
        method="POST",
        path=path,
        summary=summary,
        auth="signature",
        failure="Response",
        **given,
    )


def _open(name: str, path: str, summary: str, **more: Any) -> Way:
    return Way(
        name=name,
        method="GET",
        path=path,
        summary=summary,
        auth="open",
        failure="Response",
        **more,
    )


WAYS: Final = (
    _signed("message", "/agent/message", "Ask for a skill"),
    _signed(
        "stream", "/agent/stream", "Ask for a skill and read the answer as it grows", streams=True
    ),
    _signed(
        "task", TASK, "Ask for a skill as a task", kind="task", answer="TaskAccepted", status=202
    ),
    Way(
        name="show",
        method="GET",
        path=TASK + "/{task}",
        summary="How a task goes",
        auth="polling",
        answer="TaskRecord",
        failure="Response",
        also=_NO_TASK,
    ),
    _signed(
        "cancel",
        TASK + "/{task}/cancel",
        "Ask for the end of a task",
        kind="question",
        body=None,
        answer="TaskRecord",
        status=202,
        also=_NO_TASK,
    ),
    _open("intro", "/agent/intro", "What the agent is, for people", media="text/markdown"),
    _open("health", "/agent/health", "It answers", answer="Page"),
    _open("card", "/.well-known/agent.json", "The card of the agent", answer="Page"),
)


class EnvelopeWriter:
    """Writes the answer to one envelope."""

    __slots__ = ("_call", "_domain", "_frames")

    def __init__(self, call: Call, domain: str) -> None:
        """`domain` is ours."""
        self._call = call
        self._domain = domain
        self._frames: StreamWriter | None = None

    def headers(self, *, stream: bool) -> Fields:
        run = (b"x-tangle-runid", self._call.carnet.run.encode())
        if not stream:
            return [run, _JSON, _NO_STORE]
        return [
            run,
            (b"content-type", b"text/event-stream"),
            (b"cache-control", b"no-cache"),
            (b"connection", b"keep-alive"),
            (b"x-accel-buffering", b"no"),
        ]

    def whole(self, events: Sequence[Event], /) -> bytes:
        """One response envelope."""
        return write_answer(self._call.record, events, trace_id=self._call.carnet.run)

    def write(self, events: Sequence[Event], /) -> bytes:
        """Chunks, and the frame that ends them."""
        frames = self._frames
        if frames is None:
            call = self._call
            frames = self._frames = StreamWriter(
                call.record, trace_id=call.carnet.run, domain=self._domain
            )
        return frames.write(events)

    def refusal(self, failed: Failed, usage: Usage | None, /) -> Reply:
        """A response envelope with an error; the dialect cannot say what it has cost."""
        del usage
        call = self._call
        span = span_of(call.record)
        return _reply(*write_error(failed.error(), trace_id=call.carnet.run, span_id=span))

    def waiting(self, waiting: Waiting, usage: Usage | None, partial: str, /) -> Reply:
        """A response envelope with an error; a header has what it waits for."""
        del usage, partial
        call = self._call
        error, span = waiting.error(), span_of(call.record)
        reply = _reply(*write_error(error, trace_id=call.carnet.run, span_id=span))
        reply.headers.append(_interrupts(policy.addressed(waiting, call.agent, self._domain)))
        return reply


class Samvad:
    """Signed envelopes."""

    name = NAME
    ways = WAYS
    roots = ("/agent",)
    schemas: Mapping[str, Any] = SCHEMAS
    begins_at_once = True
    is_signed = True
    has_long_bodies = False
    # No codec: a card is looked at first, a form of signature may be tried, a task is waited for.
    # An SDK would run and charge a repeat.
    spoken = Spoken(name=NAME, reach=lambda ways: ways.by_envelope())

    def proof(self, arrival: Arrival, /) -> Proof | None:
        """The signature; who has signed stands in the body, once that has come."""
        if not arrival.body or arrival.way.name not in _MODES:
            return None
        return foretold(
            arrival.request,
            arrival.body,
            short_path=arrival.way.path,
            stamps=arrival.stamps,
        )

    def read(self, arrival: Arrival, /) -> Claim | Question:
        """An envelope, or a question about a task or an agent."""
        way = arrival.way
        agent = arrival.by_host() if arrival.agent is None else arrival.agent
        mode = _MODES.get(way.name)
        if mode is not None:
            return read_claim(
                arrival.request,
                arrival.body,
                agent=agent,
                mode=mode,
                short_path=way.path,
                stamps=arrival.stamps,
                correlation=arrival.correlation,
                path=arrival.path,
            )
        if way.auth == "open":
            return Question(about="agent", agent=agent)
        about: Literal["task", "cancel"] = "cancel" if way.name == "cancel" else "task"
        asking = None
        if arrival.must_prove:
            path = arrival.request.path
            asking = read_asking(
                arrival.request,
                arrival.body,
                short_path=path[path.rindex(f"{TASK}/") :],  # as written, not as read
                stamps=arrival.stamps,
            )
        return Question(about=about, task=arrival.names["task"], agent=agent, asking=asking)

    def asked(self, request: bytes, /) -> Ask:
        """What an envelope asked that is recorded: its skill, its payload and its mode."""
        return read_asked(request)

    def writer(self, call: Call, gateway: GatewayFacts, /) -> EnvelopeWriter:
        return EnvelopeWriter(call, gateway.domain)

    def refusal(self, error: CarnetError, /) -> Reply:
        """A response envelope with an error."""
        if isinstance(error, TaskNotFound):
            return _reply(*write_not_found())
        return _reply(*write_error(error, trace_id=error.run or ""))

    def result(self, events: Sequence[Event], /) -> dict[str, Any]:
        """The object that the caller gets."""
        return result_of(events)

    def accepted(self, call: Call, /) -> Reply:
        """The protocol's two words."""
        run = (b"x-tangle-runid", call.carnet.run.encode())
        return Reply(202, [_JSON, _NO_STORE, run], write_accepted(call.task or ""))

    def tell(self, way: str, result: QuestionResult, question: Question | None = None, /) -> Reply:
        """The record of a task; the card, the introduction or the health of an agent."""
        del question
        match result:
            case TaskView():
                return _record(result)
            case AgentView():
                return _agent(way, result)
        raise RouteNotFound  # the protocol has no lists


def _record(view: TaskView) -> Reply:
    word = _WORDS.get(view.turn.state, "running")
    result, error = _end(view)
    body = write_record(view.id, word, progress=view.progress, result=result, error=error)
    headers: Fields = [_JSON, _NO_STORE]
    if error is not None:  # the nine codes of the protocol are few
        headers.append((CODE_HEADER.encode(), error.code.encode()))
    if view.interrupts:
        headers.append(_interrupts(Waiting(view.interrupts)))
    if view.receipt is not None:
        headers.append((RECEIPT, view.receipt.encode()))
    return Reply(202 if view.is_cancel else 200, headers, body)


def _interrupts(waiting: Waiting) -> tuple[bytes, bytes]:
    return policy.INTERRUPT.encode(), policy.write_header(waiting).encode()


def _agent(way: str, view: AgentView) -> Reply:
    if way == "health":
        body = write_health(
            version=view.version, uptime=view.uptime, active=view.active, queued=view.queued
        )
        return Reply(200, [_JSON, _NO_STORE], body)
    facts = facts_of(view)
    if way == "intro":
        markdown = (b"content-type", b"text/markdown; charset=utf-8")
        return Reply(200, [markdown], write_intro(facts))
    age = (b"cache-control", f"public, max-age={facts.ttl}".encode())
    return Reply(200, [_JSON, age], write_card(facts))


def facts_of(view: AgentView) -> CardFacts:
    """What the card of an agent tells."""
    return CardFacts(
        id=view.id,
        name=view.name,
        version=view.version,
        description=view.description,
        url=view.url,
        skills=view.skills,
        keys=view.keys,
        trust=view.trust,
        require_auth=view.require_auth,
        requests_per_minute=view.requests_per_minute,
        requests_per_sender=view.requests_per_sender,
        tokens_per_sender_per_day=view.tokens_per_sender_per_day,
        terms=view.terms,
    )


def _end(view: TaskView) -> tuple[dict[str, Any] | None, CarnetError | None]:
    """The result or the error of a task that has ended; neither of any other."""
    if view.turn.state not in {"done", "failed"}:
        return None, None
    if not view.events:
        raise TaskNotFound  # its events are forgotten before the task is
    last = view.events[-1]
    return (None, last.error()) if isinstance(last, Failed) else (result_of(view.events), None)


def _reply(status: int, headers: Mapping[str, str], body: bytes) -> Reply:
    return Reply(status, [(name.encode(), value.encode()) for name, value in headers.items()], body)


DIALECT: Final = Samvad()
