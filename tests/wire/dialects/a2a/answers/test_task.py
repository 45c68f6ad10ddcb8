"""A task as it is shown from its record, and questions about tasks answered."""

from typing import Any

import pytest

from carnet.core.messages.events import Done, Failed, Text
from carnet.core.messages.interrupt import Interrupt
from carnet.errors import RouteNotFound
from carnet.wire.dialects.a2a import DIALECT, HTTP_DIALECT
from carnet.wire.dialects.a2a.answers.task import moment, task_of
from carnet.wire.dialects.a2a.extensions.own import CHAIN_URI, RECEIPT_URI, USAGE_URI
from carnet.wire.dialects.a2a.extensions.questions.kagent import KAGENT_URI
from carnet.wire.dialects.a2a.form import Form
from carnet.wire.dialects.dialect import (
    AgentList,
    CallbackList,
    CallbackView,
    Question,
    QuestionResult,
    Removed,
    TaskPage,
    TaskQuestion,
)
from carnet.wire.grammar import json
from tests.wire.dialects.a2a.scene import MESSAGE
from tests.wire.dialects.scene import GATEWAY, task, turn

ASKED = Interrupt(kind="approval", id="int_1", state="s", message="May I?")
REQUEST = json.write({"message": MESSAGE, "metadata": {}})


def shown(form: Form | None = None, **fields: Any) -> dict[str, Any]:
    return task_of(task(context="c", **fields), form or Form())


def test_a_task_that_has_ended_shows_what_was_said_and_used() -> None:
    ended = turn(state="done", cost=5, run_cost=5, ended=1_700_000_001_000_000)
    found = shown(turn=ended, events=(Text("hi"), Done()), request=REQUEST, receipt="eyJ")
    assert (found["id"], found["contextId"]) == ("t-1", "c")
    assert found["status"] == {
        "state": "TASK_STATE_COMPLETED",
        "timestamp": "2023-11-14T22:13:21.000Z",
    }
    assert found["artifacts"] == [{"artifactId": "answer", "parts": [{"text": "hi"}]}]
    assert found["history"] == [{**MESSAGE, "taskId": "t-1", "contextId": "c"}]
    assert found["metadata"] == {
        CHAIN_URI: {"run": "conv_1", "turn": "turn_1"},
        USAGE_URI: {"cost": "0.000005", "currency": "credits", "runCost": "0.000005"},
        RECEIPT_URI: {"receipt": "eyJ"},
    }


def test_what_is_not_wanted_is_left_out() -> None:
    found = shown(Form(history=0, artifacts=False), events=(Text("hi"),), request=REQUEST)
    assert {*found} == {"id", "contextId", "status", "metadata"}
    assert moment(None) is None
    for lost in (b"", b"{", b"[]", b'{"message": 7}'):
        assert "history" not in shown(request=lost)


@pytest.mark.parametrize(
    ("fields", "state", "has_message"),
    [
        ({"turn": turn(state="queued")}, "TASK_STATE_SUBMITTED", False),
        ({"turn": turn(state="running"), "events": (Text("a"),)}, "TASK_STATE_WORKING", False),
        (
            {"turn": turn(state="waiting"), "interrupts": (ASKED,)},
            "TASK_STATE_INPUT_REQUIRED",
            True,
        ),
        ({"turn": turn(state="failed", code="cancelled")}, "TASK_STATE_CANCELED", True),
        ({"turn": turn(state="unknown", code="outcome_unknown")}, "TASK_STATE_FAILED", True),
        (
            {"turn": turn(state="failed", code="rejected"), "events": (Failed("rejected"),)},
            "TASK_STATE_REJECTED",
            True,
        ),
        ({"turn": turn(state="unknown")}, "TASK_STATE_FAILED", False),
    ],
)
def test_every_state_is_shown(fields: dict[str, Any], state: str, has_message: bool) -> None:  # noqa: FBT001  pytest passes it
    status = shown(Form(extensions=(KAGENT_URI,)), **fields)["status"]
    assert status["state"] == state
    assert ("message" in status) is has_message
    if "interrupts" in fields:
        assert KAGENT_URI in status["message"]["metadata"]


def answer(result: QuestionResult, form: Form | None = None, http: bool = False) -> Any:  # noqa: FBT001, FBT002  as above
    question = TaskQuestion(about="task", form=(form or Form(id=7)).kept())
    dialect = HTTP_DIALECT if http else DIALECT
    return json.read(dialect.tell("x", result, question).body)


def test_the_answers_to_questions_are_told() -> None:
    first = task(context="c", updated=12, turn=turn(n=5))
    assert answer(first)["result"]["id"] == "t-1"
    page = TaskPage(tasks=(first,), size=1, total=9, following=(12, 5))
    found = answer(page)["result"]
    assert (found["nextPageToken"], found["pageSize"], found["totalSize"]) == ("12-5", 1, 9)
    last = answer(TaskPage(tasks=(task(context="c"),), size=1, total=1))
    assert last["result"]["nextPageToken"] == ""
    empty = TaskPage(tasks=(), size=1, total=1, following=(0, 7))
    assert answer(empty)["result"]["nextPageToken"] == "0-7"
    assert answer(Removed())["result"] == {}
    assert answer(Removed(), Form(version="0.3", id=7)) == {
        "jsonrpc": "2.0",
        "id": 7,
        "result": None,
    }


def test_where_a_task_is_told_of_is_shown_without_its_secret() -> None:
    view = CallbackView(task="t", name="n", url="https://x/", token="seen", scheme="Bearer")
    bare = CallbackView(task="t", name="n", url="https://x/")
    written = {"id": "n", "taskId": "t", "url": "https://x/"}
    full = {**written, "token": "seen", "authentication": {"scheme": "Bearer"}}
    assert answer(view, Form(binding="http"), http=True) == full
    listed = answer(CallbackList(callbacks=(view, bare)), Form(binding="http"), http=True)
    assert listed == {"configs": [full, written]}


def test_what_has_no_form_here_is_not_told() -> None:
    with pytest.raises(RouteNotFound):
        DIALECT.tell("x", AgentList(names=(), gateway=GATEWAY), Question(about="agents"))
