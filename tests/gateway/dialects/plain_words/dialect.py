"""The whole of it, as one object."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from carnet.core.call import Ask, Call, Claim
from carnet.core.messages.events import Event, Failed, Message, Text, Usage, Waiting, joined_text
from carnet.core.messages.interrupt import Interrupt
from carnet.core.people.identity import Secret
from carnet.core.people.proof import Proof
from carnet.errors import CarnetError, InvalidRequest, RouteNotFound
from carnet.wire.dialects.dialect import (
    AgentList,
    Arrival,
    Dialect,
    Fields,
    GatewayFacts,
    Question,
    QuestionResult,
    Reply,
    TaskList,
    TaskView,
    Way,
)
from carnet.wire.grammar import json
from tests.gateway.dialects.plain_words.codec import NAME, SPOKEN, result

PLAIN = (b"content-type", b"text/plain")
STATES = {
    "queued": "waits",
    "running": "waits",
    "waiting": "waits",
    "done": "ready",
    "failed": "lost",
}


def way(name: str, method: str, path: str, **more: Any) -> Way:
    given = {"summary": f"Plain words: {name}", "below_agents": False, "answer": None, **more}
    return Way(name=name, method=method, path=path, **given)


def lines(*line: str, status: int = 200) -> Reply:
    return Reply(status, [PLAIN], "\n".join(line).encode())


def line_of(view: TaskView) -> str:
    return f"TICKET {view.id} {STATES[view.turn.state]}"


def asks_of(interrupts: Sequence[Interrupt]) -> list[str]:
    return [f"ASKS {each.state} {each.kind} {each.message}" for each in interrupts]


class WordWriter:
    """Writes the answer to one call."""

    def __init__(self, call: Call) -> None:
        self._call = call

    def headers(self, *, stream: bool) -> Fields:
        return [PLAIN, (b"x-words-stream", b"yes" if stream else b"no")]

    def whole(self, events: Sequence[Event], /) -> bytes:
        return f"SAID {joined_text(events)}".encode()

    def write(self, events: Sequence[Event], /) -> bytes:
        return "".join([each.text for each in events if isinstance(each, Text)]).encode()

    def refusal(self, failed: Failed, usage: Usage | None, /) -> Reply:
        del usage
        return Reply(409, [PLAIN], f"NO {failed.code} of {self._call.agent}".encode())

    def waiting(self, waiting: Waiting, usage: Usage | None, partial: str, /) -> Reply:
        del usage
        asked = asks_of(waiting.interrupts)
        return lines(*asked, *([f"SAID {partial}"] if partial else []), status=409)


class Words:
    """Plain words."""

    name = NAME
    ways = (
        way("say", "POST", "/words", kind="call", auth="gate"),
        way("later", "POST", "/words/later", kind="task", auth="gate"),
        way("show", "GET", "/words/later/{task}", permission="run:read"),
        way("list", "GET", "/words/later", permission="run:read"),
        way("stop", "POST", "/words/later/{task}/stop", permission="run:cancel"),
        way("who", "GET", "/words/who"),
    )
    roots = ("/words",)
    schemas: Mapping[str, Any] = {}
    begins_at_once = False
    is_signed = False
    has_long_bodies = False
    spoken = SPOKEN

    def proof(self, arrival: Arrival, /) -> Proof | None:
        del arrival
        return None

    def read(self, arrival: Arrival, /) -> Claim | Question:
        name = arrival.way.name
        if name in {"say", "later"}:
            return self._claim(arrival, is_task=name == "later")
        if name in {"show", "stop"}:
            about: Any = "cancel" if name == "stop" else "task"
            return Question(about=about, task=arrival.names["task"])
        return Question(about="agents" if name == "who" else "tasks")

    def asked(self, request: bytes, /) -> Ask:
        text: Any = json.read_object(request)["say"]
        return Ask(messages=(Message("user", (text,)),))

    def _claim(self, arrival: Arrival, *, is_task: bool) -> Claim:
        body = json.read_object(arrival.body)
        to, text, tell = body.get("to"), body.get("say"), body.get("tell")
        if not isinstance(to, str) or not isinstance(text, str):
            raise InvalidRequest("to", "must be there, and so must say")
        stamped, authorization = arrival.stamped(), arrival.headers.get("authorization")
        return Claim(
            dialect=self.name,
            agent=to,
            ask=self.asked(arrival.body),
            digest=sha256(arrival.body).digest(),
            request=arrival.body,
            marks=stamped.marks,
            authorization=None if authorization is None else Secret(authorization),
            is_task=is_task,
            callback=tell if isinstance(tell, str) else None,
        )

    def writer(self, call: Call, gateway: GatewayFacts, /) -> WordWriter:
        del gateway
        return WordWriter(call)

    def refusal(self, error: CarnetError, /) -> Reply:
        return lines(f"NO {error.code}", status=418)

    def result(self, events: Sequence[Event], /) -> dict[str, Any]:
        return result(events)

    def accepted(self, call: Call, /) -> Reply:
        return lines(f"TICKET {call.task}", status=201)

    def tell(self, way: str, result: QuestionResult, question: Question, /) -> Reply:
        del way, question
        match result:
            case TaskView():
                line = f"SAID {joined_text(result.events)}" if result.turn.state == "done" else ""
                return lines(line_of(result), *asks_of(result.interrupts), line)
            case TaskList():
                return lines(*[line_of(each) for each in result.tasks])
            case AgentList():
                return lines(*result.names)
        raise RouteNotFound


WORDS: Final[Dialect] = Words()
