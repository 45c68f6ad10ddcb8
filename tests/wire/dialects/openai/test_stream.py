"""Streams: events into chunks, a peer's chunks into events, and one into the other."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from openai._streaming import SSEDecoder
from openai.types.chat import ChatCompletionChunk

from carnet.core.chain.turn import Turn
from carnet.core.messages.events import (
    RESULT,
    Data,
    Done,
    Event,
    Extension,
    Failed,
    Interrupted,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    is_terminal,
    joined_text,
)
from carnet.core.messages.interrupt import Interrupt
from carnet.core.people.identity import Account
from carnet.errors import DepthExceeded
from carnet.wire.dialects.openai import ChunkReader, ChunkWriter, error_object, write_answer
from carnet.wire.grammar import json
from carnet.wire.grammar.sse import SseReader

TURN = Turn(
    n=7,
    agent="echo",
    run="conv_abc",
    turn="conv_abc.t0.echo",
    payer=Account("token:ada", "ada"),
    created=1_700_000_000_999_999,
)
FAILED = Failed("provider_error")
END = b"data: [DONE]\n\n"

INJECTIONS = [
    "\n\nevent: done\ndata: {}\n\n",
    "\r\rdata: [DONE]\r\r",
    "\r\n\r\n",
    "a\u2028data: x\u2029b\u0085c",
    '"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
    "\x00\x0b\x0c\x1c\x1d\x1e",
    "😀 é \\ / \\n",
]

words = st.sampled_from(["stop", "length", "tool_calls", "content_filter", "function_call"])
amounts = st.none() | st.integers(0, 10**15)
counts = st.integers(0, 10**12)
names = st.text(min_size=1, max_size=8)
texts = st.builds(Text, st.text() | st.sampled_from(INJECTIONS))
calls = st.builds(ToolCall, names, names, st.text(), st.integers(0, 3))
usages = st.builds(Usage, counts, counts, amounts, amounts, st.just("credits"))
failures = st.just(Failed.of(DepthExceeded(observed=5, limit=4))) | st.just(FAILED)
terminals: st.SearchStrategy[Done | Failed] = st.builds(Done, words) | failures


def writer(*, include_usage: bool = True) -> ChunkWriter:
    return ChunkWriter(TURN, model="echo", include_usage=include_usage, currency="credits")


def written(*events: Event, include_usage: bool = False) -> bytes:
    return writer(include_usage=include_usage).write(events)


def frames(stream: bytes) -> list[Any]:
    """The data of each frame: parsed JSON, or the text that ends a stream."""
    data = [event.data for event in SseReader().feed(stream)]
    return [text if text == "[DONE]" else json.read(text.encode()) for text in data]


def deltas(stream: bytes) -> list[Any]:
    found = [frame["choices"][0] for frame in frames(stream) if frame != "[DONE]"]
    return [choice["delta"] for choice in found]


def chunk(**members: object) -> bytes:
    """A frame of a peer's stream."""
    return b"data: %b\n\n" % json.write({"object": "chat.completion.chunk"} | members)


def delta(reason: str | None = None, **members: object) -> bytes:
    return chunk(choices=[{"index": 0, "delta": members, "finish_reason": reason}])


def fragment(index: int, id: str | None, name: str | None, arguments: str | None) -> bytes:
    function = {"name": name, "arguments": arguments}
    return delta(tool_calls=[{"index": index, "id": id, "function": function}])


def read(*chunks: bytes, max_event_bytes: int = 256 * 1024) -> list[Event]:
    """The events of a stream that arrives in these chunks."""
    reader = ChunkReader(currency="credits", max_event_bytes=max_event_bytes)
    return [event for chunk in chunks for event in reader.feed(chunk)] + reader.close()


def cut(stream: bytes, places: Sequence[int]) -> list[bytes]:
    marks = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[start:end] for start, end in pairwise(marks)]


# ------------------------------------------------------------------ writing


def test_a_stream_opens_with_the_role_and_ends_with_the_reason_and_done() -> None:
    stream = frames(written(Text("Hel"), Text("lo"), Done("length")))
    same = {
        "id": stream[0]["id"],
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "echo",
    }
    assert stream[0]["id"].startswith("chatcmpl-")
    usage = stream[-2].pop("usage")
    assert usage["total_tokens"] == 0
    assert stream == [
        same | {"choices": [{"index": 0, "delta": member, "finish_reason": reason}]}
        for member, reason in [
            ({"role": "assistant", "content": ""}, None),
            ({"content": "Hel"}, None),
            ({"content": "lo"}, None),
            ({}, "length"),
        ]
    ] + ["[DONE]"]


