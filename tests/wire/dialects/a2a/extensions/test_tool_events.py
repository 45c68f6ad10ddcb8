"""Tools that an agent runs, as Mentionable tells them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.events import ToolCall, ToolResult
from carnet.wire.dialects.a2a.extensions.tool_events import (
    MOST_ID,
    MOST_NAME,
    MOST_WORDS,
    read_event,
    write_event,
)
from carnet.wire.grammar import json

NAMES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2**53 - 1) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=3).map(json.write_text)
EVENTS = st.one_of(
    st.tuples(NAMES, NAMES, OBJECTS).map(lambda given: ToolCall(*given, is_own=True)),
    st.builds(ToolResult, NAMES, st.just("ok"), VALUES),
    st.builds(ToolResult, NAMES, st.just("error"), NAMES),
)


@given(EVENTS, NAMES)
def test_what_is_told_is_read_as_it_was(event: ToolCall | ToolResult, name: str) -> None:
    assert read_event(write_event(event, name)) == event


def test_each_kind_has_its_form() -> None:
    call = ToolCall("c1", "search", '{"q": "cats"}', is_own=True)
    assert write_event(call) == {
        "type": "tool-call",
        "toolCallId": "c1",
        "toolName": "search",
        "input": {"q": "cats"},
    }
    done = ToolResult("c1", "ok", {"hits": 3})
    assert write_event(done, "search") == {
        "type": "tool-result",
        "toolCallId": "c1",
        "toolName": "search",
        "output": {"hits": 3},
    }
    assert write_event(ToolResult("c1", "error", {"n": 1})) == {
        "type": "tool-error",
        "toolCallId": "c1",
        "error": {"message": '{"n":1}'},
    }
    assert write_event(ToolResult("c1", "denied", None))["error"] == {"message": "denied"}
    assert (
        write_event(ToolResult("c1", "error", "x" * 9999))["error"]["message"] == "x" * MOST_WORDS
    )


@pytest.mark.parametrize(("arguments", "given_input"), [("", {}), ("half {", "half {")])
def test_arguments_that_are_no_json_are_told_as_they_are(
    arguments: str, given_input: object
) -> None:
    assert write_event(ToolCall("c", "f", arguments, is_own=True))["input"] == given_input


@pytest.mark.parametrize(
    "other",
    [
        None,
        "tool-call",
        {},
        {"type": "tool-call"},
        {"type": "tool-call", "toolCallId": "c"},
        {"type": "tool-call", "toolCallId": "c", "toolName": ""},
        {"type": "tool-call", "toolCallId": "c", "toolName": "f" * (MOST_NAME + 1)},
        {"type": "tool-call", "toolCallId": "", "toolName": "f"},
        {"type": "tool-call", "toolCallId": 7, "toolName": "f"},
        {"type": "tool-result", "toolCallId": "c" * (MOST_ID + 1)},
        {"type": "tool-result", "toolCallId": "a\nb"},
        {"type": "another", "toolCallId": "c"},
    ],
)
def test_other_data_is_no_event(other: object) -> None:
    assert read_event(other) is None


def test_what_an_agent_leaves_out_is_filled_in() -> None:
    call = {"type": "tool-call", "toolCallId": "c", "toolName": "f\x1b"}
    assert read_event(call) == ToolCall("c", "f ", "{}", is_own=True)
    assert read_event({**call, "input": "q"}) == ToolCall("c", "f ", "q", is_own=True)
    for error in (None, "x", {}, {"message": 7}):
        found = read_event({"type": "tool-error", "toolCallId": "c", "error": error})
        assert found == ToolResult("c", "error", "the tool has failed")
