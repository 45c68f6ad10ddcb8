"""Skills as they are called: what goes in, what comes out, what goes wrong."""

import asyncio
import contextvars
import dataclasses
import datetime as dt
import enum
import threading
import uuid
from collections.abc import AsyncIterator, Sequence
from decimal import Decimal
from typing import Any

import pydantic
import pytest
from msgspec.structs import replace

import carnet
from carnet.core.call import Ask
from carnet.core.messages.events import RESULT, Data, Done, Event, Extension, Message, Text, Usage
from carnet.core.people.identity import Actor, Caller
from carnet.errors import AgentFailed, Cancelled, CarnetError, SchemaInvalid, SkillNotFound
from carnet.ports.calls.admission import ClientLeave
from carnet.runtime.agents.python import Native
from carnet.runtime.skills.definition import Definition
from carnet.runtime.visit.dispatch import Dispatching
from carnet.runtime.visit.visit import Visit
from tests.runtime.scene import Paper, collect, fail, make_call, streamed_events


def asking(skill: str | None, payload: dict[str, Any] | None = None, text: str = "") -> Ask:
    messages = (Message("user", (text,)),) if text else ()
    return Ask(messages=messages, skill=skill, payload=payload)


def native(agent: Definition) -> Native:
    return Native(agent, Dispatching(), last_depth=3)


async def events_of(
    agent: Definition, skill: str | None, payload: dict[str, Any] | None = None, text: str = ""
) -> list[Event]:
    return await collect(native(agent), replace(make_call(), ask=asking(skill, payload, text)))


async def result_of(agent: Definition, **payload: Any) -> Any:
    """What the one skill of an agent gives, where it says nothing else."""
    [result, end] = await events_of(agent, agent.skills[0].id, payload)
    assert end == Done()
    assert isinstance(result, Extension)
    assert result.name == RESULT
    return result.payload


async def error_of(agent: Definition, payload: dict[str, Any] | None = None) -> CarnetError:
    ask = asking(agent.skills[0].id, payload)
    error, _ = await fail(native(agent), replace(make_call(), ask=ask))
    return error


class Colour(enum.Enum):
    """Something that is chosen."""

    RED = "red"


@dataclasses.dataclass
class Order:
    """What strict readers of JSON choke on."""

    id: uuid.UUID
    at: dt.datetime
    colour: Colour
    price: Decimal
    tags: set[str]
    pair: tuple[int, str]


ORDER = {
    "id": "00000000-0000-0000-0000-000000000003",
    "at": "2026-11-15T06:46:52Z",
    "colour": "red",
    "price": "12.50",
    "tags": ["a"],
    "pair": [1, "x"],
}


async def test_rich_values_go_in_and_come_out() -> None:
    seen: list[Order] = []

    @carnet.skill("order")
    async def order(order: Order) -> Order:
        seen.append(order)
        return order

    assert await result_of(order, **ORDER) == ORDER
    assert seen[0].id == uuid.UUID(int=3)
    assert seen[0].price == Decimal("12.50")


class Question(pydantic.BaseModel):
    """What goes in."""

    text: str


class Answer(pydantic.BaseModel):
    """What comes out."""

    text: str
    at: dt.date = dt.date(2026, 11, 15)


async def test_models_of_pydantic_go_in_and_come_out() -> None:
    @carnet.skill("answer", input=Question, output=Answer)
    async def answer(question, visit):  # type: ignore[no-untyped-def]
        assert isinstance(question, Question)
        assert visit.payload == {"text": "why", "more": 1}
        return Answer(text=question.text + "?")

    assert await result_of(answer, text="why", more=1) == {"text": "why?", "at": "2026-11-15"}


async def test_a_plain_function_runs_beside_the_event_loop_with_its_context() -> None:
    here: contextvars.ContextVar[str] = contextvars.ContextVar("here")
    here.set("context")

    @carnet.skill("where")
    def where() -> dict[str, Any]:
        return {"main": threading.current_thread() is threading.main_thread(), "in": here.get()}

    assert await result_of(where) == {"main": False, "in": "context"}


async def test_a_plain_function_may_give_something_to_wait_for() -> None:
    async def later(text: str) -> str:
        return text.upper()

    @carnet.skill("loud")
    def loud(text: str) -> Any:
        return later(text)

    assert await result_of(loud, text="x") == {"result": "X"}