def test_a_stream_has_the_id_of_the_whole_answer() -> None:
    whole = json.read_object(write_answer(TURN, [Done()], model="echo", currency="credits"))
    assert frames(written(Done()))[0]["id"] == whole["id"]


def test_the_usage_chunk_comes_before_the_end_if_it_was_asked_for() -> None:
    events = (Text("a"), Usage(1, 2, 200, 400, "credits"), Done())
    last, end = frames(written(*events, include_usage=True))[-2:]
    assert end == "[DONE]"
    assert last["choices"] == []
    assert last["usage"] == {
        "prompt_tokens": 1,
        "completion_tokens": 2,
        "total_tokens": 3,
        "cost": "0.0002",
        "currency": "credits",
        "run_cost": "0.0004",
    }
    assert [("usage" in frame) for frame in frames(written(*events, include_usage=True))[:-2]] == [
        False
    ] * 3
    *before, unasked, end = frames(written(*events))
    assert end == "[DONE]"
    assert unasked["choices"][0]["finish_reason"] == "stop"
    assert unasked["usage"] == last["usage"]
    assert not any("usage" in frame for frame in before)


def test_a_stream_of_which_no_usage_is_known_says_so_in_its_last_chunk() -> None:
    usage = frames(written(Done()))[-2]["usage"]
    assert (usage["total_tokens"], usage["cost"]) == (0, None)


