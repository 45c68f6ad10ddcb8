"""Pending actions: what a run waits for, and what a decision makes of it."""

from typing import Any

import pytest

from tests.support.agents_api.client import Client, actions, message, new_name, text_in

RESOLVE = "agents/resolve-pending-action"
SHOW = "agents/get-pending-action"


def waiting(client: Client, agent: str = "approves", **more: Any) -> dict[str, Any]:
    """What a new run waits for."""
    task = client.send(agent, "go", **more)
    (action,) = actions(task)
    return action


def test_a_run_that_waits_is_told_with_the_whole_action(client: Client) -> None:
    run = new_name()
    task = client.send("approves", "go", id=run)
    assert task["id"] == run
    assert task["status"]["state"] == "input-required"
    outcome = task["metadata"]["run_outcome"]
    assert outcome == {
        "status": "approval_required",
        "completed": False,
        "stop_reason": "approval_required",
        "retryable": False,
    }
    (part,) = [part for part in task["status"]["message"]["parts"] if part["type"] == "data"]
    envelope = part["data"]
    assert (envelope["schema"], envelope["version"]) == ("agents-api.message", 1)
    assert (envelope["type"], envelope["role"]) == ("approval_required", "tool")
    assert envelope["content"] == "May I publish?"
    action = envelope["payload"]
    assert (action["kind"], action["summary"]) == ("approval", "May I publish?")
    assert action["status"] == "pending"
    assert {"preview", "apply_input", "action_id"} <= action.keys()
    assert action["created_at"]
    assert action["expires_at"]
    assert action["agent"] == "@approves@acme.example"
    assert "state" not in action["metadata"]["carnet"]


@pytest.mark.parametrize(
    ("decision", "words"), [("accepted", "granted"), ("rejected", "left alone")]
)
def test_a_decision_lets_the_run_go_on(client: Client, decision: str, words: str) -> None:
    run = new_name()
    action = waiting(client, id=run)["action_id"]
    decided = client.decide("approves", action, decision)
    assert (decided["action_id"], decided["decision"]) == (action, decision)
    assert decided["result"]["id"] == run
    assert text_in(decided["result"]) == words
    assert decided["result"]["status"]["state"] == "completed"


def test_what_is_decided_beside_is_given_to_the_agent(client: Client) -> None:
    action = waiting(client, "asks")["action_id"]
    decided = client.decide("asks", action, payload={"value": "Graz"})
    assert text_in(decided["result"]) == "weather of Graz"


def test_a_run_may_wait_again_after_a_decision(client: Client) -> None:
    action = waiting(client, "twice")["action_id"]
    task = client.decide("twice", action)["result"]
    assert task["status"]["state"] == "input-required"
    (second,) = actions(task)
    assert second["summary"] == "Second?"
    decided = client.decide("twice", second["action_id"], "rejected")
    assert text_in(decided["result"]) == "accepted rejected"


def test_a_decision_that_is_sent_again_is_answered_with_what_came_of_it(client: Client) -> None:
    action = waiting(client)["action_id"]
    first, again = client.decide("approves", action), client.decide("approves", action)
    assert first == again
    given = {"action_id": action, "decision": "rejected", "resolver": "user:7"}
    error = client.error("approves", RESOLVE, given)
    assert error["data"]["code"] == "agents_pending_action_not_pending"


@pytest.mark.parametrize("decision", ["approved", "denied", "", None, True, ["accepted"]])
def test_no_other_word_is_a_decision(client: Client, decision: object) -> None:
    action = waiting(client)["action_id"]
    given = {"action_id": action, "decision": decision, "resolver": "user:7"}
    error = client.error("approves", RESOLVE, given)
    assert error["code"] == -32602
    assert error["data"]["code"] == "agents_pending_action_invalid_decision"
    assert "accepted or rejected" in error["message"]
    shown = client.result("approves", SHOW, {"action_id": action})
    assert shown["action"]["status"] == "pending"


@pytest.mark.parametrize(
    ("left_out", "word"),
    [("action_id", "missing_action_id"), ("resolver", "missing_resolver")],
)
def test_what_a_decision_lacks_is_named(client: Client, left_out: str, word: str) -> None:
    given = {"action_id": "x.y", "decision": "accepted", "resolver": "user:7", left_out: " "}
    error = client.error("approves", RESOLVE, given)
    assert error["data"]["code"] == f"agents_pending_action_{word}"
    del given[left_out]
    error = client.error("approves", RESOLVE, given)
    assert error["data"]["code"] == f"agents_pending_action_{word}"


def test_an_action_is_shown_while_it_waits_and_when_it_was_decided(client: Client) -> None:
    action = waiting(client)
    name = action["action_id"]
    assert client.result("approves", SHOW, {"action_id": name}) == {"action": action}
    client.decide("approves", name)
    assert client.result("approves", SHOW, {"action_id": name}) == {"action": None}
    given = {"action_id": name, "include_resolved": True}
    found = client.result("approves", SHOW, given)["action"]
    assert found["status"] == "accepted"
    assert found["resolved_at"]
    assert found["resolver"] == "token:site"  # who has authenticated, not who the request says


@pytest.mark.parametrize("name", ["no.such", "x", "0.0", "a" * 500])
def test_an_action_that_there_is_not_is_null(client: Client, name: str) -> None:
    assert client.result("approves", SHOW, {"action_id": name}) == {"action": None}
    given = {"action_id": name, "decision": "accepted", "resolver": "user:7"}
    error = client.error("approves", RESOLVE, given)
    assert error["data"]["code"] == "agents_pending_action_not_found"


def test_an_action_of_somebody_else_is_like_one_that_there_is_not(
    client: Client, other: Client
) -> None:
    name = waiting(client)["action_id"]
    assert other.result("approves", SHOW, {"action_id": name}) == {"action": None}
    given = {"action_id": name, "decision": "accepted", "resolver": "user:7"}
    theirs = other.error("approves", RESOLVE, given)
    none = other.error("approves", RESOLVE, {**given, "action_id": "no.such"})
    assert theirs == none
    wrong = client.error("asks", RESOLVE, given)  # of another agent
    assert wrong["data"]["code"] == "agents_pending_action_not_found"
    assert text_in(client.decide("approves", name)["result"]) == "granted"


def test_actions_have_paths_of_their_own(client: Client, other: Client) -> None:
    action = waiting(client)
    path = f"/pending-actions/{action['action_id']}"
    assert client.get(path).json == {"action": action}
    assert other.get(path).json == {"action": None}
    reply = client.post(path, {"decision": "approved", "resolver": "user:7"})
    assert (reply.status, reply.json["code"]) == (400, "agents_pending_action_invalid_decision")
    reply = other.post(path, {"decision": "accepted", "resolver": "user:7"})
    assert (reply.status, reply.json["code"]) == (404, "agents_pending_action_not_found")
    reply = client.post(path, {"decision": "accepted", "resolver": "user:7"})
    assert reply.status == 200
    assert text_in(reply.json["result"]) == "granted"
    assert client.get(f"{path}?include_resolved=true").json["action"]["status"] == "accepted"


def test_a_message_that_waits_is_not_run_again_under_its_name(client: Client) -> None:
    run = new_name()
    waiting(client, id=run)
    error = client.error("approves", "message/send", message("go", id=run))
    assert error["data"]["code"] == "agents_chat_run_already_started"