async def test_parameters_are_fields_where_there_are_several_or_one_is_no_object() -> None:
    @carnet.skill("add")
    async def add(a: int, v: Visit, b: int = 2, *, words: list[str] = []) -> int:  # noqa: B006
        assert v.skill == "add"
        words.append("changed")
        return a + b + len(words)

    assert await result_of(add, a=1) == {"result": 4}
    assert await result_of(add, a=1) == {"result": 4}
    assert await result_of(add, a=1, b=1, words=["x"], dropped=True) == {"result": 4}

    @carnet.skill("greet", input={"type": "object", "properties": {"name": {"type": "string"}}})
    async def greet(name, greeting="Hello"):  # type: ignore[no-untyped-def]
        return f"{greeting}, {name}"

    assert await result_of(greet, name="Ann", unknown=1) == {"result": "Hello, Ann"}
    error = await error_of(greet, {})
    assert isinstance(error, SchemaInvalid)
    assert error.safe_text == "Field 'name' is required"

    @carnet.skill("shout", input={"type": "object"})
    def shout(text: str) -> str:
        return text.upper()

    assert await result_of(shout, text="x") == {"result": "X"}


async def test_a_schema_says_what_comes_in_and_the_annotation_what_becomes_of_it() -> None:
    @carnet.skill("read", input={"type": "object", "maxProperties": 9})
    async def read(question: Question) -> str:
        return question.text

    assert read.skills[0].input_schema == {"type": "object", "maxProperties": 9}
    assert await result_of(read, text="why") == {"result": "why"}


@pytest.mark.parametrize("payload", [None, {}])
async def test_no_payload_is_an_empty_one(payload: dict[str, Any] | None) -> None:
    @carnet.skill("count")
    async def count(given: dict[str, Any]) -> int:
        return len(given)

    events = await events_of(count, "count", payload)
    assert events == [Extension(RESULT, {"result": 0}), Done()]


async def test_what_a_generator_yields_are_chunks_and_at_last_its_result() -> None:
    @carnet.skill("tell", output=Answer)
    async def tell(text: str) -> AsyncIterator[Any]:
        yield text
        yield {"at": dt.date(2026, 1, 2)}
        yield Text("event")
        yield Usage(tokens_in=1)
        yield Answer(text="done")

    assert await events_of(tell, "tell", {"text": "once"}) == [
        Text("once"),
        Data({"at": "2026-01-02"}),
        Text("event"),
        Usage(tokens_in=1),
        Extension(RESULT, {"text": "done", "at": "2026-11-15"}),
        Done(),
    ]


async def test_a_result_can_be_named_as_such() -> None:
    @carnet.skill("tell")
    async def tell() -> AsyncIterator[Any]:
        yield carnet.Result({"chunk": False})
        yield {"chunk": True}

    events = await events_of(tell, "tell")
    assert events == [Data({"chunk": True}), Extension(RESULT, {"chunk": False}), Done()]

    @carnet.skill("give")
    async def give() -> Any:
        return carnet.Result(7)

    assert await result_of(give) == {"result": 7}


async def test_without_a_result_it_is_what_was_said() -> None:
    @carnet.skill("tell")
    async def tell(texts: list[Any]) -> AsyncIterator[Any]:
        for text in texts:
            yield text

    async def payload_of(*texts: object) -> object:
        event = (await events_of(tell, "tell", {"texts": list(texts)}))[-2]
        assert isinstance(event, Extension)
        return event.payload

    assert await payload_of() == {"text": ""}
    assert await payload_of("a", "b") == {"text": "ab"}
    assert await payload_of("a", 1) == {"chunks": ["a", 1]}


async def test_what_was_said_must_fit_the_schema_too(caplog: pytest.LogCaptureFixture) -> None:
    @carnet.skill("tell", output=Order)
    async def tell() -> AsyncIterator[str]:
        yield "no order"

    assert isinstance(await error_of(tell), AgentFailed)
    assert "skill tell does not fit its schema" in caplog.text
    assert "no order" not in caplog.text


async def two_results() -> AsyncIterator[Any]:
    yield carnet.Result(1)
    yield carnet.Result(2)