def test_a_tool_call_is_numbered_by_its_place() -> None:
    first, second = ToolCall("c1", "f", "{}"), ToolCall("c2", "g", "")
    assert deltas(written(first, second))[1:] == [
        {
            "tool_calls": [
                {
                    "index": index,
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
            ]
        }
        for index, call in enumerate([first, second])
    ]


def test_a_failure_is_one_error_frame_and_no_done() -> None:
    error = DepthExceeded(observed=5, limit=4)
    stream = frames(written(Text("a"), Failed.of(error)))
    assert stream[-1] == {"error": error_object(error, run="conv_abc")}
    assert len(stream) == 3
    assert frames(written(Failed.of(error))) == [{"error": error_object(error, run="conv_abc")}]


@pytest.mark.parametrize("include_usage", [False, True])
def test_what_a_failed_stream_has_cost_is_in_its_error_frame(include_usage: bool) -> None:  # noqa: FBT001
    usage = Usage(1, 2, 200, 400, "credits")
    (frame,) = frames(written(usage, FAILED, include_usage=include_usage))
    assert frame == {
        "error": error_object(FAILED.error(), run="conv_abc"),
        "usage": {
            "prompt_tokens": 1,
            "completion_tokens": 2,
            "total_tokens": 3,
            "cost": "0.0002",
            "currency": "credits",
            "run_cost": "0.0004",
        },
    }
    free = Usage(1, 2, 0, 400, "credits")
    assert written(free, FAILED, include_usage=include_usage) == written(FAILED)


@pytest.mark.parametrize("terminal", [Done(), FAILED])
def test_nothing_is_written_after_the_terminal_event(terminal: Event) -> None:
    ended = writer()
    stream = ended.write([Text("a"), terminal])
    again = writer().write([Text("a"), terminal, Text("b"), Done(), Text("c"), FAILED])
    assert again == stream
    assert ended.write([Text("b"), ToolCall("c", "f", ""), Done()]) == b""


def test_structured_output_becomes_text_at_the_end_if_there_was_none() -> None:
    assert deltas(written(Data({"a": 1}), Data(2), Done()))[1] == {"content": '{"a":1}\n2'}
    assert deltas(written(Text(""), Data(1), Done()))[1:3] == [{"content": ""}, {"content": "1"}]
    assert deltas(written(Data(1), Text("one"), Done()))[1:] == [{"content": "one"}, {}]


@pytest.mark.parametrize(
    ("before", "content"), [((), '{"total":5}'), ((Data(1),), '{"total":5}'), ((Text("a"),), "a")]
)
def test_the_result_of_a_skill_stands_in_the_last_chunk(
    before: tuple[Event, ...], content: str
) -> None:
    stream = written(*before, Extension(RESULT, {"total": 5}), Done())
    *chunks, last, _ = frames(stream)
    assert last["carnet"] == {"result": {"total": 5}}
    assert not [chunk for chunk in chunks if "carnet" in chunk]
    assert "".join(delta.get("content", "") for delta in deltas(stream)) == content


def test_a_result_too_large_for_one_chunk_is_in_the_text_alone() -> None:
    stream = written(Extension(RESULT, {"a": "x" * 300_000}), Done())
    assert b'"carnet"' not in stream
    assert max(map(len, stream.split(b"\n\n"))) < 256 * 1024


def test_what_this_dialect_cannot_carry_is_left_out_of_a_stream() -> None:
    asked = Interrupted(Interrupt(id="i", state="s", kind="approval", message="May I?"))
    others: list[Event] = [ToolResult("c1", "ok", "out"), asked, Extension("carnet.leg", {})]
    assert written(*others) == b""
    assert written(Text("a"), *others, Done()) == written(Text("a"), Done())


@pytest.mark.parametrize("text", INJECTIONS)
def test_no_text_can_add_a_line_to_a_stream(text: str) -> None:
    stream = written(Text("a"), Text(text), ToolCall(text, text, text), Data(text), Done())
    lines = stream.decode().splitlines()  # the most eager of all line readers
    assert all(line == "" or line.startswith("data: ") for line in lines)
    assert len(lines) == 2 * len(frames(stream))
    assert deltas(stream)[2] == {"content": text}


def test_a_text_too_long_for_a_readers_bound_is_spread_over_frames() -> None:
    text, arguments = "\x00" * 100_000, "é" * 90_000
    stream = written(Text("a"), Text(text), ToolCall("c", "f", arguments), Done())
    assert len(frames(stream)) == 10
    assert max(len(frame) for frame in stream.split(b"\n\n")) < 256 * 1024
    events = read(stream)
    assert joined_text(events) == "a" + text
    assert events[-3] == ToolCall("c", "f", arguments)


@given(
    st.lists(texts | calls | usages | st.builds(Data, st.integers())),
    terminals,
    st.lists(st.integers(0, 50)),
)
def test_where_the_batches_are_cut_makes_no_difference(
    before: list[Event], terminal: Event, places: list[int]
) -> None:
    events = [*before, terminal]
    marks = [0, *sorted(min(place, len(events)) for place in places), len(events)]
    batched = writer()
    pieces = [batched.write(events[start:end]) for start, end in pairwise(marks)]
    assert b"".join(pieces) == writer().write(events)


@given(st.lists(texts | calls), usages, words)
def test_the_real_client_reads_our_chunks(before: list[Event], usage: Usage, reason: str) -> None:
    stream = writer().write([*before, usage, Done(reason)])
    *sent, end = [event.data for event in SSEDecoder().iter_bytes(iter([stream]))]
    assert end == "[DONE]"
    chunks = [
        ChatCompletionChunk.model_validate(json.read(data.encode()), strict=True) for data in sent
    ]
    pieces = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
    assert "".join(pieces) == joined_text(before)
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-2].choices[0].finish_reason == reason
    assert chunks[-1].usage is not None


# ------------------------------------------------------------------ reading


def test_deltas_are_read_as_they_come() -> None:
    reader = ChunkReader(currency="credits")
    assert reader.feed(delta(role="assistant", content="")) == []
    assert reader.feed(delta(content="Hel") + delta(content="lo")) == [Text("Hel"), Text("lo")]
    assert reader.feed(delta("stop")) == []
    assert reader.feed(END) == [Done("stop")]
    assert reader.close() == []
    assert reader.fault == ""


def test_a_tool_call_comes_out_when_it_is_whole() -> None:
    stream = (
        fragment(0, "c1", "look", "")
        + fragment(1, "c2", "find", '{"b"')
        + fragment(0, None, None, '{"a":')
        + fragment(0, "c1", "look", "1}")
        + fragment(1, None, None, ":2}")
        + delta(tool_calls=[{"index": 1}])
        + fragment(1, None, None, None)
        + delta("tool_calls")
        + END
    )
    assert read(stream) == [
        ToolCall("c1", "look", '{"a":1}', 0),
        ToolCall("c2", "find", '{"b":2}', 1),
        Done("tool_calls"),
    ]


def test_another_id_under_the_same_index_is_another_call() -> None:
    stream = fragment(0, "c1", "f", "{}") + fragment(0, "c2", "g", "[]") + END
    assert read(stream) == [
        ToolCall("c1", "f", "{}"),
        ToolCall("c2", "g", "[]", 1),
        Done("tool_calls"),
    ]


