"""Approvals and questions in the words of kagent."""

from typing import Any

import pytest

from carnet.core.messages.interrupt import MOST_DATA_BYTES, Interrupt, Resolution
from carnet.wire.dialects.a2a.extensions.questions.kagent import KAGENT_URI, answer, ask, reply
from carnet.wire.dialects.a2a.extensions.questions.state import write_state

TOOL = Interrupt(
    kind="approval",
    id="int_1",
    message="Delete it?",
    origin="@ops@globex.example",
    more={"tool": "delete_pod", "arguments": {"name": "web-1"}},
)
PAY = Interrupt(kind="payment", id="int_2", message="Pay.", amount=500_000, currency="credits")
INPUT = Interrupt(kind="input", id="int_3", message="Which?", options=("a", "b"))


def request(interrupts: list[Interrupt]) -> dict[str, Any]:
    written: dict[str, Any] = ask(interrupts)[KAGENT_URI]
    return written


def only(metadata: dict[str, Any]) -> Interrupt:
    reading = answer({KAGENT_URI: metadata}, "credits")
    assert reading is not None
    (asked,) = reading.interrupts
    return asked


def replied(state: str, **resolution: Any) -> dict[str, Any]:
    written = reply(state, Resolution(**resolution))
    assert written is not None
    payload: dict[str, Any] = written[KAGENT_URI]
    return payload


def test_one_thing_is_asked_at_a_time_what_has_to_be_approved_first() -> None:
    asked = request([INPUT, TOOL, PAY])
    assert asked["type"] == "tool_approval_request"
    assert [tool["id"] for tool in asked["tools"]] == ["int_1"]
    assert asked["hint"] == "Delete it?"
    assert asked["nested"] == {"subagent_name": "@ops@globex.example"}


def test_a_tool_is_named_with_its_arguments_and_a_payment_with_its_amount() -> None:
    (tool,), (pay,) = (request([one])["tools"] for one in (TOOL, PAY))
    assert (tool["name"], tool["args"]) == ("delete_pod", {"name": "web-1"})
    assert (pay["name"], pay["args"]) == ("payment", {"amount": "0.5", "currency": "credits"})
    assert "nested" not in request([PAY])


def test_a_question_has_its_choices() -> None:
    assert request([INPUT]) == {
        "type": "ask_user_request",
        "id": "int_3",
        "questions": [{"question": "Which?", "choices": ["a", "b"], "multiple": False}],
    }
    assert only(request([INPUT])).options == ("a", "b")


def test_several_tools_are_answered_together() -> None:
    tools = [{"id": "int_1", "name": "a"}, {"id": "int_2", "name": "b"}]
    asked = only({"type": "tool_approval_request", "tools": tools})
    assert replied(asked.state, outcome="accepted", value="yes") == {
        "type": "tool_approval_response",
        "approvals": [{"id": "int_1", "approved": True}, {"id": "int_2", "approved": True}],
    }
    refused = replied(asked.state, outcome="rejected", value="no")["approvals"]
    assert refused[0] == {"id": "int_1", "approved": False, "rejection_reason": "no"}
    silent = replied(asked.state, outcome="rejected", value={"a": 1})["approvals"]
    assert silent[1] == {"id": "int_2", "approved": False}


@pytest.mark.parametrize(
    ("value", "texts"),
    [("a", ["a"]), (["a", "b"], ["a", "b"]), (None, []), (7, ["7"]), ({"x": 1}, ['{"x":1}'])],
)
def test_a_question_is_answered_in_texts(value: object, texts: list[str]) -> None:
    state = only(request([INPUT])).state
    assert replied(state, outcome="accepted", value=value)["answers"] == [{"answer": texts}]
    assert replied(state, outcome="rejected", value=value)["answers"] == [{"answer": []}]


def test_several_questions_are_answered_one_by_one_where_the_answer_says_how() -> None:
    questions = [{"question": "Who?"}, {"question": "When?"}]
    state = only({"type": "ask_user_request", "id": "q", "questions": questions}).state
    each = replied(state, outcome="accepted", value=["Ann", ["now", "later"]])["answers"]
    assert each == [{"answer": ["Ann"]}, {"answer": ["now", "later"]}]
    first = replied(state, outcome="accepted", value="Ann, now")["answers"]
    assert first == [{"answer": ["Ann, now"]}, {"answer": []}]


def test_arguments_too_long_to_be_kept_are_left_out() -> None:
    tools = [{"id": "t", "name": "write", "args": {"text": "x" * MOST_DATA_BYTES}}]
    assert only({"type": "tool_approval_request", "tools": tools}).more == {"tool": "write"}


def test_arguments_that_no_store_can_hold_are_left_out() -> None:
    tools = [{"id": "t", "name": "write", "args": {"text": "\0"}}]
    assert only({"type": "tool_approval_request", "tools": tools}).more is None


@pytest.mark.parametrize(
    "state", ["", "s3cret", write_state("kagent-question", ["q", 10**9]), "kagent-question.W10"]
)
def test_what_was_not_asked_so_is_not_answered_so(state: str) -> None:
    assert reply(state, Resolution(outcome="accepted")) is None