async def forgotten_await() -> Any:
    async def value() -> int:
        return 1

    return value()


async def a_stream() -> Any:
    return two_results()


async def no_json() -> Any:
    return {"x": object()}


async def raises() -> Any:
    raise LookupError("secret")


def exits() -> Any:
    raise SystemExit("secret")


def stops() -> Any:
    return next(iter(()))


def too_deep() -> Any:
    """Levels that no peer reads, and for which no receipt could be made."""
    found: dict[str, Any] = {}
    for _ in range(64):
        found = {"in": found}
    return found


@pytest.mark.parametrize(
    "function", [two_results, forgotten_await, a_stream, no_json, raises, exits, stops, too_deep]
)
async def test_what_goes_wrong_in_a_skill_is_told_to_our_log_alone(
    function: Any, caplog: pytest.LogCaptureFixture
) -> None:
    error = await error_of(carnet.skill("s")(function))
    assert isinstance(error, AgentFailed)
    assert error.safe_text == "The agent failed while answering."
    assert "agent raised" in caplog.text


async def test_an_error_of_ours_keeps_its_meaning() -> None:
    @carnet.skill("stop")
    def stop() -> None:
        raise Cancelled("by itself")

    assert isinstance(await error_of(stop), Cancelled)


async def test_what_does_not_convert_is_refused_by_its_field() -> None:
    @carnet.skill("order")
    async def order(order: Order) -> None:
        raise NotImplementedError

    error = await error_of(order, ORDER | {"colour": "secret"})
    assert isinstance(error, SchemaInvalid)
    assert error.safe_text == "Field 'colour' is not a value of its type"


async def test_a_listener_that_leaves_closes_the_generator() -> None:
    closed: list[bool] = []

    @carnet.skill("tell")
    async def tell() -> AsyncIterator[str]:
        try:
            while True:
                yield "more"
        finally:
            closed.append(True)

    events = streamed_events(native(tell), replace(make_call(), ask=asking("tell")))
    assert await anext(events) == Text("more")
    await events.aclose()
    assert closed == [True]


def nothing() -> None: ...


async def chat(visit: Visit) -> str:
    return f"chat: {visit.text}"


async def test_chat_is_asked_by_name_or_by_nothing() -> None:
    both = carnet.agent("both")(chat)
    both.skill("count")(lambda given: {"n": len(given)})
    for skill in (None, "chat"):
        events = await events_of(both, skill, {"text": "hi"}, "hi")
        assert events == [Text("chat: hi"), Done()]
    assert await events_of(both, "count", {"a": 1}) == [Extension(RESULT, {"n": 1}), Done()]


async def test_a_chat_that_an_agent_declares_is_its_own() -> None:
    both = carnet.agent("both")(chat)
    both.skill("chat")(lambda given: {"text": f"declared: {given['text']}"})
    assert await events_of(both, None, None, "hi") == [Text("chat: hi"), Done()]
    declared = Extension(RESULT, {"text": "declared: hi"})
    assert await events_of(both, "chat", {"text": "hi"}) == [declared, Done()]
    alone = carnet.skill("chat")(lambda given: {"text": f"declared: {given['text']}"})
    events = await events_of(alone, None, None, "hi")
    assert events == [Text("declared: hi"), declared, Done()]

    @carnet.skill("chat")
    async def talking(text: str) -> AsyncIterator[str]:
        yield text

    events = await events_of(talking, None, None, "hi")
    assert events == [Text("hi"), Extension(RESULT, {"text": "hi"}), Done()]


@pytest.mark.parametrize(
    ("wanted", "suggestion"), [(None, "summarise"), ("chat", "summarise"), ("counts", "count")]
)
async def test_an_agent_that_has_no_such_skill_says_which_it_has(
    wanted: str | None, suggestion: str
) -> None:
    writer = carnet.agent("writer")
    writer.skill("summarise")(nothing)
    writer.skill("count")(nothing)
    error, events = await fail(native(writer), replace(make_call(), ask=asking(wanted, text="hi")))
    assert isinstance(error, SkillNotFound)
    assert error.public_facts() == {"suggestion": suggestion}
    assert events == []