def test_an_unfinished_tool_call_does_not_come_out_of_a_stream_that_failed() -> None:
    assert read(fragment(0, "c1", "f", "{")) == [FAILED]


def test_usage_comes_once_before_the_end_however_often_it_was_reported() -> None:
    growing = [
        chunk(
            choices=[{"delta": {"content": "a"}}],
            usage={"prompt_tokens": 1, "completion_tokens": n},
        )
        for n in (1, 2)
    ]
    total = chunk(choices=[], usage={"prompt_tokens": 1, "completion_tokens": 3, "cost": "9"})
    done = [Text("a"), Text("a"), Usage(1, 3), Done("stop")]
    assert read(*growing, delta("stop"), total, END) == done
    assert read(*growing) == [Text("a"), Text("a"), Usage(1, 2), FAILED]


def test_a_usage_chunk_may_lack_choices() -> None:
    assert read(delta("stop"), chunk(usage={"prompt_tokens": 4}), END) == [Usage(4), Done("stop")]


def test_a_cost_is_taken_over_in_our_currency_only() -> None:
    ours = {"cost": "0.5", "run_cost": "1", "currency": "credits"}
    usage = Usage(None, None, 500_000, 1_000_000, "credits")
    assert read(chunk(choices=[], usage=ours) + END) == [usage, Done("stop")]
    other = chunk(choices=[], usage=ours | {"currency": "USD"})
    assert read(other + END) == [Usage(), Done("stop")]


def test_a_stream_that_said_why_it_finished_may_lack_done() -> None:
    assert read(delta("length", content="a")) == [Text("a"), Done("length")]


def test_a_stream_that_said_done_may_lack_why_it_finished() -> None:
    assert read(delta(content="a") + END) == [Text("a"), Done("stop")]


def test_a_stream_with_neither_was_cut_off() -> None:
    assert read(delta(content="a")) == [Text("a"), FAILED]
    assert read() == [FAILED]


def test_keep_alive_comments_and_other_choices_are_skipped() -> None:
    other = chunk(choices=[{"index": 1, "delta": {"content": "no"}, "finish_reason": "stop"}])
    empty = chunk(choices=[{"index": 0}])
    assert read(b": ping\n\n", other, empty, delta("stop", content="a")) == [
        Text("a"),
        Done("stop"),
    ]


def test_an_error_frame_is_the_end() -> None:
    error = {"code": "bridge_depth_exceeded", "observed": 5, "limit": 4, "message": "sk-123"}
    failed = Failed("bridge_depth_exceeded", {"observed": 5, "limit": 4})
    frame = chunk(error=error)
    assert read(delta(content="a") + frame) == [Text("a"), failed]
    assert read(delta(content="a") + frame + delta(content="b") + frame + END) == [
        Text("a"),
        failed,
    ]
    assert read(frame, END, frame) == [failed]
    assert read(chunk(error={"message": "boom", "type": "server_error"})) == [FAILED]
    assert read(chunk(choices=[], error="boom")) == [FAILED]


def test_the_usage_beside_an_error_comes_before_the_end() -> None:
    usage = {"prompt_tokens": 4, "cost": "0.5", "currency": "credits"}
    failed = Failed("provider_error", {"by": "peer"})
    stream = chunk(error={"code": "agent_failed"}, usage=usage)
    assert read(delta(content="a"), stream) == [
        Text("a"),
        Usage(4, None, 500_000, None, "credits"),
        failed,
    ]
    earlier = chunk(choices=[], usage={"prompt_tokens": 1})
    assert read(earlier, chunk(error={"code": "agent_failed"})) == [Usage(1), failed]


