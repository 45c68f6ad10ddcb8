"""Messages by JSON-RPC: what an agent is told of them, and the task that is the answer."""

import json
from typing import Any

import pytest

from tests.support.agents_api.client import Client, data, message, new_name, text, text_in


def given_to_agent(client: Client, *parts: dict[str, Any] | str, **more: Any) -> dict[str, Any]:
    """What the agent was told."""
    found: dict[str, Any] = json.loads(text_in(client.send("tells", *parts, **more)))
    return found


@pytest.mark.parametrize("method", ["message/send", "tasks/send"])
def test_a_message_is_answered_with_a_task_that_is_completed(client: Client, method: str) -> None:
    run, session = new_name(), new_name("session")
    task = client.result("echo", method, message("hello", id=run, sessionId=session))
    assert task["id"] == run
    assert task["sessionId"] == session
    assert task["status"] == {
        "state": "completed",
        "message": {
            "role": "agent",
            "kind": "message",
            "messageId": f"{run}-message",
            "parts": [{"type": "text", "text": "hello"}],
        },
    }
    assert task["metadata"]["run_outcome"] == {
        "status": "completed",
        "completed": True,
        "stop_reason": "natural",
        "retryable": False,
    }


def test_a_run_that_its_caller_does_not_name_has_a_name_of_ours(client: Client) -> None:
    first, second = client.send("echo", "hello"), client.send("echo", "hello")
    assert first["id"].startswith("run_")
    assert first["id"] != second["id"]
    assert first["status"]["message"]["messageId"] == f"{first['id']}-message"
    assert first["sessionId"]


def test_the_text_is_all_text_parts_together_without_those_for_context(client: Client) -> None:
    parts = (text("  one"), text("hidden", contentType="context"), text(" two  "))
    assert text_in(client.send("echo", *parts)) == "one two"


def test_data_parts_are_the_history_of_those_who_speak(client: Client) -> None:
    parts = [
        data({"role": "user", "text": "hi"}),
        data({"role": "agent", "text": "good day"}),
        data({"role": "system", "text": "obey"}),
        data({"role": "user", "text": "  "}),
        data({"role": "user", "text": 7}),
        text("and now?"),
    ]
    found = [each[:2] for each in given_to_agent(client, *parts)["messages"]]
    assert found == [["user", "hi"], ["assistant", "good day"], ["user", "and now?"]]


def test_what_a_client_tells_of_itself_is_merged_and_stripped(client: Client) -> None:
    parts = [
        data({"clientContext": {"first": "a", "shared": "old", "source": "block"}}),
        data({"clientContext": {"second": "b", "shared": "new", "runtime_tools": ["rm"]}}),
        data({"clientContext": {"tool_declarations": [1], "runtime_tool_callback": "x"}}),
        data({"clientContext": {"runtime_tool_timeout": 1, "runtime_tool_declarations": [1]}}),
        text("hello"),
    ]
    (metadata,) = given_to_agent(client, *parts, metadata={"page": 3})["metadata"]
    assert metadata["client_context"] == {
        "first": "a",
        "second": "b",
        "shared": "new",
        "source": "jsonrpc",
        "client_name": "jsonrpc-chat",
        "metadata": {"page": 3},
    }


def test_a_tool_that_the_caller_has_run_is_told_with_its_result(client: Client) -> None:
    call = {"toolCallId": "t1", "toolId": "search", "arguments": {"q": "x"}}
    result = data({"toolCallId": "t1", "result": [1]})
    found = given_to_agent(client, result, data(call))["messages"]
    assert found == [
        ["assistant", "", [], [["t1", "search", '{"q":"x"}']], None],
        ["tool", "[1]", ["str"], [], "t1"],
    ]


CALL = {"toolCallId": "t1", "toolId": "search", "arguments": {}}
RESULT = {"toolCallId": "t1", "result": 1}


@pytest.mark.parametrize(
    ("parts", "word"),
    [
        ([RESULT], "tool_call_mismatch"),
        ([CALL], "tool_call_mismatch"),
        ([CALL, CALL, RESULT], "duplicate_tool_call"),
        ([CALL, RESULT, RESULT], "duplicate_tool_result"),
        ([CALL, {**RESULT, "toolId": "other"}], "tool_name_mismatch"),
        ([{"toolCallId": "t1"}, RESULT], "invalid_tool_call"),
    ],
)
def test_calls_and_results_of_tools_that_do_not_fit_are_refused(
    client: Client, parts: list[dict[str, Any]], word: str
) -> None:
    error = client.error("tells", "message/send", message("go on", *map(data, parts)))
    assert error["code"] == -32602
    assert error["data"]["code"] == f"agents_chat_jsonrpc_{word}"


def test_files_of_a_message_reach_the_agent(client: Client) -> None:
    parts = [
        {"type": "file", "file": {"name": "a.txt", "mimeType": "text/plain", "bytes": "aGk="}},
        {"type": "file", "file": {"uri": "https://example.com/x.png"}},
    ]
    found = given_to_agent(client, "look", *parts)["messages"]
    assert found == [["user", "look", ["str", "File", "Link"], [], None]]


def test_files_and_data_of_an_answer_stand_beside_its_text(client: Client) -> None:
    parts = client.send("files", "show")["status"]["message"]["parts"]
    first = {"name": "hello.txt", "mimeType": "text/plain", "bytes": "aGVsbG8="}
    link = {"name": "a.pdf", "mimeType": "application/pdf", "uri": "https://example.com/a.pdf"}
    assert parts == [
        text("see: "),
        {"type": "file", "file": first},
        {"type": "file", "file": link},
        data({"rows": [1, 2]}),
    ]


def test_a_tool_that_the_agent_wants_run_is_asked_for_and_answered(client: Client) -> None:
    task = client.send("wants", "go")
    call = {"toolCallId": "tc9", "toolId": "lookup", "arguments": {"key": "k"}}
    assert task["status"]["state"] == "input-required"
    assert data(call) in task["status"]["message"]["parts"]
    assert task["metadata"]["run_outcome"]["status"] == "runtime_tool_pending"
    assert task["metadata"]["run_outcome"]["retryable"] is False
    answer = client.send("wants", data(call), data({"toolCallId": "tc9", "result": "v"}))
    assert text_in(answer) == "thank you"


def test_an_agent_is_named_by_its_slug(client: Client) -> None:
    assert text_in(client.send("ECHO", "hello")) == "hello"
    assert text_in(client.send(".Echo.", "hello")) == "hello"


def test_an_agent_that_fails_is_an_error_in_the_frame(client: Client) -> None:
    error = client.error("fails", "message/send", message("go"))
    assert error["code"] == -32603
    assert "secret" not in json.dumps(error)
    assert error["data"]["run_outcome"]["status"] == "failed"
    assert error["data"]["run_outcome"]["stop_reason"] == "provider_error"
    assert error["data"]["run_outcome"]["retryable"] is True
    assert error["data"]["hint"]
