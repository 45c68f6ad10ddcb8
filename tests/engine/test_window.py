"""What a model is shown of a conversation that is longer than it can read."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.events import (
    CONTEXT_WINDOW,
    Done,
    Extension,
    Link,
    Message,
    Text,
    ToolCall,
)
from carnet.core.messages.parameters import Tool
from carnet.engine.loop import AgentLoop
from carnet.engine.window import (
    MESSAGE_TOKENS,
    PART_TOKENS,
    THRESHOLD,
    WindowedModel,
    fit,
    reserved,
    tokens_of,
    tokens_of_tools,
)
from carnet.errors import ContextTooLong
from carnet.ports.engine.loop import LoopTurn
from carnet.testing.model import ScriptedModel
from carnet.wire.dialects.engine_chat.request import EngineRequest
from tests.engine.scene import ALICE, Written, call, tool

SYSTEM = Message.system("Be brief.")


def user(words: str, length: int = 400) -> Message:
    return Message.user(words.ljust(length, "."))


def round_of(id: str, length: int = 400) -> list[Message]:
    """A call of the assistant, and its result."""
    return [
        Message("assistant", ("",), tool_calls=(ToolCall(id, "look", "{}"),)),
        Message("tool", (id.ljust(length, "."),), tool_call_id=id),
    ]


def names(messages: tuple[Message, ...]) -> str:
    shown = [m.tool_calls[0].id.upper() if m.tool_calls else m.text.strip(".") for m in messages]
    return " ".join(shown)


def test_a_quarter_of_the_characters_and_some_for_every_message() -> None:
    assert tokens_of(Message.user("")) == MESSAGE_TOKENS == 6
    assert tokens_of(Message.user("a")) == 7
    assert tokens_of(Message.user("a" * 8, "b")) == 9
    asked = Message("assistant", ("",), tool_calls=(ToolCall("x", "look", '{"a":1}'),))
    assert tokens_of(asked) == 9
    assert tokens_of(Message.user(Link("data:" + "a" * 99_999))) == 6 + PART_TOKENS
    assert tokens_of_tools([Tool("look", "x" * 400)]) > 100


@pytest.mark.parametrize(
    ("window", "max_output", "tokens"),
    [(128_000, None, 8000), (4000, None, 1000), (4000, 500, 500), (4000, 3000, 1000), (2, None, 0)],
)
def test_some_of_a_window_is_left_for_the_answer(
    window: int, max_output: int | None, tokens: int
) -> None:
    assert reserved(window, max_output) == tokens


@pytest.mark.parametrize(
    ("budget", "shown"),
    [
        (10_000, "Be brief one A a two Well three B b C c"),
        (600, "Be brief two Well three B b C c"),  # a whole exchange, with its tools
        (400, "Be brief three B b C c"),
        (330, "Be brief three C c"),  # then the oldest tools of the newest one
        (1, "Be brief three C c"),  # and never what was asked, and what came of it last
    ],
)
def test_the_oldest_exchanges_are_left_out_first_and_the_newest_words_never(
    budget: int, shown: str
) -> None:
    messages = [
        *(SYSTEM, user("one"), *round_of("a"), user("two"), Message.assistant("Well")),
        *(user("three"), *round_of("b"), *round_of("c")),
    ]
    fitted = fit(messages, 0, budget)
    assert names(fitted.messages) == shown
    assert fitted.left_out == len(messages) - len(fitted.messages)
    assert fitted.after == sum(map(tokens_of, fitted.messages))


def test_without_anybody_who_asked_the_newest_round_is_kept() -> None:
    assert names(fit([SYSTEM, *round_of("a"), *round_of("b")], 0, 1).messages) == "Be brief B b"
    assert fit([], 0, 1).messages == ()
    assert names(fit([SYSTEM], 0, 1).messages) == "Be brief"


KINDS = st.sampled_from(["user", "assistant", "round", "system"])


@given(st.lists(KINDS, max_size=12), st.integers(1, 2000))
def test_a_result_is_always_right_behind_its_call(kinds: list[str], budget: int) -> None:
    messages: list[Message] = []
    for place, kind in enumerate(kinds):
        if kind == "round":
            messages += round_of(f"c{place}")
        else:
            messages.append(Message(kind, ("x" * 300,)))  # type: ignore[arg-type]  # one of them
    fitted = fit(messages, 0, budget)
    shown = fitted.messages
    for place, message in enumerate(shown):
        if message.role == "tool":
            assert shown[place - 1].tool_calls[0].id == message.tool_call_id
        elif message.tool_calls:
            assert shown[place + 1].tool_call_id == message.tool_calls[0].id
    assert [m for m in messages if m.role == "system"] == [m for m in shown if m.role == "system"]
    if messages:
        assert shown[-1] == messages[-1]
    users = [m for m in messages if m.role == "user"]
    assert [m for m in shown if m.role == "user"][-1:] == users[-1:]
    if fitted.left_out:
        assert fitted.before > budget


# ------------------------------------------------------------------ in a loop


async def answered(model: ScriptedModel, *messages: Message, window: int) -> Written:
    written = Written()
    windowed = WindowedModel(model, name="small", window=window)
    request = EngineRequest(messages=messages, correlation="req_1")
    loop = AgentLoop(windowed, [tool()])
    assert await loop(LoopTurn(request=request, actor=ALICE), written) == Done("stop")
    return written


async def test_far_from_full_nothing_is_said_of_it() -> None:
    written = await answered(ScriptedModel(["Hello"]), user("one"), window=1000)
    assert written.events == [Text("Hello")]


async def test_it_is_told_once_that_a_window_fills_and_once_that_something_was_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="carnet.engine")
    messages = [user("one"), Message.assistant("."), user("two", 1200)]
    long = "x" * 1600
    model = ScriptedModel(
        [call("c1", "look", f'{{"a":"{long}"}}')], [call("c2", "look", '{"b":1}')], ["Hello"]
    )
    written = await answered(model, *messages, window=700)
    warned = [event.payload for event in written.events if isinstance(event, Extension)]
    assert [event.name for event in written.events if isinstance(event, Extension)] == [
        CONTEXT_WINDOW
    ] * 2
    before, after = warned
    assert (before["managed"], before["left_out"]) == (False, 0)
    assert before["estimated_tokens"] == before["shown_tokens"]
    assert THRESHOLD <= before["ratio"] <= 1
    assert before["ratio"] == round(before["estimated_tokens"] / before["budget_tokens"], 3)
    assert (after["managed"], after["left_out"]) == (True, 2)
    assert after["ratio"] > 1
    assert after["shown_tokens"] < after["estimated_tokens"]
    assert [len(ask.messages) for ask in model.asked] == [3, 3, 3]
    records = [record for record in caplog.records if "window" in record.getMessage()]
    assert [vars(record)["correlation_id"] for record in records] == ["req_1"] * 3
    assert [vars(record)["model"] for record in records] == ["small"] * 3


async def test_what_is_too_long_all_the_same_ends_as_its_provider_says() -> None:
    model = ScriptedModel([ContextTooLong("8193 tokens")])
    with pytest.raises(ContextTooLong):
        await answered(model, user("one", 9000), window=100)