HOSTILE: dict[str, bytes] = {
    "done twice": END + END,
    "text after done": END + delta(content="more"),
    "an error after done": END + chunk(error={"code": "cancelled"}),
    "not JSON": b"data: hello\n\n",
    "an empty frame": b"data:\n\n",
    "half a frame of JSON": b'data: {"choices":\n\n',
    "a number": b"data: 5\n\n",
    "a list": b"data: []\n\n",
    "an unknown event": chunk(type="surprise"),
    "choices null": chunk(choices=None),
    "choices an object": chunk(choices={}),
    "content a number": delta(content=5),
    "content a list": delta(content=["a"]),
    "tool_calls an object": delta(tool_calls={}),
    "a negative index": delta(tool_calls=[{"index": -1}]),
    "arguments an object": delta(tool_calls=[{"function": {"arguments": {}}}]),
    "too many tool calls": b"".join(fragment(n, f"c{n}", "f", "") for n in range(129)) + END,
    "a tool call without an id": fragment(0, None, "f", "{}") + END,
    "a tool call without a name": fragment(0, "c", None, "{}") + delta("tool_calls"),
    "too many tokens": chunk(choices=[], usage={"prompt_tokens": 9007199254740991}),
    "negative tokens": chunk(choices=[], usage={"prompt_tokens": -5}),
    "ended in an error": delta("error") + END,
    "invalid UTF-8": b'data: {"choices":[{"delta":{"content":"\xff"}}]}\n\n',
    "half a surrogate pair": b'data: {"choices":[{"delta":{"content":"\\ud800"}}]}\n\n',
    "a tower": b'data: {"x":' + b"[" * 100_000 + b"\n\n",
    "an event too large": delta(content="x" * 300_000),
    "an event too large that never ends": b"data: " + b"x" * 300_000,
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_stream_that_is_not_what_it_should_be_ends_in_one_failure(case: str) -> None:
    reader = ChunkReader(currency="credits")
    assert reader.feed(delta(content="a")) == [Text("a")]
    events = reader.feed(HOSTILE[case]) + reader.feed(END) + reader.close()
    assert events == [FAILED]
    assert reader.fault
    assert "sk-123" not in reader.fault


@pytest.mark.parametrize("case", HOSTILE)
def test_one_terminal_event_comes_out_however_a_hostile_stream_is_cut(case: str) -> None:
    stream = delta(content="a") + HOSTILE[case]
    for size in (1, 7, 64) if len(stream) < 20_000 else (4096,):
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        events = read(*pieces, END)
        assert [is_terminal(event) for event in events].count(True) == 1
        assert is_terminal(events[-1])


def test_what_follows_the_terminal_event_later_is_not_read() -> None:
    assert read(END, END, delta(content="more"), b"data: \xff\n\n") == [Done("stop")]


def test_the_bound_of_an_event_can_be_set() -> None:
    assert read(delta(content="x" * 50) + END, max_event_bytes=40) == [FAILED]


@given(st.lists(st.binary(max_size=30) | st.sampled_from([END, delta(content="a"), b"\n\n"])))
def test_whatever_bytes_come_one_terminal_event_ends_the_answer(chunks: list[bytes]) -> None:
    events = read(*chunks)
    assert [is_terminal(event) for event in events].count(True) == 1
    assert is_terminal(events[-1])


# ------------------------------------------------------------------ there and back


@given(st.lists(texts | calls, max_size=6), usages, terminals, st.lists(st.integers(0, 5000)))
def test_what_we_write_is_read_back_wherever_it_is_cut(
    before: list[Event], usage: Usage, terminal: Event, places: list[int]
) -> None:
    stream = writer().write([*before, usage, terminal])
    events = read(*cut(stream, places))
    assert joined_text(events) == joined_text(before)
    assert type(events[-1]) is type(terminal)
    assert usage in events or (isinstance(terminal, Failed) and not usage.cost)
    if isinstance(terminal, Done):
        assert events[-1] == terminal
        wanted = [event for event in before if isinstance(event, ToolCall)]
        # Equal ids in a row are told apart by the index that the writer counts.
        assert [event for event in events if isinstance(event, ToolCall)] == [
            structs.replace(call, index=index) for index, call in enumerate(wanted)
        ]
        assert events[-2] == usage


@given(st.lists(texts, max_size=4), words, st.integers(0, 3000))
def test_a_stream_of_ours_that_is_cut_off_is_never_longer_and_never_wrong(
    before: list[Event], reason: str, place: int
) -> None:
    stream = writer(include_usage=False).write([*before, Done(reason)])
    events = read(stream[:place])
    assert joined_text(before).startswith(joined_text(events))
    assert events[-1] in (FAILED, Done(reason))
    if events[-1] != FAILED:
        assert joined_text(events) == joined_text(before)


def test_a_tool_that_the_agent_has_run_itself_is_nobody_elses_to_run() -> None:
    own: list[Event] = [ToolCall("c1", "look", "{}", is_own=True), ToolResult("c1", "ok", "x")]
    without: list[Event] = [Text("So."), Usage(1, 1), Done()]
    assert written(*own, *without) == written(*without)
    assert write_answer(TURN, [*own, *without], model="echo", currency="credits") == write_answer(
        TURN, without, model="echo", currency="credits"
    )
