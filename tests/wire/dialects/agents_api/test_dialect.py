"""agents-api as two objects: what each tells, and how each refuses."""

import json
from typing import Any

import pytest

from carnet import errors
from carnet.core.call import Ask, Claim
from carnet.core.messages.events import Done, Failed, Text, ToolCall, Waiting
from carnet.core.messages.interrupt import Interrupt, InterruptRecord
from carnet.errors import (
    BY_CODE,
    CarnetError,
    DepthExceeded,
    InvalidRequest,
    OperationUnsupported,
    RouteNotFound,
    TaskNotFound,
    TokenMissing,
)
from carnet.wire.dialects.agents_api import DIALECT, HTTP_DIALECT
from carnet.wire.dialects.agents_api.dialect import SPOKEN
from carnet.wire.dialects.agents_api.form import RunForm
from carnet.wire.dialects.agents_api.outcome import outcome_of
from carnet.wire.dialects.agents_api.refusals import row_of
from carnet.wire.dialects.dialect import AgentList, Question, Removed, TaskQuestion
from tests.wire.dialects.scene import GATEWAY, arrival, call, task

ASKED = Interrupt(kind="approval", message="Publish?", id="int_1", state="the-state")
RECORD = InterruptRecord(interrupt=ASKED, status="open", expires=0)
DECIDED = InterruptRecord(interrupt=ASKED, status="resolved", expires=0, outcome="accepted")


def claim(**form: Any) -> Claim:
    ask = Ask(messages=(), form=RunForm(**form).kept())
    return Claim(dialect="agents_api", agent="echo", ask=ask, digest=b"", request=b"")


def test_a_decision_answers_the_interrupt_that_its_action_names() -> None:
    given = claim(action="task-1.int_1", decision="accepted", value="Graz")
    answer = DIALECT.answer_of(given, (RECORD,))
    assert (answer.state, answer.resolution.outcome, answer.resolution.value) == (
        *("the-state", "accepted", "Graz"),
    )
    for wrong in (claim(action="task-1.other", decision="accepted"), claim(action="task-1.int_1")):
        with pytest.raises(OperationUnsupported):
            DIALECT.answer_of(wrong, (RECORD,))


def test_the_same_decision_was_made_before_or_it_was_not() -> None:
    given = claim(action="task-1.int_1", decision="accepted")
    assert DIALECT.is_answered(given, (DECIDED,))
    assert not DIALECT.is_answered(given, (RECORD,))
    assert not DIALECT.is_answered(claim(action="task-1.int_1", decision="rejected"), (DECIDED,))
    with pytest.raises(TaskNotFound):
        DIALECT.is_answered(claim(action="task-1.other"), (DECIDED,))


def question(**form: Any) -> TaskQuestion:
    return TaskQuestion(about="task", task="t-1", form=RunForm(**form).kept())


def shown(result: Any, asked: Question, *, rpc: bool = True) -> Any:
    reply = (DIALECT if rpc else HTTP_DIALECT).tell("rpc", result, asked)
    assert reply.status == 200
    page = json.loads(reply.body)
    return page["result"]["action"] if rpc else page["action"]


def test_an_action_is_shown_while_it_waits_and_where_wanted_afterwards() -> None:
    view = task(interrupts=(ASKED,), answered=(DECIDED,))
    wanted = question(action="t-1.int_1")
    assert shown(view, wanted)["status"] == "pending"
    decided = task(answered=(DECIDED,))
    assert shown(decided, wanted, rpc=False) is None
    resolved = question(action="t-1.int_1", resolved=True)
    assert shown(decided, resolved)["status"] == "accepted"
    assert shown(decided, question(action="t-1.other", resolved=True)) is None
    assert shown(task(interrupts=(ASKED,)), question(action="t-1.other")) is None
    assert shown(Removed(), wanted) is None


def test_nothing_else_is_told() -> None:
    with pytest.raises(RouteNotFound):
        DIALECT.tell("rpc", task(), Question(about="task"))
    with pytest.raises(RouteNotFound):
        DIALECT.tell("rpc", AgentList(names=(), gateway=GATEWAY), question(action="t-1.x"))
    with pytest.raises(RouteNotFound):
        DIALECT.accepted(call())
    assert DIALECT.proof(arrival(DIALECT, "rpc")) is None
    assert SPOKEN.name == DIALECT.name
    assert (DIALECT.roots, HTTP_DIALECT.roots) == ((), ("/agents-api",))


