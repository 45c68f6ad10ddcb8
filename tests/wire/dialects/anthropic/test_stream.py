"""A stream of Anthropic's messages as it arrives: whole, cut anywhere, and broken."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.events import (
    ECHO,
    Done,
    Event,
    Extension,
    Failed,
    Text,
    ToolCall,
    Usage,
    is_terminal,
)
from carnet.wire.dialects.anthropic.stream import MessageReader
from tests.wire.dialects.anthropic.scene import (
    PING,
    STOP,
    begin,
    end,
    error,
    frame,
    text,
    thinking,
    tool_use,
)

WHOLE = b"".join(
    [
        begin(),
        PING,
        thinking("Hm."),
        text("I look", " it up ☃.", index=1),
        tool_use("read", '{"pa', 'th":"/a"}', index=2),
        tool_use("look", id="toolu_2", index=3),
        frame("something_new", value=1),
        end("tool_use"),
    ]
)
EVENTS: list[Event] = [
    Text("I look"),
    Text(" it up ☃."),
    ToolCall("toolu_1", "read", '{"path":"/a"}', 0),
    ToolCall("toolu_2", "look", "{}", 1),
    Extension(
        ECHO,
        [
            {"type": "thinking", "thinking": "Hm.", "signature": "EqQB"},
            {"type": "text", "text": "I look it up ☃."},
            {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "/a"}},
            {"type": "tool_use", "id": "toolu_2", "name": "look", "input": {}},
        ],
    ),
    Usage(30, 15),
    Done("tool_calls"),
]


def read(*chunks: bytes) -> tuple[list[Event], MessageReader]:
    reader = MessageReader(currency="credits")
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    return [*events, *reader.close()], reader


def test_text_as_it_comes_calls_when_they_are_whole_and_what_was_used() -> None:
    assert read(WHOLE)[0] == EVENTS


@given(st.lists(st.integers(0, len(WHOLE)), max_size=6))
def test_where_it_is_cut_makes_no_difference(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(WHOLE)]
    pieces = [WHOLE[a:b] for a, b in pairwise(places)]
    assert read(*pieces)[0] == EVENTS


@pytest.mark.parametrize(
    ("reason", "word"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
        ("pause_turn", "stop"),
    ],
)
def test_why_it_ended_is_told_in_words_that_everybody_knows(reason: str, word: str) -> None:
    assert read(begin(), text("a"), end(reason))[0][-1] == Done(word)


def test_a_call_may_come_whole_with_its_block() -> None:
    block = {"type": "tool_use", "id": "t", "name": "read", "input": {"path": "/a"}}
    opened = frame("content_block_start", index=0, content_block=block)
    events, _ = read(begin(), opened, frame("content_block_stop", index=0), end("tool_use"))
    assert events[0] == ToolCall("t", "read", '{"path":"/a"}')


def test_it_may_lack_its_last_event_and_later_counts_stand_for_earlier_ones() -> None:
    last = frame(
        "message_delta",
        delta={"stop_reason": "end_turn"},
        usage={"input_tokens": 40, "output_tokens": 9},
    )
    assert read(begin(), text("a"), last)[0] == [Text("a"), Usage(45, 9), Done("stop")]


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("overloaded_error", "provider_unavailable"),
        ("api_error", "provider_unavailable"),
        ("timeout_error", "provider_timeout"),
        ("rate_limit_error", "model_rate_limited"),
        ("billing_error", "model_quota_exceeded"),
        ("authentication_error", "model_key_refused"),
        ("something_new", "provider_error"),
    ],
)
def test_an_error_in_it_is_what_its_type_says(kind: str, code: str) -> None:
    failed = f"event: error\ndata: {json.dumps(error(kind, 'Overloaded'))}\n\n".encode()
    events, reader = read(begin(), text("a"), failed, text("b", index=1))
    assert events[:2] == [Text("a"), Usage(30, 1)]
    (end_of_it,) = events[2:]
    assert isinstance(end_of_it, Failed)
    assert end_of_it.code == code
    assert reader.words == f"{kind} Overloaded"


def data(value: bytes) -> bytes:
    return b"data: " + value + b"\n\n"


OPEN = frame("content_block_start", index=0, content_block={"type": "text", "text": ""})
DELTA = frame("content_block_delta", index=0, delta={"type": "text_delta", "text": "x"})
CLOSE = frame("content_block_stop", index=0)
NAMELESS = frame(
    "content_block_start", index=0, content_block={"type": "tool_use", "id": "", "name": ""}
)
BROKEN = {
    "nothing": b"",
    "only its beginning": begin(),
    "cut in a frame": begin() + text("a") + b"event: message_de",
    "cut before it says why": begin() + text("a"),
    "ended without a reason": begin() + text("a") + STOP,
    "no beginning": text("a") + end(),
    "two beginnings": begin() + begin() + text("a") + end(),
    "a beginning without its message": frame("message_start") + end(),
    "no json": begin() + data(b"not json"),
    "no object": begin() + data(b"[]"),
    "no type": begin() + data(b"{}"),
    "no utf-8": begin() + data(b"\xff"),
    "too large": begin() + data(b"x" * 300_000),
    "too deep": begin() + data(b'{"type":"error","error":' + b'{"a":' * 100_000),
    "text of no block": begin() + DELTA + end(),
    "text of another block": begin() + OPEN + DELTA.replace(b'"index": 0', b'"index": 1'),
    "text that is none": begin() + OPEN + DELTA.replace(b'"text": "x"', b'"text": 7'),
    "no delta": begin() + OPEN + frame("content_block_delta", index=0) + CLOSE + end(),
    "a block in another": begin() + OPEN + OPEN + CLOSE + end(),
    "a block that is not the next": begin() + text("a", index=1) + end(),
    "a block after the end": begin() + end()[: -len(STOP)] + text("a"),
    "an end within a block": begin() + OPEN + end(),
    "an end of no block": begin() + CLOSE + end(),
    "a call without a name": begin() + NAMELESS + CLOSE + end("tool_use"),
    "text within a call": begin() + NAMELESS + DELTA,
    "a count below nothing": begin().replace(b'"input_tokens": 25', b'"input_tokens": -1'),
    "a count beyond all": begin().replace(b'"input_tokens": 25', b'"input_tokens": 9' + b"0" * 18),
    "an answer of something else": data(b'{"choices":[{"index":0,"delta":{"content":"x"}}]}'),
}


@pytest.mark.parametrize("stream", BROKEN.values(), ids=BROKEN.keys())
def test_what_is_no_such_stream_fails_once_and_says_why_to_us_alone(stream: bytes) -> None:
    events, reader = read(stream)
    assert events[-1] == Failed("provider_error")
    assert [event for event in events if is_terminal(event)] == [events[-1]]
    assert reader.fault


def test_after_its_end_nothing_counts() -> None:
    assert read(WHOLE, text("more"), end())[0] == EVENTS
    assert read(WHOLE + text("more") + b"garbage\n\n")[0] == EVENTS


def test_a_stream_of_too_many_calls_is_none() -> None:
    calls = [tool_use("a", id=f"t{n}", index=n) for n in range(129)]
    assert read(begin(), *calls, end("tool_use"))[0][-1] == Failed("provider_error")


UNKNOWN = frame("content_block_start", index=1, content_block={"type": "new"})


@pytest.mark.parametrize(
    "stream",
    [
        begin() + thinking("Hm.") + text("a", index=1) + end(),  # nothing is to be sent back
        begin() + tool_use("a") + end("tool_use"),  # it can be made anew
        begin() + thinking("Hm.") + tool_use("a", "[1]", index=1) + end("tool_use"),
        begin()
        + thinking("Hm.")
        + UNKNOWN
        + frame("content_block_stop", index=1)
        + tool_use("a", index=2)
        + end("tool_use"),
        begin()
        + thinking("x" * 140_000)
        + thinking("y" * 140_000, index=1)
        + tool_use("a", index=2)
        + end("tool_use"),
    ],
    ids=["no calls", "no thoughts", "no arguments", "unknown block", "too long"],
)
def test_an_answer_is_kept_to_be_sent_back_only_where_it_must_and_can_be(stream: bytes) -> None:
    events, reader = read(stream)
    assert not reader.fault
    assert [event for event in events if isinstance(event, Extension)] == []


def test_thoughts_that_are_hidden_are_kept_as_they_came() -> None:
    block = {"type": "redacted_thinking", "data": "EmwKAh"}
    hidden = frame("content_block_start", index=0, content_block=block)
    closed = frame("content_block_stop", index=0)
    events, _ = read(begin(), hidden, closed, tool_use("a", index=1), end("tool_use"))
    (kept,) = [event for event in events if isinstance(event, Extension)]
    assert kept.payload[0] == block
