"""Models that a Python agent asks: what leaves, what it is given, and where it is counted."""

import asyncio
from typing import Any

import pytest

import carnet
from carnet.core.messages.events import Done, Event, Message, Text, ToolCall, Usage
from carnet.core.messages.parameters import Tool
from carnet.errors import Cancelled, ModelRateLimited
from carnet.ports.engine.model import LanguageModel
from carnet.runtime.agents.python import Native
from carnet.runtime.visit.dispatch import Dispatching
from carnet.runtime.visit.means import VisitMeans
from carnet.runtime.visit.visit import Visit
from carnet.testing.model import ScriptedModel
from tests.runtime.scene import Paper, make_call

LOOK = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}


def visiting(paper: Paper | None = None, **models: LanguageModel) -> Visit:
    call = make_call(text="bees")
    means = VisitMeans(models=models)
    return Visit(call, paper or Paper(), Dispatching(), last_depth=3, means=means)


async def test_the_whole_text_and_what_it_used_is_counted_in_the_turn() -> None:
    model, paper = ScriptedModel(["Hel", "lo", Usage(7, 2)]), Paper()
    visit = visiting(paper, writer=model)
    answer = await visit.model("writer").ask("Write.", system="Be brief.", temperature=0.5)
    assert answer == "Hello"
    (asked,) = model.asked
    assert asked.messages == (Message.system("Be brief."), Message.user("Write."))
    assert asked.parameters == {"temperature": 0.5}
    assert asked.correlation == visit.carnet.run
    assert paper.events == [Usage(7, 2)]


async def test_text_as_it_comes_and_the_tools_that_it_wants_called() -> None:
    wanted = ToolCall("c1", "look", "{}")
    model = ScriptedModel(["I look.", wanted])
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}
    found: list[Event] = [
        event
        async for event in visiting(writer=model).model()(
            [Message.user("a"), {"role": "user", "content": "b"}],
            tools=[LOOK, Tool("find", "Finds.")],
            tool_choice="auto",
            response_format=schema,
        )
    ]
    assert found == [Text("I look."), wanted]
    (asked,) = model.asked
    assert [tool.name for tool in asked.tools] == ["look", "find"]
    assert asked.tools[0].written() == LOOK
    assert asked.parameters == {"tool_choice": "auto", "response_format": schema}
    assert [message.text for message in asked.messages] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "models", "says"),
    [
        ("writer", {}, r"there are no models: write a section \[models.NAME\]"),
        ("writr", {"writer": 1, "other": 2}, "no model 'writr'. Did you mean 'writer'?"),
        ("zzz", {"writer": 1, "other": 2}, "There are writer, other."),
        (None, {"writer": 1, "other": 2}, "Name one of writer, other"),
    ],
)
async def test_a_name_that_is_no_model_is_refused_in_plain_words(
    name: str | None, models: dict[str, Any], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        visiting(**models).model(name)


async def test_what_is_no_question_is_refused_before_anything_leaves() -> None:
    model = ScriptedModel()
    ask: Any = visiting(writer=model).model("writer").ask
    with pytest.raises(TypeError, match="no parameter"):
        await ask("Hi", temperatur=1)
    with pytest.raises(TypeError, match="list of messages"):
        await ask([])
    assert model.asked == []


async def test_a_failure_is_raised_and_what_was_used_is_counted_all_the_same() -> None:
    paper = Paper()
    visit = visiting(paper, writer=ScriptedModel(["Hel", Usage(3, 1), ModelRateLimited("429")]))
    coming = visit.model()("Hi")
    assert await anext(coming) == Text("Hel")
    with pytest.raises(ModelRateLimited):
        await anext(coming)
    assert paper.events == [Usage(3, 1)]


async def test_whoever_stops_reading_ends_the_answer() -> None:
    ended = asyncio.Event()

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    events = visiting(writer=ScriptedModel(["Hel", endless])).model()("Hi")
    assert await anext(events) == Text("Hel")
    await events.aclose()  # type: ignore[attr-defined]  # a generator is what is given
    assert ended.is_set()


async def test_a_turn_that_is_over_asks_nobody_any_more() -> None:
    model = ScriptedModel(["never"])
    visit = visiting(writer=model)
    asking = visit.model("writer")
    visit.close()
    with pytest.raises(Cancelled):
        await asking.ask("Hi")
    assert model.asked == []


async def test_an_agent_may_pass_on_what_a_model_says() -> None:
    @carnet.agent("essay")
    async def essay(visit: Visit) -> Any:
        async for event in visit.model("writer")(visit.messages, **visit.parameters):
            yield event

    model, paper = ScriptedModel(["Of ", "bees.", Usage(5, 4)]), Paper()
    native = Native(essay, Dispatching(), last_depth=3, means=VisitMeans(models={"writer": model}))
    assert await native(make_call(text="bees"), paper) == Done()
    texts = [event for event in paper.events if isinstance(event, Text)]
    assert texts == [Text("Of "), Text("bees.")]
    assert [event for event in paper.events if event not in texts] == [Usage(5, 4)]