def test_a_receipt_is_about_all_that_an_answer_is_made_of() -> None:
    found = DIALECT.result([Text("hi"), ToolCall("c1", "look", "{}", 5), Done()])
    assert found == DIALECT.result([Text("hi"), ToolCall("c1", "look", "{}", 0), Done()])
    assert found["parts"][0] == {"type": "text", "text": "hi"}


# ------------------------------------------------------------------ refusals


LEAVES = sorted(BY_CODE.values(), key=lambda kind: kind.code)


@pytest.mark.parametrize("kind", LEAVES, ids=lambda kind: kind.code)
def test_every_error_has_a_row(kind: type[CarnetError]) -> None:
    row = row_of(kind)
    assert row.code in {-32600, -32601, -32602, -32603}
    assert 400 <= row.status < 600
    assert row.word


def refuse(error: CarnetError, *, rpc: bool = True) -> tuple[int, dict[bytes, bytes], Any]:
    reply = (DIALECT if rpc else HTTP_DIALECT).refusal(error)
    return reply.status, dict(reply.headers), reply.body


def test_a_frame_tells_what_becomes_of_a_run_and_a_status_who_may_not() -> None:
    error = InvalidRequest("message", "must be there")
    error.request_id = "r-1"
    status, _, body = refuse(error)
    frame = json.loads(body)
    assert (status, frame["id"], frame["error"]["code"]) == (200, "r-1", -32602)
    assert frame["error"]["data"]["code"] == "agents_chat_jsonrpc_invalid_params"
    status, _, body = refuse(InvalidRequest("message", "must be there"), rpc=False)
    assert (status, json.loads(body)["code"]) == (400, "agents_frontend_chat_invalid_input")
    status, fields, body = refuse(TokenMissing())
    assert (status, fields[b"www-authenticate"]) == (401, b"Bearer")
    assert json.loads(body)["code"] == "agents_api_token_missing"


def test_an_error_of_the_frame_has_the_code_and_the_sentence_of_the_frame() -> None:
    frame = json.loads(refuse(InvalidRequest("jsonrpc", "x"))[2])["error"]
    assert (frame["code"], frame["message"]) == (-32600, "Request must be JSON-RPC 2.0.")
    unknown = InvalidRequest("method", "x")
    unknown.facts["method"] = "x/y"
    frame = json.loads(refuse(unknown)[2])["error"]
    assert (frame["code"], frame["message"]) == (-32601, 'Unknown JSON-RPC method "x/y".')


def test_a_word_of_the_dialect_comes_before_ours() -> None:
    error = InvalidRequest("decision", "x")
    error.facts["word"] = "agents_pending_action_invalid_decision"
    assert json.loads(refuse(error)[2])["error"]["data"]["code"] == error.facts["word"]


def test_a_chain_that_is_too_deep_is_told_in_the_words_of_the_reference_host() -> None:
    error = DepthExceeded(observed=17, limit=17)
    error.run = "root-1"
    status, _, body = refuse(error)
    data = json.loads(body)["data"]
    assert (status, data["chain_depth"], data["ceiling"]) == (429, 17, 17)
    assert (data["chain_root_request_id"], data["retry_after"]) == ("root-1", 60)


def test_who_must_wait_is_told_how_long_and_a_stream_tells_errors_in_itself() -> None:
    _, fields, _ = refuse(errors.RateLimited(retry_after=7))
    assert fields[b"retry-after"] == b"7"
    error = InvalidRequest("message", "must be there")
    error.in_stream = True
    status, fields, body = refuse(error)
    assert (status, fields[b"content-type"]) == (200, b"text/event-stream; charset=utf-8")
    assert body.startswith(b"data: {")


# ------------------------------------------------------------------ outcomes


@pytest.mark.parametrize(
    ("end", "status", "reason", "retryable"),
    [
        (Done(), "completed", "natural", False),
        (Done("tool_calls"), "runtime_tool_pending", "runtime_tool_pending", False),
        (Waiting((ASKED,)), "approval_required", "approval_required", False),
        (Failed("cancelled"), "cancelled", "cancelled", False),
        (Failed("bridge_depth_exceeded"), "budget_exceeded", "budget_exceeded", True),
        (Failed("provider_error"), "failed", "provider_error", True),
        (Failed("internal"), "failed", "failed", True),
        (Failed("nobody-knows"), "failed", "failed", True),
    ],
)
def test_every_end_has_its_words(end: Any, status: str, reason: str, retryable: bool) -> None:  # noqa: FBT001
    assert outcome_of(end) == {
        "status": status,
        "completed": status == "completed",
        "stop_reason": reason,
        "retryable": retryable,
    }
