"""The stream that a person's client reads."""

import json
from typing import Any

import pytest

from carnet.core.call import Thread
from carnet.core.messages.events import (
    CONTEXT_WINDOW,
    RELAYED,
    Data,
    Done,
    Event,
    Extension,
    Failed,
    Interrupted,
    Resolved,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    Waiting,
)
from carnet.core.messages.interrupt import Interrupt, Resolution
from carnet.wire.dialects.engine_chat.client_stream import ClientWriter
from carnet.wire.dialects.engine_chat.writer import MOST_CHARACTERS

THREAD = Thread(conversation="cnv_1", answer="msg_1")
NAMED = {"conversation_id": "cnv_1", "message_id": "msg_1"}
ASKED = Interrupt(
    kind="payment", id="int_1", message="Two cents", amount=20_000, currency="credits"
)
ANSWERED = {"request_id": "int_1", "by": "alice"}
EDITED = {"edited": True, "arguments": {"a": 2}}
USED = {"prompt_tokens": 3, "completion_tokens": 5, "cost": "0.01", "currency": "credits"}


def frames(*events: Event) -> list[tuple[str, dict[str, Any]]]:
    written = ClientWriter(THREAD, "credits").write(events)
    found: list[tuple[str, dict[str, Any]]] = []
    for block in written.decode().split("\n\n")[:-1]:
        name, data = block.split("\n")
        found.append((name.removeprefix("event: "), json.loads(data.removeprefix("data: "))))
    return found


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (Text("hi"), [("text-delta", {"delta": "hi"})]),
        (Data({"a": 1}), [("text-delta", {"delta": '{"a":1}'})]),
        (
            ToolCall("t1", "read", '{"x":1}', label="Reading"),
            [("tool-call", {"id": "t1", "name": "read", "input": {"x": 1}, "label": "Reading"})],
        ),
        (ToolCall("t1", "read", "no"), [("tool-call", {"id": "t1", "name": "read", "input": {}})]),
        (
            ToolResult("t1", "denied", "no"),
            [("tool-result", {"id": "t1", "status": "denied", "output": "no"})],
        ),
        (
            Resolved("int_1", Resolution(outcome="rejected", resolver="alice")),
            [("approval-result", {**ANSWERED, "decision": "denied", "edited": False})],
        ),
        (
            Resolved("int_1", Resolution(outcome="accepted", resolver="alice", value={"a": 2})),
            [("approval-result", {**ANSWERED, "decision": "approved", **EDITED})],
        ),
        (
            Extension(RELAYED, {"author": "critic", "code": None}),
            [("relay", {"message_id": "msg_1.1", "author": "critic", "code": None})],
        ),
        (Extension("other", 1), []),
    ],
)
def test_an_event_is_a_frame_in_the_spelling_of_clients(
    event: Event, expected: list[tuple[str, dict[str, Any]]]
) -> None:
    assert frames(event) == expected


def test_an_end_names_the_conversation_and_what_was_used() -> None:
    usage = Usage(3, 5, 10_000)
    (done,) = frames(usage, Done("length"))
    assert done == ("done", {**NAMED, "finish_reason": "length", "usage": USED})
    (warned,) = frames(Extension(CONTEXT_WINDOW, {"ratio": 0.9}), Done())
    assert warned[1]["context_window"] == {"ratio": 0.9}
    (unknown,) = frames(Done())
    assert unknown[1]["usage"]["cost"] is None


def test_what_is_waited_for_stands_before_the_end() -> None:
    approval = Interrupt(
        kind="approval", id="int_2", message="May I?", more={"tool": "mail", "arguments": {"a": 1}}
    )
    payment, asked, done = frames(Waiting((ASKED, approval)))
    assert payment == (
        "approval-request",
        {
            "request_id": "int_1",
            "tool_name": None,
            "summary": "Two cents",
            "kind": "payment",
            "amount": "0.02",
            "currency": "credits",
        },
    )
    assert (asked[1]["tool_name"], asked[1]["arguments"]) == ("mail", {"a": 1})
    assert done[1]["finish_reason"] == "approval_required"


def test_a_question_that_stands_in_the_stream_is_not_asked_twice() -> None:
    assert [name for name, _ in frames(Interrupted(ASKED))] == ["approval-request"]
    names = [name for name, _ in frames(Interrupted(ASKED), Waiting((ASKED,)))]
    assert names == ["approval-request", "done"]


def test_an_error_has_our_sentence_and_names_the_message() -> None:
    (error,) = frames(Failed("provider_error"))
    assert error[0] == "error"
    assert error[1].items() >= {"code": "provider_error", "retryable": True, **NAMED}.items()
    (paid,) = frames(Failed("payment_wanted"))
    assert paid[1]["code"] == "payment_required"


def test_a_long_text_is_spread_over_several_frames() -> None:
    found = frames(Text("x" * (MOST_CHARACTERS + 1)))
    assert [len(data["delta"]) for _, data in found] == [MOST_CHARACTERS, 1]


def test_every_answer_is_a_stream_that_names_its_conversation() -> None:
    writer = ClientWriter(THREAD, "credits")
    for reply in (
        writer.refusal(Failed("provider_error"), None),
        writer.waiting(Waiting((ASKED,)), Usage(), ""),
    ):
        fields = dict(reply.headers)
        assert reply.status == 200
        assert (fields[b"x-conversation-id"], fields[b"x-message-id"]) == (b"cnv_1", b"msg_1")
        assert fields[b"content-type"].startswith(b"text/event-stream")
    assert writer.whole([Text("hi")]) == writer.write([Text("hi")])
