"""An answer as it grows, there and back."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.events import RESULT, Data, Done, Event, Extension, Failed, Text, Usage
from carnet.errors import AgentFailed, DepthExceeded, PeerBusy, ProviderError
from carnet.wire.dialects.samvad import (
    KEEP_ALIVE,
    FrameReader,
    StreamWriter,
    error_object,
    result_of,
    span_of,
)
from carnet.wire.dialects.samvad.stream import MOST_CHARACTERS
from carnet.wire.grammar import json
from carnet.wire.grammar.sse import SseReader
from tests.wire.dialects.samvad.scene import TURN

NAMES = {"traceId": "trace-1", "spanId": span_of(TURN)}


def written(*events: Event) -> bytes:
    return StreamWriter(TURN, trace_id="trace-1").write(events)


def frames(*events: Event) -> list[Any]:
    return [json.read(event.data.encode()) for event in SseReader().feed(written(*events))]


def read_all(*chunks: bytes) -> list[Event]:
    reader = FrameReader()
    events = [event for chunk in chunks for event in reader.feed(chunk)]
    return [*events, *reader.close()]


# ------------------------------------------------------------------ writing


def test_a_stream_is_chunks_and_then_one_last_frame() -> None:
    assert written(Text("Hel"), Text("lo"), Done()) == (
        b'data: {"chunk":"Hel","done":false}\n\n'
        b'data: {"chunk":"lo","done":false}\n\n'
        b'data: {"done":true,"result":{"text":"Hello"},"traceId":"trace-1","spanId":"'
        + span_of(TURN).encode()
        + b'"}\n\n'
    )


def test_lines_end_with_lf_alone() -> None:
    assert b"\r" not in written(Text("a\r\nb"), Data({"\r": "\r"}), Done())


def test_a_skill_streams_what_it_yields_and_ends_with_its_result() -> None:
    assert frames(Text("a"), Data({"n": 1}), Data(None), Extension(RESULT, {"sum": 2}), Done()) == [
        {"chunk": "a", "done": False},
        {"chunk": {"n": 1}, "done": False},
        {"chunk": None, "done": False},
        {"done": True, "result": {"sum": 2}, **NAMES},
    ]


def test_a_failure_is_the_last_frame_with_one_of_the_nine_codes() -> None:
    error = AgentFailed("hush-hush")
    [chunk, last] = frames(Text("a"), Failed.of(error))
    assert chunk == {"chunk": "a", "done": False}
    assert last == {"done": True, "error": error_object(error), **NAMES}
    assert last["error"]["code"] == "AGENT_UNAVAILABLE"
    assert "hush-hush" not in str(last)


def test_a_chain_too_deep_is_told_in_the_stream_too() -> None:
    [last] = frames(Failed.of(DepthExceeded(observed=4, limit=4)))
    assert last["error"]["code"] == "DELEGATION_EXCEEDED"
    assert "depth 4" in last["error"]["message"]


def test_nothing_follows_the_last_frame() -> None:
    whole = written(Text("a"), Done())
    assert written(Text("a"), Done(), Text("b"), Done()) == whole
    failed = written(Failed("agent_failed"))
    assert written(Failed("agent_failed"), Done()) == failed


def test_what_the_dialect_cannot_carry_makes_no_frame() -> None:
    assert written(Usage(1, 2), Extension("carnet.other", 1)) == b""
    assert written(Text("")) == b""


def test_no_text_can_add_a_frame() -> None:  # A59
    text = '\n\ndata: {"done":true}\n\n\u2028\u2029\x85\r'
    assert frames(Text(text), Done()) == [
        {"chunk": text, "done": False},
        {"done": True, "result": {"text": text}, **NAMES},
    ]


def test_a_long_text_is_spread_over_several_frames() -> None:
    text = "x" * (MOST_CHARACTERS + 1)
    [first, second] = frames(Text(text))
    assert (len(first["chunk"]), second["chunk"]) == (MOST_CHARACTERS, "x")


def test_a_span_of_ones_own_is_used() -> None:
    last = StreamWriter(TURN, trace_id="t", span_id="s").write([Done()])
    assert last == b'data: {"done":true,"result":{"text":""},"traceId":"t","spanId":"s"}\n\n'


def test_the_comment_that_keeps_a_stream_alive_is_the_protocols() -> None:
    assert KEEP_ALIVE == b": keep-alive\n\n"


# ------------------------------------------------------------------ reading

PYTHON_SDK = (
    b'data: {"done": true, "result": {"text": "hi"}, "traceId": "t", "spanId": "s"}\r\n\r\n'
)
TS_SDK = b'data: {"done":true,"result":{"n":1},"traceId":"t","spanId":"s"}\n\n'
PING = b": ping - 2026-11-15 06:46:52.993488+00:00\r\n\r\n"


def test_the_streams_of_both_sdks_are_read() -> None:
    assert read_all(PING, PYTHON_SDK) == [Text("hi"), Done()]
    assert read_all(KEEP_ALIVE, TS_SDK) == [Extension(RESULT, {"n": 1}), Done()]


def test_nothing_is_read_after_the_last_frame() -> None:
    assert read_all(TS_SDK + PYTHON_SDK, TS_SDK) == [Extension(RESULT, {"n": 1}), Done()]


def test_chunks_are_told_as_they_come_and_a_text_not_twice() -> None:
    body = written(Text("Hel"), Text("lo"), Done())
    reader = FrameReader()
    batches = [reader.feed(frame + b"\n\n") for frame in body.split(b"\n\n")[:-1]]
    assert batches == [[Text("Hel")], [Text("lo")], [Done()]]
    assert reader.close() == []


def test_a_result_that_differs_from_what_was_streamed_is_told_as_well() -> None:
    body = written(Text("hm"), Extension(RESULT, {"text": "yes"}), Done())
    assert read_all(body) == [Text("hm"), Extension(RESULT, {"text": "yes"}), Done()]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"data: hush-hush\n\n",
        b"data: []\n\n",
        b"data: {}\n\n",
        b'data: {"done":false}\n\n',
        b'data: {"done":1,"result":{}}\n\n',
        b'data: {"done":true}\n\n',
        b'data: {"done":true,"result":[]}\n\n',
        b'data: {"done":true,"error":"hush-hush"}\n\n',
        b'data: {"done":true,"result":{"text":"cut"',
        b'data: {"done":true,"result":' + b'{"a":' * 100_000 + b"\n\n",
        b'data: {"done":true,"result":' + b'{"a":' * 65 + b"1" + b"}" * 66 + b"\n\n",
        b'data: {"done":false,"chunk":' + b"[" * 65 + b"]" * 65 + b"}\n\n",
        b"data: \xff\n\n",
    ],
)
def test_what_is_no_stream_ends_in_one_failure(body: bytes) -> None:
    reader = FrameReader()
    assert [*reader.feed(body), *reader.close()] == [Failed(ProviderError.code)]
    assert reader.fault


def test_an_event_that_is_too_large_ends_in_one_failure() -> None:
    reader = FrameReader(max_event_bytes=100)
    assert reader.feed(b"data: " + b"x" * 200) == [Failed(ProviderError.code)]
    assert reader.feed(TS_SDK) == []


def test_an_error_at_the_end_keeps_the_word_of_the_protocol() -> None:
    error = b'{"code":"RATE_LIMITED","message":"hush-hush"}'
    [text, failed] = read_all(
        b'data: {"chunk":"a","done":false}\n\ndata: {"done":true,"error":'
        + error
        + b"}\n\n"
        + TS_SDK
    )
    assert text == Text("a")
    assert isinstance(failed, Failed)
    assert (failed.code, failed.facts["peer_code"]) == (PeerBusy.code, "RATE_LIMITED")
    assert "hush-hush" not in str(failed)


CHUNKS = st.lists(
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1).map(Text)
    | st.integers(-9, 9).map(Data)
    | st.dictionaries(st.text("ab"), st.none()).map(Data),
    max_size=5,
)
RESULTS = st.none() | st.dictionaries(st.sampled_from(["text", "n"]), st.text("xy") | st.none())


def test_a_result_of_no_text_after_other_chunks_is_told_as_well() -> None:
    body = written(Data(1), Extension(RESULT, {"text": ""}), Done())
    assert read_all(body) == [Data(1), Extension(RESULT, {"text": ""}), Done()]


@given(CHUNKS, RESULTS, st.integers(1, 50))
def test_a_stream_is_read_as_it_was_written(
    chunks: list[Event], result: dict[str, Any] | None, size: int
) -> None:
    end = [] if result is None else [Extension(RESULT, result)]
    events = [*chunks, *end, Done()]
    body = written(*events)
    read = read_all(*(body[at : at + size] for at in range(0, len(body), size)))
    assert read[: len(chunks)] == chunks
    assert read[-1] == Done()
    assert result_of(read) == result_of(events)


@given(CHUNKS)
def test_where_the_batches_are_cut_makes_no_difference(chunks: list[Event]) -> None:
    writer = StreamWriter(TURN, trace_id="trace-1")
    events = [*chunks, Done()]
    assert b"".join([writer.write([event]) for event in events]) == written(*events)


@given(st.lists(st.binary(max_size=60), max_size=5))
def test_any_bytes_end_in_exactly_one_terminal_event(chunks: list[bytes]) -> None:
    assert [type(event) for event in read_all(*chunks)] == [Failed]
