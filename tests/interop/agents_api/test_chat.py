"""One turn of a chat: a body of plain members, and its output."""

import json

import pytest

from tests.support.agents_api.client import Client, text_in


def test_a_chat_is_answered_with_its_reply_its_session_and_its_run(client: Client) -> None:
    reply = client.chat(agent="Echo", message=" hello ", session_id="s9")
    assert reply.status == 200
    found = reply.json
    assert (found["session_id"], found["reply"]) == ("s9", "hello")
    assert found["run_id"].startswith("run_")
    assert (found["completed"], found["status"]) == (True, "completed")


def test_a_chat_without_a_session_is_given_one(client: Client) -> None:
    assert client.chat(agent="echo", message="hello").json["session_id"]


def test_where_a_chat_came_from_is_ours_to_say(client: Client) -> None:
    context = {"source": "peer-agent", "page": 1, "runtime_tools": ["rm"]}
    files = [{"name": "a.txt", "bytes": "aGk="}]
    reply = client.chat(
        agent="tells",
        message="hi",
        client_context=context,
        attachments=files,
        workspace_id="w",
        client_id="c",
    )
    given = json.loads(reply.json["reply"])
    assert given["metadata"] == [
        {"client_context": {"page": 1, "source": "rest", "client_name": "frontend-chat"}}
    ]
    assert given["messages"][0][2] == ["str", "File"]
    named = client.chat(agent="tells", message="hi", client_context={"client_name": "widget"})
    (metadata,) = json.loads(named.json["reply"])["metadata"]
    assert metadata["client_context"]["client_name"] == "widget"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"agent": "echo"},
        {"message": "hi"},
        {"agent": " ", "message": "hi"},
        {"agent": "echo", "message": "  "},
        {"agent": "echo", "message": 7},
        {"agent": "echo", "message": "hi", "attachments": [7]},
        {"agent": "echo", "message": "hi", "session_id": ["s"]},
    ],
)
def test_a_chat_without_its_members_is_refused(client: Client, body: dict[str, object]) -> None:
    reply = client.post("/chat", body)
    assert (reply.status, reply.json["code"]) == (400, "agents_frontend_chat_invalid_input")
    assert reply.json["data"]["status"] == 400


def test_an_agent_that_fails_is_told_by_the_status(client: Client) -> None:
    reply = client.chat(agent="fails", message="go")
    assert reply.status == 500
    assert reply.json["code"] == "agents_api_agent_failed"
    assert b"secret" not in reply.body


def test_a_chat_that_waits_has_its_actions_among_its_messages(client: Client) -> None:
    found = client.chat(agent="approves", message="go").json
    assert (found["completed"], found["status"]) == (False, "approval_required")
    assert found["reply"] == "May I publish?"
    (envelope,) = found["messages"]
    name = envelope["payload"]["action_id"]
    assert text_in(client.decide("approves", name)["result"]) == "granted"