@pytest.mark.parametrize(
    ("caller", "principal"),
    [
        (Caller(actor=Actor(name="token:ann"), scopes=frozenset()), "token:ann"),
        (Caller(actor=Actor(name="sender:x", how="signature"), scopes=frozenset()), None),
        (
            Caller(
                actor=Actor(name="sender:x", how="signature"),
                scopes=frozenset(),
                principal="token:bob",
            ),
            "token:bob",
        ),
    ],
)
async def test_a_skill_learns_who_calls_and_never_a_token(
    caller: Caller, principal: str | None
) -> None:
    @carnet.skill("who")
    async def who(visit: Visit) -> Any:
        assert visit.caller is caller
        return visit.principal

    call = replace(make_call(), ask=asking("who"), caller=caller)
    event = (await collect(native(who), call))[0]
    assert event == Extension(RESULT, {} if principal is None else {"result": principal})


class Elsewhere:
    """A dispatch that remembers what it was asked, and answers with what it was given."""

    def __init__(self, *events: Event) -> None:
        self.asked: list[Ask] = []
        self._events = events

    async def __call__(self, *args: Any, **_: Any) -> AsyncIterator[Event]:
        self.asked.append(args[2])
        for event in self._events:
            yield event

    def check(self, _: object) -> None:
        pass

    def most_cost(self, *_: Any) -> int:
        """All is free."""
        return 0

    def let_out(self, *_: Any, **__: Any) -> ClientLeave:
        return ClientLeave()

    async def whole(self, *args: Any, **_: Any) -> Sequence[Event]:
        self.asked.append(args[2])
        return self._events


def visiting(elsewhere: Elsewhere) -> Visit:
    return Visit(make_call(), Paper(), elsewhere, last_depth=3)


async def test_a_skill_of_another_agent_is_asked_for_its_result() -> None:
    elsewhere = Elsewhere(Text("a"), Extension("other", {}), Extension(RESULT, {"n": 1}), Done())
    assert await visiting(elsewhere).peer("x").skill("count", {"a": 1}) == {"n": 1}
    [ask] = elsewhere.asked
    assert (ask.skill, ask.payload, ask.messages, ask.stream) == ("count", {"a": 1}, (), False)


async def test_a_skill_of_another_agent_is_read_as_it_streams() -> None:
    elsewhere = Elsewhere(Text("a"), Data(1), Extension(RESULT, {"n": 1}), Done())
    stream = visiting(elsewhere).peer("x").stream_skill("count")
    items = [item async for item in stream]
    assert items == [Text("a"), Data(1), carnet.Result({"n": 1})]
    assert elsewhere.asked[0].stream
    assert elsewhere.asked[0].payload == {}


async def test_one_that_only_talks_gives_its_text_as_the_result() -> None:
    elsewhere = Elsewhere(Text("a"), Text("b"), Done())
    assert await visiting(elsewhere).peer("x").skill("chat", {"text": "hi"}) == {"text": "ab"}
    assert elsewhere.asked[0].text == "hi"


async def test_a_conversation_is_not_given_the_result_of_a_skill() -> None:
    elsewhere = Elsewhere(Text("a"), Extension(RESULT, {"n": 1}), Done())
    http = visiting(elsewhere).peer("x")
    assert [event async for event in http("hi")] == [Text("a")]
    assert await http.ask("hi") == "a"


async def test_what_a_peer_streams_can_be_passed_on_as_it_is() -> None:
    @carnet.skill("relay")
    async def relay(visit: Visit) -> AsyncIterator[Any]:
        async for item in visit.peer("x").stream_skill("count"):
            yield item

    elsewhere = Elsewhere(Text("a"), Extension(RESULT, {"n": 1}), Done())
    agent = Native(relay, elsewhere, last_depth=3)
    events = await collect(agent, replace(make_call(), ask=asking("relay")))
    assert events == [Text("a"), Extension(RESULT, {"n": 1}), Done()]


async def test_many_plain_functions_run_at_the_same_time() -> None:
    everyone = threading.Barrier(4)

    @carnet.skill("meet")
    def meet() -> int:
        return everyone.wait(60) // 4

    agent = native(meet)
    calls = [collect(agent, replace(make_call(), ask=asking("meet"))) for _ in range(4)]
    for events in await asyncio.gather(*calls):
        assert events == [Extension(RESULT, {"result": 0}), Done()]
