"""The stream of a run elsewhere."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.events import Done, Event, Failed, Text, ToolCall
from carnet.errors import ProviderError
from carnet.wire.dialects.agents_api.stream import MOST_CALLS, RunReader
from carnet.wire.grammar import json, sse
from tests.wire.dialects.agents_api.test_client import TEXT, WANTED, task


def delta(**fields: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "message/delta", "params": {"id": "r", "delta": fields}}


def words(content: object) -> dict[str, Any]:
    return delta(deltaType="content", content=content)


def tool(name: object, content: object, kind: str = "tool_name", **more: Any) -> dict[str, Any]:
    return delta(deltaType=kind, toolCallId=name, content=content, **more)


def last(*parts: Any, state: str = "completed") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": task(*parts, state=state)}


def bytes_of(*frames: object) -> bytes:
    return b"".join(sse.write_event(json.write(frame)) for frame in frames)


def read(*frames: object) -> list[Event]:
    reader = RunReader(currency="credits")
    return [*reader.feed(bytes_of(*frames)), *reader.close()]


def test_words_come_as_they_are_told_and_not_again_at_the_end() -> None:
    assert read(words("he"), words(""), words("llo"), last(TEXT)) == [
        Text("he"),
        Text("llo"),
        Done(),
    ]


def test_without_deltas_the_last_frame_tells_all() -> None:
    assert read(last(TEXT)) == [Text("hello"), Done()]


def test_a_tool_that_deltas_tell_of_was_run_there() -> None:
    found = read(
        tool("c1", "look", toolCallIndex=2),
        tool("c1", '{"q"', "tool_argument"),
        tool("c1", ":1}", "tool_argument"),
        tool("c9", "x", "tool_argument"),
        words("so"),
        last({"type": "text", "text": "so"}),
    )
    assert found == [ToolCall("c1", "look", '{"q":1}', 2, is_own=True), Text("so"), Done()]


def test_a_tool_of_the_last_frame_is_ours_to_run() -> None:
    found = read(tool("c1", "look"), tool("c2", "own"), last(WANTED, state="input-required"))
    assert found == [
        ToolCall("c2", "own", "", is_own=True),
        ToolCall("c1", "look", "{}"),
        Done("tool_calls"),
    ]


@pytest.mark.parametrize(
    "odd",
    [
        words(7),
        delta(),
        {"method": "message/delta", "params": 7},
        tool(None, "x"),
        tool("", "x"),
        tool("x" * 257, "x"),
        tool("c", "x", "tool_other"),
    ],
)
def test_a_delta_that_is_none_is_left_out(odd: object) -> None:
    assert read(odd, last(TEXT)) == [Text("hello"), Done()]


def test_so_many_tools_are_told_of_and_no_more() -> None:
    calls = [tool(f"c{n}", "look") for n in range(MOST_CALLS + 1)]
    found = read(*calls, last(TEXT))
    assert len([event for event in found if type(event) is ToolCall]) == MOST_CALLS


def test_nothing_follows_the_last_frame_and_who_breaks_off_has_failed() -> None:
    assert read(last(TEXT), words("more")) == [Text("hello"), Done()]
    broken = read(words("he"))
    assert isinstance(broken[-1], Failed)
    assert broken[-1].code == "provider_unavailable"


@pytest.mark.parametrize("data", [b"data: no\n\n", b"data: []\n\n", b"\xff\xfe\n\n"])
def test_what_is_no_stream_of_frames_has_failed(data: bytes) -> None:
    with pytest.raises(ProviderError):
        [*RunReader(currency="credits").feed(data)]


@given(st.lists(st.text(max_size=6), max_size=5), st.integers(1, 40))
def test_it_does_not_matter_how_the_bytes_are_cut(texts: list[str], size: int) -> None:
    text = "".join(texts)
    data = bytes_of(*map(words, texts), last({"type": "text", "text": text}))
    reader = RunReader(currency="credits")
    found: list[Event] = []
    for at in range(0, len(data), size):
        found += reader.feed(data[at : at + size])
    found += reader.close()
    assert "".join(event.text for event in found if type(event) is Text) == text
    assert found[-1] == Done()
