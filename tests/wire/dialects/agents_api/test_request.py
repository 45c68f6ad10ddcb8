"""Requests of agents-api, read into claims and questions."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carnet.core.call import ANY_AGENT, Claim
from carnet.errors import CarnetError, InvalidJson, InvalidRequest, PermissionMissing, RouteNotFound
from carnet.wire.dialects.agents_api import DIALECT, HTTP_DIALECT
from carnet.wire.dialects.agents_api.form import read_form
from carnet.wire.dialects.agents_api.request import (
    MOST_VALUE_BYTES,
    action_id,
    read_again,
    split_action,
)
from carnet.wire.dialects.dialect import Arrival, TaskQuestion
from tests.wire.dialects.agents_api.test_parts import VALUES, WORDS
from tests.wire.dialects.scene import arrival

HI = {"parts": [{"type": "text", "text": "hi"}]}


def rpc(body: object, *, name: str = "echo", **more: Any) -> Arrival:
    return arrival(DIALECT, "rpc", body=json.dumps(body).encode(), names={"name": name}, **more)


def over_http(way: str, body: object = None, **more: Any) -> Arrival:
    return arrival(HTTP_DIALECT, way, body=json.dumps(body).encode(), **more)


def frame(method: object = "message/send", **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def claim_of(came: Arrival) -> Claim:
    found = (DIALECT if came.way.name == "rpc" else HTTP_DIALECT).read(came)
    assert isinstance(found, Claim)
    return found


def question_of(came: Arrival) -> TaskQuestion:
    found = (DIALECT if came.way.name == "rpc" else HTTP_DIALECT).read(came)
    assert isinstance(found, TaskQuestion)
    return found


def refused_by(came: Arrival) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as refused:
        claim_of(came)
    return refused.value


@pytest.mark.parametrize("method", ["message/send", "tasks/send"])
def test_a_message_is_a_claim_that_is_run_once(method: str) -> None:
    fields = {"authorization": "Bearer ck_x"}
    came = rpc(frame(method, id="run-1", sessionId="s-1", message=HI), fields=fields)
    came.correlation = "req-1"
    found = claim_of(came)
    assert (found.dialect, found.agent, found.key) == ("agents_api", "echo", "agents_api/run-1")
    assert (found.ask.text, found.ask.context, found.ask.stream) == ("hi", "s-1", False)
    assert (found.exactly_once, found.correlation, came.request_id) == (True, "req-1", 1)
    assert found.authorization is not None
    assert found.authorization.reveal() == "Bearer ck_x"
    assert read_form(found.ask.form).run == "run-1"


@pytest.mark.parametrize("method", ["message/stream", "tasks/sendSubscribe"])
def test_a_stream_may_be_without_its_words_as_they_come(method: str) -> None:
    came = rpc({**frame(method, message=HI), "tokenStreaming": False})
    found = claim_of(came)
    assert found.ask.stream
    assert came.in_stream
    assert not read_form(found.ask.form).deltas
    assert found.key is None


def test_without_a_session_the_same_question_has_the_same_one_and_another_another() -> None:
    first, second = (claim_of(rpc(frame(message=HI))) for _ in range(2))
    assert first.ask.context == second.ask.context
    other = {"parts": [{"type": "text", "text": "ho"}]}
    assert claim_of(rpc(frame(message=other))).ask.context != first.ask.context


def test_what_was_recorded_is_read_as_the_same_claim() -> None:
    asked = claim_of(rpc(frame(id="run-1", sessionId="s", message=HI)))
    again = read_again(asked.request, rpc({}), "echo")
    assert again.digest == asked.digest
    assert again.ask.messages == asked.ask.messages
    assert DIALECT.reread(asked.request, rpc({})).dialect == "agents_api"


def test_a_recorded_request_says_what_was_asked() -> None:
    for first in (
        claim_of(rpc(frame(message=HI))),
        claim_of(rpc(frame(message=HI, sessionId="s-1"))),
        claim_of(over_http("chat", {"agent": "echo", "message": "hi"})),
    ):
        asked = DIALECT.asked(first.request)
        assert asked == replace(first.ask, form=asked.form)  # how it is answered is not recorded


@pytest.mark.parametrize(("name", "agent"), [("My.Agent", "my-agent"), ("a_b--", "a_b")])
def test_an_agent_is_named_by_its_slug(name: str, agent: str) -> None:
    assert claim_of(rpc(frame(message=HI), name=name)).agent == agent


@pytest.mark.parametrize(
    ("name", "error"),
    [("a b", RouteNotFound), ("x" * 129, RouteNotFound), ("...", PermissionMissing)],
)
def test_a_name_that_is_none_leads_nowhere(name: str, error: type[CarnetError]) -> None:
    with pytest.raises(error):
        claim_of(rpc(frame(message=HI), name=name))


def test_the_frame_is_judged_before_the_parameters_and_these_before_the_method() -> None:
    assert refused_by(rpc({"id": 1})).facts["field"] == "jsonrpc"
    assert refused_by(rpc(frame("nothing"))).facts["field"] == "message"
    unknown = refused_by(rpc(frame("what?\n", message=HI)))
    assert (unknown.facts["field"], unknown.facts["method"]) == ("method", "what?")
    nameless = refused_by(rpc(frame(7, message=HI)))
    assert nameless.facts["method"] == ""
    assert refused_by(rpc({**frame(), "params": []})).facts["field"] == "message"


@pytest.mark.parametrize(("name", "known"), [("r", "r"), (7, 7), (True, None), ([1], None)])
def test_an_answer_names_its_request(name: object, known: object) -> None:
    came = rpc({**frame(message=HI), "id": name})
    claim_of(came)
    assert came.request_id == known


def test_what_is_no_json_is_refused() -> None:
    came = rpc({})
    came.body = b"{"
    with pytest.raises(InvalidJson):
        DIALECT.read(came)


ACTION = action_id("task-1", "int_1")


def test_a_decision_goes_on_with_the_task_of_its_action() -> None:
    method = "agents/resolve-pending-action"
    given = {"action_id": f" {ACTION} ", "decision": "accepted", "resolver": "user:7"}
    found = claim_of(rpc(frame(method, **given, payload={"value": "Graz"})))
    form = read_form(found.ask.form)
    assert (found.continues, form.action, form.decision) == ("task-1", ACTION, "accepted")
    assert form.value == "Graz"
    assert found.ask.text == ""
    body = {"decision": "rejected", "resolver": "user:7", "payload": {"a": 1}}
    by_path = claim_of(over_http("resolve", body, names={"action": ACTION}))
    form = read_form(by_path.ask.form)
    assert (by_path.dialect, by_path.agent, form.decision) == (
        "agents_api_http",
        ANY_AGENT,
        "rejected",
    )
    assert form.value == {"a": 1}


def test_a_decision_about_what_we_never_named_is_of_no_task() -> None:
    given = {"action_id": "something", "decision": "accepted", "resolver": "me", "payload": {}}
    found = claim_of(rpc(frame("agents/resolve-pending-action", **given)))
    assert (found.continues, read_form(found.ask.form).value) == ("", None)


@pytest.mark.parametrize(
    ("change", "field", "word"),
    [
        ({"action_id": None}, "action_id", "missing_action_id"),
        ({"action_id": " "}, "action_id", "missing_action_id"),
        ({"action_id": "x" * 513}, "action_id", "missing_action_id"),
        ({"decision": "approved"}, "decision", "invalid_decision"),  # W44
        ({"decision": None}, "decision", "invalid_decision"),
        ({"resolver": None}, "resolver", "missing_resolver"),
        ({"resolver": " "}, "resolver", "missing_resolver"),
        ({"payload": [1]}, "payload", None),
        ({"payload": {"value": "x" * MOST_VALUE_BYTES}}, "payload", None),
    ],
)
def test_what_a_decision_lacks_is_named(
    change: dict[str, Any], field: str, word: str | None
) -> None:
    given = {"action_id": ACTION, "decision": "accepted", "resolver": "user:7", **change}
    error = refused_by(rpc(frame("agents/resolve-pending-action", **given)))
    assert error.facts["field"] == field
    assert error.facts.get("word") == (word and f"agents_pending_action_{word}")
    if field == "decision":
        assert "accepted or rejected" in error.safe_text


def test_an_action_is_asked_for_by_a_method_or_a_path() -> None:
    found = question_of(rpc(frame("agents/get-pending-action", action_id=ACTION)))
    assert (found.about, found.task, found.agent, found.or_nothing) == (
        *("task", "task-1", "echo", True),
    )
    assert found.form["history"] == 0
    params = {"action_id": ACTION, "include_resolved": True}
    found = question_of(rpc(frame("agents/get-pending-action", **params)))
    assert read_form(found.form).resolved
    found = question_of(over_http("show", names={"action": "unknown"}))
    assert (found.task, found.agent) == ("", ANY_AGENT)
    came = over_http("show", names={"action": ACTION}, query="include_resolved=true")
    assert read_form(question_of(came).form).resolved


def test_a_chat_names_its_agent_in_its_body() -> None:
    found = claim_of(over_http("chat", {"agent": "My Agent", "message": "hi"}))
    assert (found.agent, found.dialect, found.ask.text) == ("my-agent", "agents_api_http", "hi")


@pytest.mark.parametrize("agent", [None, 7, "...", "x" * 513])
def test_a_chat_with_nobody_is_refused(agent: object) -> None:
    error = refused_by(over_http("chat", {"agent": agent, "message": "hi"}))
    assert error.facts["field"] == "agent"


@given(WORDS, st.from_regex(r"[!-~]{1,400}", fullmatch=True))
def test_an_action_that_is_named_is_found_again(task: str, interrupt: str) -> None:
    expected = (task, interrupt) if "_" not in task else None
    assert split_action(action_id(task, interrupt)) == expected


@given(VALUES)
def test_no_parameters_break_the_reader(params: object) -> None:
    methods = ("message/send", "agents/resolve-pending-action", "agents/get-pending-action")
    for method in methods:
        came = rpc({"jsonrpc": "2.0", "method": method, "params": params})
        with pytest.raises(InvalidRequest):
            DIALECT.read(came)
