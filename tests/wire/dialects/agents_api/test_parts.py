"""Parts of messages: which are taken, and that what is written is read as the same."""

from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.events import (
    RESULT,
    Data,
    Done,
    Event,
    Extension,
    File,
    Link,
    Text,
    ToolCall,
    file_event,
)
from carnet.errors import InvalidRequest
from carnet.wire.dialects.agents_api import parts as wire
from carnet.wire.grammar import json

NAMES = st.none() | st.from_regex(r"[a-zA-Z0-9._ -]{1,40}", fullmatch=True)
FILES = st.builds(
    File, st.binary(max_size=64).map(lambda raw: b64encode(raw).decode()), NAMES, NAMES
)
LINKS = st.builds(
    Link, st.from_regex(r"https://[a-z]{1,20}/[!-~]{0,20}", fullmatch=True), NAMES, NAMES
)
WORDS = st.from_regex(r"[a-z0-9_-]{1,20}", fullmatch=True)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
CALLS = st.builds(
    lambda id, name, arguments: ToolCall(id, name, json.write_text(arguments)),
    WORDS,
    WORDS,
    st.dictionaries(WORDS, VALUES, max_size=2),
)
DATA = VALUES.filter(lambda value: wire.read_call(value, 0) is None).map(Data)


@given(FILES | LINKS)
def test_a_file_that_is_written_is_read_as_the_same(part: File | Link) -> None:
    written = wire.write_file(part)
    assert wire.read_file(written, "file") == part


@given(st.text(max_size=20), st.lists(DATA | CALLS | (FILES | LINKS).map(file_event), max_size=6))
def test_an_answer_that_is_written_is_read_as_the_same(text: str, others: list[Event]) -> None:
    events = [Text(text), *others] if text else others
    read = [wire.without_index(each) for each in wire.events_of(wire.parts_of(events))]
    assert read == events


@given(VALUES)
def test_no_message_breaks_the_reader(message: object) -> None:
    try:
        found = wire.read_parts(message)
        wire.text_of(found)
        wire.data_of(found)
    except InvalidRequest:
        return
    assert all(part["type"] in {"text", "data", "file"} for part in found)


def test_a_message_without_parts_has_none() -> None:
    assert wire.read_parts(None) == wire.read_parts({}) == wire.read_parts("hi") == []


@pytest.mark.parametrize(
    ("parts", "field"),
    [
        ("text", "message.parts"),
        ([{"type": "text"}] * (wire.MOST_PARTS + 1), "message.parts"),
        ([{"kind": "text", "text": "hi"}], "message.parts[0].type"),
        ([{"type": "text", "text": "hi"}, "hi"], "message.parts[1].type"),
    ],
)
def test_parts_that_are_none_are_refused_by_their_place(parts: object, field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        wire.read_parts({"parts": parts})
    assert refused.value.facts["field"] == field


def test_the_text_is_joined_and_trimmed_without_what_is_context() -> None:
    parts: list[dict[str, Any]] = [
        {"type": "text", "text": " one"},
        {"type": "data", "data": {"text": "no"}},
        {"type": "text", "text": "no", "contentType": "context"},
        {"type": "text", "text": " two "},
    ]
    assert wire.text_of(parts) == "one two"
    with pytest.raises(InvalidRequest, match="must be a text"):
        wire.text_of([{"type": "text", "text": 1}])


def test_data_is_what_is_an_object() -> None:
    parts = [{"type": "data", "data": each} for each in ({"a": 1}, [1], None)]
    assert wire.data_of([*parts, {"type": "text", "text": "hi"}]) == [{"a": 1}]


@pytest.mark.parametrize(("value", "name"), [(None, None), ("", None), (7, "7"), ("x y", "x y")])
def test_a_name_may_be_missing_or_a_number(value: object, name: str | None) -> None:
    assert wire.read_name(value, "id") == name


@pytest.mark.parametrize("value", [True, 1.5, [], "a\nb", "x" * (wire.MOST_NAME + 1)])
def test_a_name_that_is_none_is_refused(value: object) -> None:
    with pytest.raises(InvalidRequest) as refused:
        wire.read_name(value, "id")
    assert refused.value.facts["field"] == "id"


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ("file", "f"),
        ({}, "f"),
        ({"bytes": "aGk=", "uri": "https://a"}, "f"),
        ({"uri": 7}, "f.uri"),
        ({"uri": "https://a/ b"}, "f.uri"),
        ({"uri": "x" * (wire.MOST_URL + 1)}, "f.uri"),
        ({"bytes": "not base64!"}, "f.bytes"),
        ({"bytes": 7}, "f.bytes"),
        ({"bytes": "aGk=", "name": ["x"]}, "f"),
    ],
)
def test_a_file_that_is_none_is_refused(value: object, field: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        wire.read_file(value, "f")
    assert refused.value.facts["field"] == field


def test_a_link_may_be_called_url() -> None:
    assert wire.read_file({"url": "https://a"}, "f") == Link("https://a", None, None)


def test_what_no_text_tells_follows_it_in_an_answer() -> None:
    events: list[Event] = [
        Text("hi"),
        Extension(RESULT, {"rows": 2}),
        Extension("other", {}),
        ToolCall("c1", "look", ""),
        ToolCall("c2", "look", "no json"),
        ToolCall("c3", "own", "{}", is_own=True),
        Done(),
    ]
    assert wire.parts_of(events) == [
        {"type": "text", "text": "hi"},
        {"type": "data", "data": {"rows": 2}},
        {"type": "data", "data": {"toolCallId": "c1", "toolId": "look", "arguments": {}}},
        {"type": "data", "data": {"toolCallId": "c2", "toolId": "look", "arguments": "no json"}},
    ]


def test_of_an_answer_what_is_not_known_is_left_out() -> None:
    parts = [
        "text",
        {"kind": "text", "text": "hi"},
        {"type": "text", "text": ""},
        {"type": "text", "text": 7},
        {"type": "file", "file": {}},
        {"type": "image"},
        {"type": "data"},
        {"type": "data", "data": {"toolCallId": "c", "toolId": "t", "result": 1}},
        {"type": "data", "data": {"toolCallId": "", "toolId": "t"}},
        {"type": "data", "data": {"toolCallId": "c", "toolId": "t", "arguments": "raw"}},
        {"type": "data", "data": {"toolCallId": "d", "toolId": "t"}},
    ]
    assert [*wire.events_of(parts)] == [
        Text("hi"),
        Data({"toolCallId": "c", "toolId": "t", "result": 1}),
        Data({"toolCallId": "", "toolId": "t"}),
        ToolCall("c", "t", "raw", 0),
        ToolCall("d", "t", "{}", 1),
    ]
    assert [*wire.events_of("parts")] == []


def test_the_first_object_may_be_the_result_of_a_skill() -> None:
    parts = [{"type": "data", "data": each} for each in ([1], {"a": 1}, {"b": 2})]
    found = [*wire.events_of(parts, as_result=True)]
    assert found == [Data([1]), Extension(RESULT, {"a": 1}), Data({"b": 2})]
