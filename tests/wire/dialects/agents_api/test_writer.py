"""Answers of agents-api, whole and streamed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.call import Ask
from carnet.core.messages.events import (
    Data,
    Done,
    Event,
    Failed,
    Text,
    ToolCall,
    Usage,
    Waiting,
)
from carnet.core.messages.interrupt import Interrupt
from carnet.errors import Internal, ProviderError, RateLimited
from carnet.wire.dialects.agents_api import DIALECT, HTTP_DIALECT
from carnet.wire.dialects.agents_api.client import read_answer
from carnet.wire.dialects.agents_api.form import PLAIN, RunForm, read_form
from carnet.wire.dialects.agents_api.stream import RunReader
from carnet.wire.dialects.agents_api.writer import RunWriter, deltas_of
from tests.wire.dialects.scene import GATEWAY, call

ASKED = Waiting((Interrupt(kind="approval", message="Publish?", id="int_1", state="s"),))
USED = Usage(3, 4, 200, None, "credits")


def writer(*, rpc: bool = True, **form: Any) -> RunWriter:
    ask = Ask(messages=(), context="s-1", form=RunForm(**form).kept())
    return (DIALECT if rpc else HTTP_DIALECT).writer(call(ask, task="task-1"), GATEWAY)


def whole(*events: Event, **more: Any) -> Any:
    return json.loads(writer(**more).whole(events))


def test_an_answer_is_a_task_in_the_frame_of_its_request() -> None:
    frame = whole(Text("hi"), USED, Done(), id=7, run="run-1")
    assert (frame["jsonrpc"], frame["id"]) == ("2.0", 7)
    task = frame["result"]
    assert (task["id"], task["sessionId"], task["status"]["state"]) == ("run-1", "s-1", "completed")
    assert task["status"]["message"]["messageId"] == "run-1-message"
    assert task["metadata"]["usage"] == {
        "input_tokens": 3,
        "output_tokens": 4,
        "cost": "0.0002",
        "currency": "credits",
    }
    assert whole(Done())["result"]["id"] == "run_task-1"


def test_a_tool_that_the_caller_is_to_run_leaves_the_run_incomplete() -> None:  # W52
    wanted = ToolCall("c1", "look", "{}")
    task = whole(wanted, Done("tool_calls"))["result"]
    assert task["status"]["state"] == "input-required"
    assert task["metadata"]["run_outcome"]["status"] == "runtime_tool_pending"
    own = ToolCall("c1", "look", "{}", is_own=True)
    assert whole(own, Done("tool_calls"))["result"]["status"]["state"] == "completed"


def test_what_a_run_waits_for_stands_in_its_answer() -> None:  # W46
    task = whole(Text("So far."), Data({"a": 1}), ASKED)["result"]
    text, data, envelope = task["status"]["message"]["parts"]
    assert (text["text"], data["data"]) == ("So far.", {"a": 1})
    assert envelope["data"]["payload"]["action_id"] == "task-1.int_1"
    outcome = task["metadata"]["run_outcome"]
    assert (outcome["status"], outcome["completed"]) == ("approval_required", False)
    reply = writer().waiting(ASKED, USED, "")
    found = json.loads(reply.body)["result"]
    assert (reply.status, found["status"]["message"]["parts"][0]["text"]) == (200, "Publish?")
    partial = json.loads(writer().waiting(ASKED, None, "So far.").body)["result"]
    assert partial["status"]["message"]["parts"][0]["text"] == "So far."


def test_the_output_of_a_chat_has_its_own_form() -> None:
    output = whole(Text("hi"), Data({"a": 1}), Done(), rpc=False)
    assert (output["reply"], output["session_id"], output["completed"]) == ("hi", "s-1", True)
    assert output["parts"] == [{"type": "data", "data": {"a": 1}}]
    waits = whole(ASKED, rpc=False)
    assert (waits["status"], len(waits["messages"])) == ("approval_required", 1)
    assert "parts" not in waits


@pytest.mark.parametrize("rpc", [True, False])
def test_what_came_of_a_decision_is_told_with_it(rpc: bool) -> None:  # noqa: FBT001
    found = whole(Text("hi"), Done(), rpc=rpc, action="task-1.int_1", decision="accepted")
    decided = found["result"] if rpc else found
    assert (decided["action_id"], decided["decision"]) == ("task-1.int_1", "accepted")
    assert decided["result"]["status"]["state"] == "completed"


def test_a_failure_is_a_frame_and_over_http_a_status() -> None:
    failed = Failed(RateLimited.code, {"retry_after": 7})
    reply = writer(id="r").refusal(failed, USED)
    error = json.loads(reply.body)["error"]
    assert (reply.status, error["code"]) == (200, -32603)
    assert error["data"]["run_outcome"]["status"] == "failed"
    assert error["data"]["usage"]["input_tokens"] == 3
    assert error["data"]["run"] == "conv_1"
    bare = writer(rpc=False).refusal(Failed(ProviderError.code), None)
    assert bare.status == ProviderError.status
    assert json.loads(bare.body)["data"]["status"] == ProviderError.status
    late = writer(rpc=False).refusal(failed, None)
    assert (b"retry-after" in dict(late.headers)) == (failed.error().retry_after is not None)


def test_the_fields_of_an_answer_name_the_run() -> None:
    fields = dict(writer().headers(stream=False))
    assert fields[b"x-tangle-runid"] == b"conv_1"
    assert fields[b"content-type"] == b"application/json"
    assert dict(writer().headers(stream=True))[b"x-accel-buffering"] == b"no"


def test_a_stream_is_deltas_and_one_last_frame() -> None:
    written = writer(id=1)
    first = written.write(
        [Text("he"), Text("llo"), ToolCall("tc1", "search", "{}", 2, is_own=True)]
    )
    assert first.count(b"message/delta") == 4
    assert b"message/delta" not in written.write([Done()])
    quiet = writer(deltas=False)
    assert quiet.write([Text("hi")]) == b""
    assert b'"hi"' in quiet.write([Done()])
    failing = writer()
    failing.write([Text("hi"), USED])
    last = failing.write([Failed(ProviderError.code)])
    assert b'"error"' in last
    assert b'"usage"' in last
    assert b'"usage"' not in writer().write([Failed(ProviderError.code)])


def test_the_delta_of_a_tool_has_its_words() -> None:  # W53
    name, arguments = deltas_of(ToolCall("tc1", "search", "{}", 2))
    assert name == {
        "deltaType": "tool_name",
        "content": "search",
        "toolCallId": "tc1",
        "toolCallName": "search",
        "toolCallIndex": 2,
    }
    assert arguments["deltaType"] == "tool_argument"
    assert deltas_of(ToolCall("tc1", "search", "")) == [{**name, "toolCallIndex": 0}]
    assert deltas_of(Data(1)) == []


def test_what_cannot_be_is_our_own_fault() -> None:
    with pytest.raises(Internal):
        DIALECT.writer(call(), GATEWAY)
    with pytest.raises(Internal):
        whole(Text("hi"))


EVENTS = st.lists(
    st.text(min_size=1, max_size=8).map(Text)
    | st.integers(0, 9).map(lambda n: Data({"n": n}))
    | st.integers(0, 9).map(lambda n: ToolCall(f"c{n}", "own", '{"a":1}', is_own=True)),
    max_size=6,
    unique_by=lambda event: event.id if isinstance(event, ToolCall) else id(event),
)


@given(EVENTS)
def test_whole_or_streamed_the_other_side_reads_the_same_words(events: list[Event]) -> None:
    def spoken(found: list[Event]) -> tuple[str, list[Event]]:
        text = "".join(event.text for event in found if type(event) is Text)
        return text, [event for event in found if type(event) is Data]

    read = read_answer(writer().whole([*events, Done()]), currency="credits")
    reader = RunReader(currency="credits")
    stream = [*reader.feed(writer().write([*events, Done()])), *reader.close()]
    assert spoken(read) == spoken(stream) == spoken(events)
    own = [event for event in events if type(event) is ToolCall]
    assert [event for event in stream if type(event) is ToolCall] == own


@given(
    st.builds(
        RunForm,
        id=st.none() | st.integers(0, 9) | st.text(max_size=4),
        run=st.none() | st.text(max_size=4),
        deltas=st.booleans(),
        action=st.none() | st.text(max_size=4),
        decision=st.none() | st.sampled_from(["accepted", "rejected"]),
        resolved=st.booleans(),
    )
)
def test_a_form_that_is_kept_is_read_as_the_same(form: RunForm) -> None:
    assert read_form(form.kept()) == form
    assert read_form(None) is read_form({}) is PLAIN
