"""The stream of an engine as it is read."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.events import (
    CONTEXT_WINDOW,
    Done,
    End,
    Event,
    Extension,
    Failed,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    Waiting,
    is_terminal,
    joined_text,
)
from carnet.wire.dialects.engine_chat import EngineReader, EngineWriter
from carnet.wire.dialects.engine_chat.refusals import FAILURES
from carnet.wire.dialects.engine_chat.stream import MOST_OPEN, MOST_WORDS
from carnet.wire.grammar import json
from carnet.wire.grammar.sse import MAX_EVENT_BYTES, write_event
from tests.wire.dialects.engine_chat.test_writer import EVENTS, EXAMPLE

BROKEN = Failed("provider_error")
CUT_OFF = Failed("agent_failed")
STOP = {"finish_reason": "stop", "usage": {"prompt_tokens": 1, "completion_tokens": 2}}
CALL = {"id": "c", "name": "f", "arguments": {"a": 1}}


def frame(event: str, data: object) -> bytes:
    return write_event(json.write(data), event=event)


def read(*chunks: bytes) -> tuple[list[Event], EngineReader]:
    reader = EngineReader()
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    return [*events, *reader.close()], reader


def events_of(*chunks: bytes) -> list[Event]:
    return read(*chunks)[0]


def test_the_stream_of_the_design_is_read_as_what_it_says() -> None:
    assert events_of(EXAMPLE) == [*EVENTS, Usage(150, 75), Done("stop")]


def test_where_the_chunks_are_cut_makes_no_difference() -> None:
    assert events_of(*[bytes([byte]) for byte in EXAMPLE]) == events_of(EXAMPLE)
    assert events_of(EXAMPLE.replace(b"\n", b"\r\n")) == events_of(EXAMPLE)


def test_both_spellings_of_the_fields_are_read() -> None:
    stream = [
        frame("text-delta", {"delta": "Hi", "type": "text-delta"}),
        frame("tool-call", {"id": "c", "name": "f", "input": {}}),
        frame("tool-result", {"id": "c", "status": "ok", "output": {"a": 1}}),
        frame("tool-call", {"id": "d", "name": "f", "input": {}}),
        frame("tool-result", {"id": "d", "status": "denied", "output": {"reason": "no"}}),
        frame("tool-call", {"id": "e", "name": "f", "arguments": {}}),
        frame("tool-result", {"id": "e", "status": "error", "output": "x"}),
        frame("tool-call", {"id": "f", "name": "f", "arguments": {}}),
        frame("tool-result", {"id": "f", "error": "broken"}),
        frame("done", {"finish_reason": "stop", "conversation_id": "c", "message_id": "m"}),
    ]
    results = [event for event in events_of(*stream) if type(event) is ToolResult]
    assert results == [
        ToolResult("c", "ok", {"a": 1}),
        ToolResult("d", "denied", {"reason": "no"}),
        ToolResult("e", "error", "x"),
        ToolResult("f", "error", "broken"),
    ]
    assert events_of(*stream)[-1] == Done("stop")
    assert events_of(*stream)[0] == Text("Hi")


def test_comments_and_empty_texts_are_nothing() -> None:
    stream = [b": keep-alive\n\n", frame("text-delta", {"content": ""}), frame("done", STOP)]
    assert events_of(*stream) == [Usage(1, 2), Done("stop")]


@pytest.mark.parametrize(("code", "kind"), [(code, kind.code) for code, kind in FAILURES.items()])
def test_an_error_counts_by_its_code_and_its_words_are_the_operators(code: str, kind: str) -> None:
    words = "/srv/app.py " + "x" * MOST_WORDS
    events, reader = read(frame("error", {"code": code, "message": words}))
    assert events == [Failed(kind)]
    assert reader.words == words[:MOST_WORDS]
    assert reader.fault == ""


def test_a_call_without_a_result_is_what_an_approval_is_asked_for() -> None:
    done = frame("done", {"finish_reason": "approval_required"})
    stream = [
        frame("tool-call", {"id": "a", "name": "look", "arguments": {}}),
        frame("tool-call", CALL),
        frame("tool-result", {"id": "a", "output": "x"}),
        done,
    ]
    end = events_of(*stream)[-1]
    assert isinstance(end, Waiting)
    (asked,) = end.interrupts
    assert (asked.kind, asked.id) == ("approval", "c")
    assert asked.more == {"tool": "f", "arguments": {"a": 1}}
    assert events_of(done) == [BROKEN]


def test_a_label_is_what_people_are_asked_and_nothing_sealed_is_shown_to_them() -> None:
    call = ToolCall("c", "f", '{"a":"sealed:x","b":"y"}', is_own=True, label="Doing y")
    done = frame("done", {"finish_reason": "approval_required"})
    shown, end = events_of(EngineWriter().write([call]), done)
    assert shown == call
    assert isinstance(end, Waiting)
    (asked,) = end.interrupts
    assert asked.message == "Doing y"
    assert asked.more == {"tool": "f", "arguments": {"a": "***", "b": "y"}}
    for label in ("a\nb", "\x1b[2J"):  # another loop may write anything
        (first, *_) = events_of(frame("tool-call", CALL | {"label": label}), done)
        assert isinstance(first, ToolCall)
        assert first.label == ""


def test_arguments_that_are_too_long_to_be_kept_are_not_asked_about() -> None:
    call = {"id": "c", "name": "f", "arguments": {"a": "x" * 20_000}}
    stream = [frame("tool-call", call), frame("done", {"finish_reason": "approval_required"})]
    end = events_of(*stream)[-1]
    assert isinstance(end, Waiting)
    assert end.interrupts[0].more == {"tool": "f"}


@pytest.mark.parametrize(
    "stream",
    [
        frame("partial-done", STOP),
        frame("approval-request", {"request_id": "x"}),
        write_event(json.write(STOP)),
        write_event(b"not json", event="text-delta"),
        write_event(b"[]", event="done"),
        write_event(b'{"finish_reason":"a","finish_reason":"b"}', event="done"),
        write_event(b"[" * 5000, event="tool-result"),
        b"event: text-delta\ndata: \xff\n\n",
        frame("text-delta", {}),
        frame("text-delta", {"content": 7}),
        frame("tool-call", {"id": "c", "name": "f"}),
        frame("tool-call", {"id": "c", "name": "f", "arguments": "{}"}),
        frame("tool-call", {"id": "", "name": "f", "arguments": {}}),
        frame("tool-call", {"id": "c", "name": "\n", "arguments": {}}),
        frame("tool-call", CALL) * 2,
        b"".join(frame("tool-call", CALL | {"id": str(n)}) for n in range(MOST_OPEN + 1)),
        frame("tool-result", {"id": "other", "output": "x"}),
        frame("tool-call", CALL) + frame("tool-result", {"id": "c", "status": "maybe"}),
        frame("tool-call", CALL) + frame("tool-result", {"id": "c", "output": "x"}) * 2,
        frame("done", {"usage": {}}),
        frame("done", {"finish_reason": ""}),
        frame("done", {"finish_reason": "x" * 65}),
        frame("done", {"finish_reason": "stop", "usage": {"prompt_tokens": -1}}),
        frame("done", STOP) * 2,
        frame("done", STOP) + frame("text-delta", {"content": "x"}),
        frame("error", {"code": "unknown", "message": "/srv"}),
        frame("error", {"message": "x"}),
        b"event: text-delta\ndata: " + b"x" * (MAX_EVENT_BYTES + 1),
    ],
)
def test_what_is_no_stream_of_the_contract_ends_in_one_failure(stream: bytes) -> None:
    events, reader = read(stream, frame("done", STOP))
    assert events[-1] == BROKEN
    assert [event for event in events if is_terminal(event)] == [BROKEN]
    assert reader.fault


def test_a_stream_without_an_end_is_a_fault_of_the_loop() -> None:
    for stream in (b"", EXAMPLE[:-1], frame("text-delta", {"content": "x"})):
        events, reader = read(stream)
        assert events[-1] == CUT_OFF
        assert reader.fault == "the stream was cut off"


def test_what_comes_after_the_end_is_not_read() -> None:
    reader = EngineReader()
    assert reader.feed(frame("done", {"finish_reason": "stop"})) == [Done("stop")]
    assert reader.feed(frame("text-delta", {"content": "x"})) == []
    assert reader.close() == []


words = st.text(st.characters(codec="utf-8"), max_size=20)
names = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=9)
objects = st.dictionaries(
    names, words | st.integers(0, 9) | st.lists(words, max_size=2), max_size=3
)
ends: st.SearchStrategy[End] = st.sampled_from(
    [Done("stop"), Done("max_iterations"), *[Failed(kind.code) for kind in FAILURES.values()]]
)


@st.composite
def streams(draw: st.DrawFn) -> list[Event]:
    written: list[Event] = []
    for n in range(draw(st.integers(0, 4))):
        written.append(Text(draw(words)))
        wanted = [
            ToolCall(f"c{n}_{i}", draw(names), json.write_text(draw(objects)), i, is_own=True)
            for i in range(draw(st.integers(0, 2)))
        ]
        written += wanted
        written += [
            ToolResult(call.id, draw(st.sampled_from(["ok", "error"])), draw(words))
            for call in wanted
        ]
    return written


@given(streams(), ends, st.lists(st.integers(1, 40), max_size=30))
def test_what_is_written_is_read_as_the_same(
    written: list[Event], end: End, cuts: list[int]
) -> None:
    writer = EngineWriter()
    data = writer.write(written) + (writer.end(end) or b"")
    chunks = []
    for cut in cuts:
        chunks.append(data[:cut])
        data = data[cut:]
    found = events_of(*chunks, data)
    assert found[-1] == end
    assert joined_text(found) == joined_text(written)
    kept: tuple[type, ...] = (ToolCall, ToolResult)
    assert [event for event in found if type(event) in kept] == [
        event for event in written if type(event) in kept
    ]


pieces = st.sampled_from(
    [
        frame("text-delta", {"content": "x"}),
        frame("tool-call", CALL),
        frame("tool-result", {"id": "c", "output": "x"}),
        frame("done", STOP),
        frame("error", {"code": "tool_error", "message": "x"}),
        b"event: done\n",
        b"\n\n",
    ]
) | st.binary(max_size=30)


@given(st.lists(pieces, max_size=8))
def test_whatever_the_bytes_there_is_one_end_and_nothing_after_it(chunks: list[bytes]) -> None:
    events: list[Any] = events_of(*chunks)
    assert [is_terminal(event) for event in events[:-1]] == [False] * (len(events) - 1)
    assert is_terminal(events[-1])


def test_how_much_the_model_can_still_read_is_told_before_the_end() -> None:
    window = {
        "estimated_tokens": 900,
        "shown_tokens": 700,
        "budget_tokens": 800,
        "ratio": 1.125,
        "threshold": 0.8,
        "managed": True,
        "left_out": 2,
    }
    done = {"finish_reason": "stop", "context_window": {**window, "more": 1}}
    assert events_of(frame("done", done)) == [Extension(CONTEXT_WINDOW, window), Done("stop")]
    wrong = {"finish_reason": "stop", "context_window": {**window, "ratio": "much"}}
    assert events_of(frame("done", wrong)) == [Failed("provider_error")]


USED_TWICE = b": used 3 1\n\n: used 5 1\n\n"
DONE_FRAME = b'event: done\ndata: {"finish_reason":"stop","usage":{"prompt_tokens":9,'
DONE_FRAME += b'"completion_tokens":4}}\n\n'
ERROR_FRAME = b'event: error\ndata: {"code":"tool_error","message":""}\n\n'


def used_in(*chunks: bytes) -> tuple[int, int]:
    reader, events = EngineReader(), list[Event]()
    for chunk in chunks:
        events += reader.feed(chunk)
    events += reader.close()
    found = [event for event in events if isinstance(event, Usage)]
    return sum([each.tokens_in or 0 for each in found]), sum(
        [each.tokens_out or 0 for each in found]
    )


def test_what_was_used_is_told_once_also_where_the_stream_fails_or_is_cut() -> None:
    assert used_in(USED_TWICE, DONE_FRAME) == (9, 4)
    assert used_in(USED_TWICE + DONE_FRAME) == (9, 4)
    assert used_in(USED_TWICE, ERROR_FRAME) == (5, 1)
    assert used_in(USED_TWICE) == (5, 1)
    assert used_in(USED_TWICE, b"event: other\ndata: {}\n\n") == (5, 1)


@pytest.mark.parametrize(
    "comment",
    ["used 4 0", "used -9 1", "used 9", "used 9999999999999 1", "used 9 1 x", "used  9 1"],
)
def test_a_comment_that_says_less_or_is_another_says_nothing(comment: str) -> None:
    assert used_in(USED_TWICE, f": {comment}\n\n".encode()) == (5, 1)
