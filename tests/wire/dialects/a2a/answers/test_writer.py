"""The answers to messages, in both bindings and both versions."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from carnet.core.call import Call
from carnet.core.messages.events import (
    MESSAGE,
    RECEIPT,
    Done,
    Event,
    Extension,
    Failed,
    Text,
    Usage,
    Waiting,
)
from carnet.core.messages.interrupt import Interrupt
from carnet.errors import Internal
from carnet.wire.dialects.a2a import DIALECT, HTTP_DIALECT
from carnet.wire.dialects.a2a.answers.writer import MessageWriter
from carnet.wire.dialects.a2a.extensions.datalayer import DATALAYER_URI
from carnet.wire.dialects.a2a.extensions.interrupt import INTERRUPT_URI
from carnet.wire.dialects.a2a.extensions.own import CHAIN_URI, RECEIPT_URI, USAGE_URI
from carnet.wire.dialects.a2a.form import Form
from carnet.wire.grammar.sse import SseReader
from tests.wire.dialects import scene
from tests.wire.dialects.a2a.scene import MESSAGE as SENT
from tests.wire.dialects.a2a.scene import call
from tests.wire.dialects.scene import GATEWAY, turn

ASKED = Interrupt(kind="approval", id="int_1", state="s", message="May I?")


def writer(made: Call | None = None) -> MessageWriter:
    return DIALECT.writer(made or call(), GATEWAY)


def result_in(body: bytes) -> dict[str, Any]:
    answer: dict[str, Any] = msgspec.json.decode(body)
    found: dict[str, Any] = answer["result"]
    return found


def whole(*events: Event, made: Call | None = None) -> dict[str, Any]:
    return result_in(writer(made).whole(events))


def frames(data: bytes) -> list[tuple[str | None, dict[str, Any]]]:
    return [(each.id, result_in(each.data.encode())) for each in SseReader().feed(data)]


def test_a_whole_answer_is_a_task() -> None:
    events = (Text("hi"), Usage(1, 2, 3), Extension(RECEIPT, "eyJ"), Done())
    task = whole(*events)["task"]
    assert (task["id"], task["contextId"]) == ("task_1", "ctx_1")
    assert task["status"] == {"state": "TASK_STATE_COMPLETED"}
    assert task["history"] == [{**SENT, "taskId": "task_1", "contextId": "ctx_1"}]
    assert {*task["metadata"]} == {CHAIN_URI, USAGE_URI, RECEIPT_URI}
    with pytest.raises(Internal):
        whole(Text("no end"))
    with pytest.raises(Internal):
        writer(scene.call())


def test_a_word_in_passing_is_a_message() -> None:
    message = whole(Text("hi"), Extension(MESSAGE, None), Done())["message"]
    assert message["parts"] == [{"text": "hi"}]
    assert message["contextId"] == "ctx_1"
    empty = whole(Extension(MESSAGE, None), Done())["message"]
    assert empty["parts"] == [{"text": ""}]


def test_the_fields_of_an_answer_name_the_run_and_what_is_active() -> None:
    form = Form(extensions=(DATALAYER_URI, "urn:unknown"), media="application/a2a+json")
    fields = dict(writer(call(form)).headers(stream=False))
    assert fields[b"x-tangle-runid"] == b"conv_1"
    assert fields[b"a2a-extensions"] == DATALAYER_URI.encode()
    assert fields[b"content-type"] == b"application/a2a+json"
    streamed = dict(writer().headers(stream=True))
    assert streamed[b"content-type"].startswith(b"text/event-stream")
    assert b"a2a-extensions" not in streamed


def test_an_answer_over_http_is_not_wrapped_and_a_former_one_is_told_as_such() -> None:
    events = (Text("hi"), Done())
    body = msgspec.json.decode(HTTP_DIALECT.writer(call(), GATEWAY).whole(events))
    assert "jsonrpc" not in body
    assert body["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    former = msgspec.json.decode(writer(call(Form(version="0.3", id="q"))).whole(events))
    assert (former["id"], former["result"]["kind"]) == ("q", "task")


def test_a_stream_begins_with_its_task_once() -> None:
    made = writer()
    first = frames(made.write([]))
    assert [name for name, _ in first] == ["1.0"]
    assert first[0][1]["task"]["status"]["state"] == "TASK_STATE_WORKING"
    more = frames(made.write([Text("a")]) + made.write([Waiting((ASKED,))]))
    assert [name for name, _ in more] == ["1.1", "1.2"]
    asked = more[-1][1]["statusUpdate"]["status"]["message"]["metadata"][INTERRUPT_URI]
    assert asked["interrupts"][0]["origin"] == "@echo@acme.example"
    queued = writer(call(record=turn(state="queued")))
    assert frames(queued.write([]))[0][1]["task"]["status"]["state"] == "TASK_STATE_SUBMITTED"


@pytest.mark.parametrize(
    ("seen", "names"),
    [
        (None, ["1.0", "1.1", "1.2"]),
        ("1.1", ["1.0", "1.2"]),
        ("2.1", ["1.0", "1.1", "1.2"]),
        ("1.x", ["1.0", "1.1", "1.2"]),
        ("1.²", ["1.0", "1.1", "1.2"]),
        ("1." + "9" * 20, ["1.0", "1.1", "1.2"]),
    ],
)
def test_who_was_away_says_which_frame_it_has_seen(seen: str | None, names: list[str]) -> None:
    made = writer(call(Form(seen=seen)))
    data = made.write([]) + made.write([Text("a")]) + made.write([Done()])
    assert [name for name, _ in frames(data)] == names


def test_a_task_that_failed_or_waits_is_an_answer() -> None:
    failed = writer().refusal(Failed("internal"), Usage(1))
    assert failed.status == 200
    task = result_in(failed.body)["task"]
    assert task["status"]["state"] == "TASK_STATE_FAILED"
    assert task["metadata"][USAGE_URI] == {"tokensIn": 1}
    bare = result_in(writer().refusal(Failed("internal"), None).body)["task"]
    assert USAGE_URI not in bare["metadata"]
    waits = writer().waiting(Waiting((ASKED,)), Usage(1), "so far")
    task = result_in(waits.body)["task"]
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert task["artifacts"][0]["parts"] == [{"text": "so far"}]
    silent = result_in(writer().waiting(Waiting((ASKED,)), None, "").body)["task"]
    assert "artifacts" not in silent


def test_a_task_that_was_taken_on_is_told_with_its_state() -> None:
    for state, word in (("queued", "TASK_STATE_SUBMITTED"), ("running", "TASK_STATE_WORKING")):
        reply = DIALECT.accepted(replace(call(), record=turn(state=state)))
        task = result_in(reply.body)["task"]
        assert (reply.status, task["status"]["state"]) == (200, word)
        assert task["status"]["timestamp"].endswith("Z")
