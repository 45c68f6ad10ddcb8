"""Messages of a chat: parts, tool calls, and what stays in the body alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.events import DataPart, File, Link, Message, Part, ToolCall
from carnet.wire.dialects.openai.request import read_messages, write_message

texts = st.text(max_size=20)
parts: st.SearchStrategy[Part] = st.one_of(
    texts,
    st.builds(Link, texts, media_type=st.just("image/*")),
    st.builds(File, texts, media_type=st.sampled_from(["audio/wav", "audio/mp3"])),
    st.builds(File, texts, st.none() | texts),
    st.builds(File, texts, st.none() | texts, st.just("application/pdf")),
)
calls = st.builds(ToolCall, texts, texts, texts)


def contents(found: list[Part]) -> tuple[Part, ...]:
    """Text alone is written as one piece, so it comes back as one."""
    if found and all(isinstance(part, str) for part in found):
        return ("\n".join([part for part in found if isinstance(part, str)]),)
    return tuple(found) or ("",)


@given(
    found=st.lists(parts, max_size=4),
    tools=st.lists(calls, max_size=3),
    name=st.none() | texts,
    answered=st.none() | texts,
)
def test_what_is_written_is_read_as_it_was(
    found: list[Part], tools: list[ToolCall], name: str | None, answered: str | None
) -> None:
    numbered = tuple([ToolCall(c.id, c.name, c.arguments, i) for i, c in enumerate(tools)])
    message = Message(
        "assistant", contents(found), name, tool_calls=numbered, tool_call_id=answered
    )
    assert read_messages([write_message(message)]) == (message,)


@pytest.mark.parametrize("media", ["application/pdf", "text/plain;charset=utf-8"])
def test_a_file_in_a_data_url_is_its_bytes_and_their_kind(media: str) -> None:
    part = {"type": "file", "file": {"file_data": f"data:{media};base64,JVBERi0="}}
    (message,) = read_messages([{"role": "user", "content": [part]}])
    assert message.parts == (File("JVBERi0=", None, media),)
    assert write_message(message)["content"] == [part]


def test_what_only_looks_like_a_data_url_stays_as_it_is() -> None:
    for content in ("data:text/plain,hello", "data:;base64,AAAA", "data:a/b;base64", "x,y"):
        part = {"type": "file", "file": {"file_data": content}}
        (message,) = read_messages([{"role": "user", "content": [part]}])
        assert message.parts == (File(content),)


def test_the_usual_parts_are_read() -> None:
    content = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": "https://a.example/x.png"}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
        {"type": "file", "file": {"file_data": "JVBERi0=", "filename": "x.pdf"}},
    ]
    (message,) = read_messages([{"role": "user", "content": content}])
    assert message.parts == (
        "What is this?",
        Link("https://a.example/x.png", media_type="image/*"),
        File("UklGRg==", media_type="audio/wav"),
        File("JVBERi0=", "x.pdf"),
    )
    assert message.text == "What is this?"
    assert not message.is_plain


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url"},
        {"type": "image_url", "image_url": "https://a.example/x.png"},
        {"type": "image_url", "image_url": {"url": 3}},
        {"type": "input_audio", "input_audio": {"data": None}},
        {"type": "file", "file": {"file_id": "file-1"}},
        {"type": "hologram", "hologram": {"url": "x"}},
    ],
)
def test_a_part_of_another_form_stays_in_the_body_alone(part: dict[str, Any]) -> None:
    (message,) = read_messages([{"role": "user", "content": [part, {"type": "text", "text": "x"}]}])
    assert message.parts == ("x",)


def test_audio_of_no_known_format_is_audio() -> None:
    part = {"type": "input_audio", "input_audio": {"data": "UklGRg=="}}
    (message,) = read_messages([{"role": "user", "content": [part]}])
    assert message.parts == (File("UklGRg==", media_type="audio/*"),)


def test_tool_calls_and_their_results_are_read() -> None:
    function = {"name": "look_up", "arguments": '{"x": 1}'}
    asked = {"role": "assistant", "tool_calls": [{"id": "c1", "function": function}]}
    result = {"role": "tool", "content": "42", "tool_call_id": "c1"}
    first, second = read_messages([asked, result])
    assert first == Message("assistant", (), tool_calls=(ToolCall("c1", "look_up", '{"x": 1}'),))
    assert second == Message("tool", ("42",), tool_call_id="c1")
    assert not first.is_plain
    assert not second.is_plain


@pytest.mark.parametrize(
    "tool_calls", [3, [3], [{}], [{"id": "c", "function": 3}], [{"id": 3, "function": {"name": 1}}]]
)
def test_tool_calls_of_another_form_stay_in_the_body_alone(tool_calls: object) -> None:
    (message,) = read_messages(
        [{"role": "assistant", "content": "x", "tool_calls": tool_calls, "tool_call_id": 3}]
    )
    assert message == Message("assistant", ("x",))


def test_a_value_is_written_as_text_for_those_who_read_text() -> None:
    message = Message("user", (DataPart({"seats": 4}),))
    assert write_message(message)["content"] == [{"type": "text", "text": '{"seats":4}'}]
