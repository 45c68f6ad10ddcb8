"""agents-api toward others: what is written for a question, and what an answer is read as."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.call import Ask
from carnet.core.messages.events import (
    Data,
    DataPart,
    Done,
    Event,
    File,
    Message,
    Text,
    ToolCall,
    Usage,
    Waiting,
)
from carnet.core.messages.interrupt import Interrupt, Resolution
from carnet.errors import CarnetError, DepthExceeded, PeerBusy, PeerRefused, ProviderError
from carnet.wire.dialects.agents_api import client as wire
from carnet.wire.dialects.agents_api.actions import write_envelopes
from carnet.wire.dialects.agents_api.chat_input import read_params
from carnet.wire.grammar import json
from tests.wire.dialects.agents_api.test_parts import VALUES, WORDS


def sent(ask: Ask, **more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"run": "t-1", "session": "s-1", "stream": False, **more}
    return json.read_object(wire.write_message(ask, **given))


def test_a_question_is_a_message_with_what_was_said_before() -> None:
    call = ToolCall("c1", "look", '{"q": 1}')
    bare = ToolCall("c2", "look", "")
    ask = Ask(
        messages=(
            Message("system", ("be kind",)),
            Message("user", ("before",)),
            Message("assistant", ("  ",), tool_calls=(call, bare)),
            Message("tool", ('{"hits": 3}',), tool_call_id="c1"),
            Message("tool", ("no json",), tool_call_id="c2"),
            Message("tool", ("of nobody",), tool_call_id="c9"),
            Message("assistant", ("yes",)),
            Message("user", ("now", "", File("aGk=", "a.txt"), DataPart({"a": 1}))),
        )
    )
    body = sent(ask)
    assert (body["method"], body["id"], body["params"]["sessionId"]) == (
        "message/send",
        "t-1",
        "s-1",
    )
    message = body["params"]["message"]
    assert (message["messageId"], message["role"]) == ("t-1", "user")
    assert message["parts"] == [
        {"type": "data", "data": {"role": "user", "text": "before"}},
        {"type": "data", "data": {"toolCallId": "c1", "toolId": "look", "arguments": {"q": 1}}},
        {"type": "data", "data": {"toolCallId": "c1", "toolId": "look", "result": {"hits": 3}}},
        {"type": "data", "data": {"toolCallId": "c2", "toolId": "look", "arguments": {}}},
        {"type": "data", "data": {"toolCallId": "c2", "toolId": "look", "result": "no json"}},
        {"type": "data", "data": {"role": "agent", "text": "yes"}},
        {"type": "text", "text": "now"},
        {"type": "file", "file": {"name": "a.txt", "bytes": "aGk="}},
        {"type": "data", "data": {"a": 1}},
    ]


def test_a_stream_is_asked_for_by_its_method_and_a_session_may_be_none() -> None:
    body = sent(Ask(messages=(Message("user", ("hi",)),)), session=None, stream=True)
    assert body["method"] == "message/stream"
    assert "sessionId" not in body["params"]
    assert wire.path_of("echo") == "/agents-api/v1/agent/echo"


@given(
    st.text(min_size=1, max_size=20).filter(str.strip),
    st.lists(st.text(max_size=10).filter(str.strip), max_size=3),
)
def test_what_is_written_is_read_by_the_other_side_as_the_same(
    text: str, before: list[str]
) -> None:
    messages = [Message("user", (each,)) for each in before]
    params = sent(Ask(messages=(*messages, Message("user", (text,)))))["params"]
    found = read_params(params)
    assert (found.message, found.history) == (
        text.strip(),
        tuple(("user", each) for each in before),
    )
    assert found.run_id == "t-1"


@pytest.mark.parametrize(("value", "payload"), [(None, None), ("Graz", {"value": "Graz"})])
def test_a_decision_names_its_action_and_who_decides(value: object, payload: object) -> None:
    answer = Resolution(outcome="accepted", value=value)
    body = json.read_object(wire.write_decision("a-1", answer, resolver="user:7", name="t/i"))
    assert body["method"] == "agents/resolve-pending-action"
    expected = {"action_id": "a-1", "decision": "accepted", "resolver": "user:7"}
    assert body["params"] == (expected if payload is None else {**expected, "payload": payload})


# ------------------------------------------------------------------ answers


def task(*parts: Any, state: str = "completed", **metadata: Any) -> dict[str, Any]:
    message = {"role": "agent", "parts": list(parts)}
    return {"id": "r", "status": {"state": state, "message": message}, "metadata": metadata}


def read(result: object, **more: Any) -> list[Event]:
    frame = {"jsonrpc": "2.0", "id": 1, "result": result}
    if more:
        return [*wire.read_frame(frame, currency="credits", **more)]
    return wire.read_answer(json.write(frame), currency="credits")


TEXT = {"type": "text", "text": "hello"}
WANTED = {"type": "data", "data": {"toolCallId": "c1", "toolId": "look", "arguments": {}}}


def test_a_task_is_its_parts_its_use_and_its_end() -> None:
    usage = {"input_tokens": 3, "cost": "0.5", "run_cost": "1", "currency": "credits"}
    assert read(task(TEXT, {"type": "data", "data": [1]}, usage=usage)) == [
        Text("hello"),
        Data([1]),
        Usage(3, None, 500_000, 1_000_000, "credits"),
        Done(),
    ]


def test_what_a_stream_has_told_is_not_told_again() -> None:
    two = ({"type": "text", "text": "he"}, {"type": "text", "text": "llo"}, WANTED)
    assert read(task(*two), spoken=3, called={"c1"}) == [Text("lo"), Done()]
    assert read(task(*two), spoken=9) == [ToolCall("c1", "look", "{}"), Done()]


def test_a_tool_that_we_are_to_run_is_an_end() -> None:
    assert read(task(WANTED, state="input-required")) == [
        ToolCall("c1", "look", "{}"),
        Done("tool_calls"),
    ]


def test_who_waits_is_no_failure() -> None:
    asked = Interrupt(kind="approval", message="Publish?", id="i", state="s")
    envelopes = write_envelopes(Waiting((asked,)), "t", created=None)
    parts = [{"type": "data", "data": each} for each in envelopes]
    (end,) = read(task({"type": "text", "text": "Publish?"}, *parts, state="input-required"))
    assert isinstance(end, Waiting)
    assert end.interrupts[0].message == "Publish?"
    words, end = read(task({"type": "text", "text": "So far."}, *parts, state="input-required"))
    assert words == Text("So far.")
    kept = {"type": "data", "data": {"other": 1}}
    first, *_ = read(task(kept, *parts, state="input-required"))
    assert first == Data({"other": 1})


@pytest.mark.parametrize(
    ("state", "metadata", "words"),
    [
        ("completed", {"run_outcome": {"status": "failed"}}, "not been completed"),
        ("failed", {}, "not been completed"),
        ("working", {}, "does not name"),
        ("input-required", {"run_outcome": 7}, "does not name"),
    ],
)
def test_a_run_that_has_not_ended_well_has_failed(
    state: str, metadata: dict[str, Any], words: str
) -> None:
    with pytest.raises(ProviderError, match=words):
        read(task(TEXT, state=state, **metadata))


def test_what_came_of_an_action_is_data_or_a_task() -> None:
    assert read({"action_id": "a", "result": None}) == [Done()]
    assert read({"action_id": "a", "result": {"rows": 1}}) == [Data({"rows": 1}), Done()]
    assert read({"action_id": "a", "result": task(TEXT)}) == [Text("hello"), Done()]


@pytest.mark.parametrize("body", [b"no", b"[]", b"{}", b'{"result": 7}'])
def test_an_answer_that_is_none_has_failed(body: bytes) -> None:
    with pytest.raises(ProviderError):
        wire.read_answer(body, currency="credits")


@pytest.mark.parametrize(
    ("error", "kind", "word"),
    [
        (
            {"code": -32603, "data": {"code": "agents_chat_no_handler"}},
            PeerRefused,
            "agents_chat_no_handler",
        ),
        ({"code": -32602, "message": "their words"}, PeerRefused, "jsonrpc_32602"),
        ({"code": 7, "data": {"code": "Not A Word"}}, PeerRefused, "unrecognised"),
        ("broken", PeerRefused, "unrecognised"),
    ],
)
def test_an_error_keeps_words_that_we_know(
    error: object, kind: type[CarnetError], word: str
) -> None:
    with pytest.raises(kind) as raised:
        wire.read_answer(json.write({"error": error}), currency="credits")
    assert raised.value.facts["peer_code"] == word
    assert "their words" not in str(raised.value)


def test_a_run_that_failed_there_was_run() -> None:
    error = {"code": -32603, "data": {"run_outcome": {"status": "failed"}}}
    with pytest.raises(ProviderError):
        wire.read_answer(json.write({"error": error}), currency="credits")


@pytest.mark.parametrize(
    ("value", "usage"),
    [
        (None, None),
        ({}, None),
        ({"input_tokens": True, "output_tokens": -1}, None),
        ({"output_tokens": 4}, Usage(None, 4, None, None, None)),
        ({"input_tokens": 1, "cost": "1", "currency": "euros"}, Usage(1, None, None, None, None)),
        ({"input_tokens": 1, "cost": 7, "currency": "credits"}, Usage(1, None, None, None, None)),
        (
            {"input_tokens": 1, "cost": "much", "currency": "credits"},
            Usage(1, None, None, None, None),
        ),
    ],
)
def test_use_is_read_in_our_currency_or_without_money(value: object, usage: Usage | None) -> None:
    assert wire.read_usage(value, "credits") == usage


def refusal(status: int, body: object = None, **more: Any) -> CarnetError:
    given: dict[str, Any] = {"retry_after": None, "date": None, **more}
    return wire.read_refusal(status, b"no" if body is None else json.write(body), **given)


def test_a_status_is_a_refusal_with_its_word() -> None:
    assert isinstance(refusal(302), ProviderError)
    forbidden = refusal(403, {"code": "agents_chat_jsonrpc_forbidden"})
    assert isinstance(forbidden, PeerRefused)
    assert forbidden.facts["peer_code"] == "agents_chat_jsonrpc_forbidden"
    assert (
        "peer_code" not in refusal(403).facts or refusal(403).facts["peer_code"] == "unrecognised"
    )
    busy = refusal(429, {"code": "rate_limited"}, retry_after="7")
    assert isinstance(busy, PeerBusy)
    assert (busy.retry_after, busy.facts["peer_code"]) == (7, "rate_limited")
    assert not isinstance(refusal(500, {"code": "x"}), PeerRefused)


@pytest.mark.parametrize(
    "code", ["datamachine_chain_depth_exceeded", "agents_api_chain_depth_exceeded"]
)
def test_a_chain_that_is_too_deep_there_is_final(code: str) -> None:
    data = {"chain_depth": 3, "ceiling": 3}
    error = refusal(429, {"code": code, "data": data})
    assert isinstance(error, DepthExceeded)
    assert (error.facts["observed"], error.facts["limit"]) == (3, 3)
    assert isinstance(refusal(429, {"code": code, "data": {"ceiling": "3"}}), DepthExceeded)


@given(st.dictionaries(WORDS | st.sampled_from(["result", "error", "status", "metadata"]), VALUES))
def test_no_answer_breaks_the_reader(frame: dict[str, Any]) -> None:
    with pytest.raises(CarnetError):
        wire.read_answer(json.write(frame), currency="credits")


@given(VALUES)
def test_no_task_breaks_the_reader(value: Any) -> None:
    for result in (value, {"status": value, "metadata": value}, task(value, usage=value)):
        try:
            events = read(result)
        except CarnetError:
            continue
        assert isinstance(events[-1], Done | Waiting)
