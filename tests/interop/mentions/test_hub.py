"""The hub at the root: a leading handle chooses the agent, and a context stays with it."""

import itertools
import os
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from carnet.testing.stage import Organisation, Stage

AGENTS = """
import carnet


@carnet.agent("critic")
async def critic(visit):
    yield "weak: " + visit.text


@carnet.agent("asks")
async def asks(visit):
    answer = await visit.interrupt(input="Which city?")
    yield f"weather of {answer.value}"
"""
SECTIONS = """
[agents.critic]
kind = "python"
target = "agents:critic"

[agents.asks]
kind = "python"
target = "agents:asks"
"""
_numbers = itertools.count()


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    with Stage(tmp_path_factory.mktemp("hub")) as stage:
        made = stage.organisation("acme.example", config=SECTIONS, agents=AGENTS)
        made.start()
        yield made


def hub(
    acme: Organisation, text: str, *, token: str | None = None, method: str = "", **more: Any
) -> dict[str, Any]:
    """The result of a message to the root, or of another operation there."""
    message = {
        "messageId": f"m-{os.getpid()}-{next(_numbers)}",
        "role": "ROLE_USER",
        "parts": [{"text": text}],
        **more,
    }
    params = more if method else {"message": message}
    body = {"jsonrpc": "2.0", "id": 1, "method": method or "SendMessage", "params": params}
    fields = {"authorization": f"Bearer {token or acme.token}", "a2a-version": "1.0"}
    url = f"http://127.0.0.1:{acme.port}/a2a"
    reply: dict[str, Any] = httpx.post(url, json=body, headers=fields, timeout=30).json()
    return reply


def text_of(reply: dict[str, Any]) -> str:
    task = reply["result"].get("task") or reply["result"]
    return "".join(part["text"] for each in task["artifacts"] for part in each["parts"])


@pytest.mark.parametrize("handle", ["@critic", "@critic@acme.example", "@critic:"])
def test_a_leading_handle_chooses_the_agent(handle: str, acme: Organisation) -> None:
    assert text_of(hub(acme, f"{handle} judge this")) == f"weak: {handle} judge this"


@pytest.mark.parametrize("text", ["hello", "@nobody hello", "@critic@other.example hello"])
def test_none_and_unknown_go_to_the_default_agent(text: str, acme: Organisation) -> None:
    assert text_of(hub(acme, text)) == text


def test_what_follows_in_a_context_stays_with_its_agent(acme: Organisation) -> None:
    first = hub(acme, "@critic judge this")
    context = first["result"]["task"]["contextId"]
    assert text_of(hub(acme, "and that", contextId=context)) == "weak: and that"
    assert text_of(hub(acme, "@echo now you", contextId=context)) == "@echo now you"
    assert text_of(hub(acme, "and again", contextId=context)) == "and again"
    assert text_of(hub(acme, "elsewhere", contextId="ctx-new")) == "elsewhere"


def test_the_context_of_another_caller_leads_nowhere(acme: Organisation) -> None:
    context = hub(acme, "@critic judge this")["result"]["task"]["contextId"]
    other = acme.new_token("other")
    assert text_of(hub(acme, "and that", token=other, contextId=context)) == "and that"
    refused = hub(acme, "and that", token="wrong", contextId=context)
    assert refused["error"]["data"][0]["metadata"]["code"] == "token_invalid"


def test_a_task_that_the_hub_has_led_to_is_asked_for_and_gone_on_with_there(
    acme: Organisation,
) -> None:
    waits = hub(acme, "@asks weather")["result"]["task"]
    assert waits["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    shown = hub(acme, "", method="GetTask", id=waits["id"])["result"]
    assert shown["id"] == waits["id"]
    assert text_of(hub(acme, "Bern", taskId=waits["id"])) == "weather of Bern"
    other = acme.new_token("stranger")
    hidden = hub(acme, "", method="GetTask", token=other, id=waits["id"])
    assert hidden["error"]["data"][0]["reason"] == "TASK_NOT_FOUND"
