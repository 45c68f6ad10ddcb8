"""The agent of the conformance kit, behind its front: both bindings, without a token."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.http import Reply, request

FRONT = Path(__file__).parents[2] / "examples" / "a2a_sut" / "front.py"
FIELDS = [("content-type", "application/json"), ("a2a-version", "1.0")]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    command = [sys.executable, str(FRONT), "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as front:  # noqa: S603
        try:
            assert front.stdout is not None
            banner = next(line for line in front.stdout if "conformance kit" in line)
            yield banner.split()[-1]
        finally:
            front.terminate()


def posted(url: str, body: dict[str, Any]) -> Reply:
    return request("POST", url, FIELDS, json.dumps(body).encode())


def message(prefix: str, **more: str) -> dict[str, Any]:
    parts = [{"text": "hello"}]
    return {"message": {"messageId": f"{prefix}-1", "role": "ROLE_USER", "parts": parts, **more}}


def rpc(url: str, prefix: str) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message(prefix)}
    return posted(url + "/a2a", body).json["result"]


def test_its_card_names_it_and_holds_nothing_of_former_versions(url: str) -> None:
    card = request("GET", url + "/.well-known/agent-card.json").json
    assert card["supportedInterfaces"][0]["url"] == url + "/a2a"
    assert "protocolVersion" not in card


def test_it_answers_by_how_the_id_of_a_message_begins(url: str) -> None:
    assert rpc(url, "tck-message-response")["message"]["parts"] == [
        {"text": "Direct message response"}
    ]
    states = {
        "tck-complete-task": "TASK_STATE_COMPLETED",
        "tck-input-required": "TASK_STATE_INPUT_REQUIRED",
        "tck-reject-task": "TASK_STATE_REJECTED",
    }
    for prefix, state in states.items():
        assert rpc(url, prefix)["task"]["status"]["state"] == state
        over_http = posted(url + "/a2a/message:send", message(prefix)).json
        assert over_http["task"]["status"]["state"] == state
    (data,) = rpc(url, "tck-artifact-data")["task"]["artifacts"][0]["parts"]
    assert data["data"] == {"key": "value", "count": 42}
    (file,) = rpc(url, "tck-artifact-file")["task"]["artifacts"][0]["parts"]
    assert (file["raw"], file["filename"]) == ("dGNr", "output.txt")
    (link,) = rpc(url, "tck-artifact-file-url")["task"]["artifacts"][0]["parts"]
    assert link["url"] == "https://example.com/output.txt"


def test_the_same_message_again_is_a_new_task(url: str) -> None:
    first, second = rpc(url, "tck-complete-task"), rpc(url, "tck-complete-task")
    assert first["task"]["id"] != second["task"]["id"]
