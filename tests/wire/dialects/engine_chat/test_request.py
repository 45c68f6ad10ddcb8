"""The body of a request to an engine: what is taken, what is refused, and by which place."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.events import DataPart, Link, Message, ToolCall
from carnet.errors import InvalidJson, InvalidRequest, Malformed
from carnet.wire.dialects.engine_chat import EngineRequest, read_request, write_request
from carnet.wire.dialects.engine_chat.request import (
    MOST_CALLS,
    MOST_CALLS_IN_ALL,
    MOST_MESSAGES,
    MOST_NAME,
)
from carnet.wire.grammar import json

# The request of the design, as it stands there.
EXAMPLE = b"""{
"messages": [
{ "role": "system", "content": "Read /AGENT.md for your instructions." },
{ "role": "user", "content": "Help me plan my finances" },
{ "role": "assistant", "content": "I'll read your finance page..." },
{ "role": "user", "content": "Focus on budgeting" }
],
"metadata": {
"conversation_id": "conv_abc123",
"correlation_id": "req_xyz789",
"trigger": "message",
"client_context": { "path": "/finances" }
}
}"""

HELLO = {"role": "user", "content": "Hello"}
CALLED: dict[str, Any] = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "c", "name": "f", "arguments": {}}],
}
MANY_CALLS = CALLED | {
    "tool_calls": [{"id": f"{n}", "name": "f", "arguments": {}} for n in range(MOST_CALLS)]
}
RESULT = {"role": "tool", "content": "3", "tool_call_id": "c"}
SECRET = "s3cr3t-value"


def body(messages: object = None, metadata: Any = None, **more: object) -> bytes:
    given: dict[str, object] = {"messages": [HELLO] if messages is None else messages, **more}
    return json.write({**given, "metadata": {"correlation_id": "req_1"} | (metadata or {})})


def refused(data: bytes) -> str:
    """The place that a request is refused for."""
    with pytest.raises(InvalidRequest) as found:
        read_request(data)
    assert SECRET not in found.value.safe_text
    return str(found.value.facts["field"])


def test_the_request_of_the_design_is_taken_as_it_stands() -> None:
    request = read_request(EXAMPLE)
    assert [message.role for message in request.messages] == ["system", "user", "assistant", "user"]
    assert request.messages[0].text == "Read /AGENT.md for your instructions."
    assert request == EngineRequest(
        messages=request.messages,
        correlation="req_xyz789",
        conversation="conv_abc123",
        trigger="message",
        client_context={"path": "/finances"},
    )


def test_what_was_begun_by_nothing_else_was_begun_by_a_message() -> None:
    assert read_request(body()).trigger == "message"
    for trigger in ("message", "webhook", "schedule"):
        assert read_request(body(metadata={"trigger": trigger})).trigger == trigger


def test_content_passes_unchanged() -> None:
    text = "a\x00b <script> 😀 \u2028 {{x}}"
    (message,) = read_request(body([{"role": "user", "content": text}])).messages
    assert message.text == text


def test_other_metadata_passes_through() -> None:
    more = {"project": "p", "deep": {"model": SECRET, "tools": [1], "api_key": SECRET}}
    assert read_request(body(metadata=more)).metadata == more


@pytest.mark.parametrize(
    "name",
    [
        *("provider", "provider_adapter", "model", "Model", "base_url", "baseUrl", "tools"),
        *("tool_sources", "api_key", "apiKey", "api-key", "api_key_env", "authorization"),
        *("token", "access_token", "session_id", "cookie", "password", "maxIterations"),
    ],
)
def test_what_a_loop_is_configured_with_and_credentials_are_no_part_of_a_request(name: str) -> None:
    assert refused(body(**{name: SECRET})) == name
    assert refused(body(metadata={name: SECRET})) == f"metadata.{name}"
    with pytest.raises(InvalidRequest):
        write_request(EngineRequest(messages=(), correlation="c", metadata={name: SECRET}))


def test_what_is_said_is_never_searched() -> None:
    words = {"api_key": SECRET, "model": "m", "tools": [], "provider": "p"}
    call = {"id": "c", "name": "model", "arguments": words}
    messages = [
        {"role": "user", "content": '{"api_key": "x", "model": "y"}'},
        {"role": "assistant", "content": "tools", "tool_calls": [call]},
    ]
    request = read_request(body(messages, {"client_context": words}))
    assert request.client_context == words
    assert json.read(request.messages[1].tool_calls[0].arguments.encode()) == words


def test_nothing_else_stands_at_the_top() -> None:
    assert refused(body(stream=True)) == "stream"
    assert refused(body(version="1")) == "version"
    assert refused(body(**{"a\nb" * 40: 1})) == "other"
    assert refused(body(**{"x" * (MOST_NAME + 1): 1})) == "other"


def test_tool_calls_may_be_as_many_as_messages() -> None:
    most = [MANY_CALLS] * (MOST_CALLS_IN_ALL // MOST_CALLS)
    assert len(read_request(body(messages=most)).messages) == len(most)


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        ([], "messages"),
        ("Hello", "messages"),
        ([HELLO] * (MOST_MESSAGES + 1), "messages"),
        ([MANY_CALLS] * (MOST_CALLS_IN_ALL // MOST_CALLS + 1), "messages"),
        (["Hello"], "messages[0]"),
        ([{"content": "x"}], "messages[0].role"),
        ([{"role": "invalid", "content": SECRET}], "messages[0].role"),
        ([{"role": "developer", "content": "x"}], "messages[0].role"),
        ([{"role": ["user"], "content": "x"}], "messages[0].role"),
        ([{"role": "user"}], "messages[0].content"),
        ([HELLO, {"role": "user", "content": None}], "messages[1].content"),
        ([{"role": "user", "content": [{"type": "text", "text": "x"}]}], "messages[0].content"),
        ([HELLO | {"name": SECRET}], "messages[0].name"),
        ([HELLO | {"tool_calls": []}], "messages[0].tool_calls"),
        ([HELLO | {"tool_call_id": "c"}], "messages[0].tool_call_id"),
        ([CALLED | {"tool_calls": {}}], "messages[0].tool_calls"),
        ([CALLED | {"tool_calls": [1]}], "messages[0].tool_calls[0]"),
        (
            [CALLED | {"tool_calls": [{"id": "c", "name": "f"}]}],
            "messages[0].tool_calls[0].arguments",
        ),
        (
            [CALLED | {"tool_calls": [{"id": "c", "name": "f", "arguments": "{}"}]}],
            "messages[0].tool_calls[0].arguments",
        ),
        (
            [CALLED | {"tool_calls": [{"id": "", "name": "f", "arguments": {}}]}],
            "messages[0].tool_calls[0].id",
        ),
        (
            [CALLED | {"tool_calls": [{"id": "c", "name": "f\n", "arguments": {}}]}],
            "messages[0].tool_calls[0].name",
        ),
        (
            [CALLED | {"tool_calls": [{"id": "c", "name": "f", "arguments": {}, "type": "x"}]}],
            "messages[0].tool_calls[0].type",
        ),
        ([CALLED | {"tool_calls": CALLED["tool_calls"] * 2}], "messages[0].tool_calls[1].id"),
        (
            [CALLED | {"tool_calls": CALLED["tool_calls"] * (MOST_CALLS + 1)}],
            "messages[0].tool_calls",
        ),
        ([RESULT], "messages[0].tool_call_id"),
        ([CALLED, RESULT, RESULT], "messages[2].tool_call_id"),
        ([CALLED, HELLO, RESULT], "messages[2].tool_call_id"),
        ([CALLED, {"role": "tool", "content": "3"}], "messages[1].tool_call_id"),
    ],
)
def test_messages_have_their_form_or_are_refused_by_their_place(
    messages: object, place: str
) -> None:
    assert refused(body(messages)) == place


@pytest.mark.parametrize(
    ("metadata", "place"),
    [
        ({"correlation_id": ""}, "correlation_id"),
        ({"correlation_id": None}, "correlation_id"),
        ({"correlation_id": "a b"}, "correlation_id"),
        ({"correlation_id": "x" * 129}, "correlation_id"),
        ({"conversation_id": 7}, "conversation_id"),
        ({"conversation_id": "x" * 257}, "conversation_id"),
        ({"trigger": "cron"}, "trigger"),
        ({"trigger": None}, "trigger"),
        ({"trigger": ["message"]}, "trigger"),
        ({"client_context": None}, "client_context"),
        ({"client_context": "/finances"}, "client_context"),
    ],
)
def test_metadata_that_is_known_has_its_form(metadata: object, place: str) -> None:
    assert refused(body(metadata=metadata)) == f"metadata.{place}"


def test_without_the_name_of_a_request_there_is_none() -> None:
    assert refused(json.write({"messages": [HELLO], "metadata": {}})) == "metadata.correlation_id"
    assert refused(json.write({"messages": [HELLO]})) == "metadata"
    assert refused(json.write({"messages": [HELLO], "metadata": []})) == "metadata"


def test_a_result_answers_a_call_before_it_once_and_an_id_may_come_again() -> None:
    messages = read_request(body([CALLED, RESULT, CALLED, CALLED, RESULT])).messages
    assert [message.tool_call_id for message in messages] == [None, "c", None, None, "c"]
    assert messages[3].tool_calls == (ToolCall("c", "f", "{}"),)


def test_what_is_no_json_object_is_refused() -> None:
    for data in (b"", b"[]", b'{"messages": [], "messages": []}', b"\xff", b"{" * 100):
        with pytest.raises(InvalidJson):
            read_request(data)


# ------------------------------------------------------------------ writing


def test_a_gateway_names_the_request_whatever_is_passed_through() -> None:
    given: dict[str, Any] = {"correlation_id": "forged", "trigger": "schedule", "project": "p"}
    request = EngineRequest(messages=(Message.user("x"),), correlation="req_1", metadata=given)
    again = read_request(write_request(request))
    assert (again.correlation, again.trigger, again.metadata) == (
        "req_1",
        "message",
        {"project": "p"},
    )


def test_a_developer_speaks_as_the_system_and_data_as_text() -> None:
    messages = (Message("developer", ("Be brief.",)), Message("user", ("See", DataPart({"a": 1}))))
    again = read_request(write_request(EngineRequest(messages=messages, correlation="c")))
    assert [(message.role, message.text) for message in again.messages] == [
        ("system", "Be brief."),
        ("user", 'See\n{"a":1}'),
    ]


def test_what_a_loop_cannot_be_given_is_refused_before_it_leaves() -> None:
    image = Message("user", (Link("https://x.example/a.png"),))
    broken = Message("assistant", ("",), tool_calls=(ToolCall("c", "f", "not json"),))
    for message, place in ((image, "messages[0].content"), (broken, "messages[0].tool_calls")):
        with pytest.raises(InvalidRequest) as found:
            write_request(EngineRequest(messages=(message,), correlation="c"))
        assert found.value.facts["field"] == place


keys = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=6)
words = st.text(st.characters(codec="utf-8"), max_size=8)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)
names = st.text(
    st.characters(categories=("L", "N"), include_characters="_"), min_size=1, max_size=9
)
objects = st.dictionaries(keys, json_values, max_size=3)
visible = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)
calls = st.builds(lambda name, given: (name, json.write_text(given)), names, objects)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    messages = [Message("user", (draw(st.text()),))]
    for n in range(draw(st.integers(0, 3))):
        wanted = [
            ToolCall(f"c{n}_{i}", *call, i)
            for i, call in enumerate(draw(st.lists(calls, max_size=2)))
        ]
        messages.append(Message("assistant", (draw(st.text()),), tool_calls=tuple(wanted)))
        messages += [Message("tool", (draw(st.text()),), tool_call_id=call.id) for call in wanted]
    return tuple(messages)


requests = st.builds(
    EngineRequest,
    messages=conversations(),
    correlation=visible,
    conversation=st.none() | visible,
    trigger=st.sampled_from(["message", "webhook", "schedule"]),
    client_context=st.none() | objects,
    metadata=st.dictionaries(
        st.sampled_from(["project", "client", "note"]), json_values, max_size=3
    ),
)


@given(requests)
def test_what_is_written_is_read_as_the_same(request: EngineRequest) -> None:
    assert read_request(write_request(request)) == request


@given(
    st.dictionaries(st.sampled_from(["messages", "metadata", "x"]), json_values)
    | st.builds(
        lambda messages, metadata: {"messages": messages, "metadata": metadata},
        st.lists(
            st.dictionaries(
                st.sampled_from(["role", "content", "tool_calls", "tool_call_id"]),
                st.sampled_from(["user", "assistant", "tool", "c"]) | json_values,
            ),
            max_size=3,
        ),
        st.dictionaries(
            st.sampled_from(
                ["correlation_id", "conversation_id", "trigger", "client_context", "y"]
            ),
            st.sampled_from(["message", "r"]) | json_values,
        ),
    )
)
def test_whatever_is_sent_is_a_request_or_refused(value: object) -> None:
    try:
        request = read_request(json.write(value))
    except Malformed:
        return
    assert read_request(write_request(request)) == request
