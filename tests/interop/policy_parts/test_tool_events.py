"""Tools that agents run, told as Mentionable tells them: in by what we call, out to who calls."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.interop.conftest import Databases
from tests.interop.policy_parts.scene import (
    POLICY,
    TOOLS,
    Binding,
    Scene,
    played,
    send,
    spoken,
    task,
    task_of,
    text_of,
)

OLD = "https://mentionable.dev/spec/a2a-tool-events/v0.1"
CALL = {"type": "tool-call", "toolCallId": "c1", "toolName": "search", "input": {"q": "cats"}}
RESULT = {"type": "tool-result", "toolCallId": "c1", "toolName": "search", "output": {"hits": 3}}
ERROR = {
    "type": "tool-error",
    "toolCallId": "c2",
    "toolName": "read",
    "error": {"message": "database timeout"},
}
SECOND = {"type": "tool-call", "toolCallId": "c2", "toolName": "read", "input": {}}
AGENTS = ["paid-search", "uses"]  # called, and passed on by an agent of ours


@pytest.fixture(scope="module")
def scene(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with played(tmp_path_factory.mktemp("tools"), database()) as scene:
        yield scene


def parts(*values: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"data": value} for value in values]


def shown_tools(answer: httpx.Response) -> list[dict[str, Any]]:
    message = task_of(answer)["status"].get("message", {"parts": []})
    return [part["data"] for part in message["parts"] if "data" in part]


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("binding", ["rpc", "http"])
def test_the_tools_of_an_agent_are_shown_to_who_wants_them(
    scene: Scene, agent: str, binding: Binding
) -> None:
    scene.replies(lambda _: spoken(*parts(CALL, RESULT, SECOND, ERROR), {"text": "three cats"}))
    shown = send(scene.gateway, agent, binding=binding, uris=TOOLS)
    assert shown_tools(shown) == [CALL, RESULT, SECOND, ERROR]
    assert text_of(shown) == "three cats"
    assert shown.headers["a2a-extensions"] == TOOLS
    assert TOOLS in task_of(shown)["status"]["message"]["extensions"]
    for uris in ("", POLICY):
        plain = send(scene.gateway, agent, binding=binding, uris=uris)
        assert (shown_tools(plain), text_of(plain)) == ([], "three cats")


def test_the_old_name_of_the_extension_is_understood(scene: Scene) -> None:
    scene.replies(lambda _: spoken(*parts(CALL, RESULT), {"text": "three cats"}))
    shown = send(scene.gateway, "paid-search", uris=OLD)
    assert shown_tools(shown) == [CALL, RESULT]
    assert shown.headers["a2a-extensions"] == TOOLS


@pytest.mark.parametrize("where", ["message", "status", "artifact"])
def test_wherever_they_stand_each_is_told_once(scene: Scene, where: str) -> None:
    values = parts(CALL, RESULT)
    answers = {
        "message": spoken(*values, {"text": "ok"}),
        "status": task(
            "COMPLETED", *values, artifacts=[{"artifactId": "a", "parts": [{"text": "ok"}]}]
        ),
        "artifact": task(
            "COMPLETED", artifacts=[{"artifactId": "a", "parts": [*values, {"text": "ok"}]}]
        ),
    }
    scene.replies(lambda _: answers[where])
    shown = send(scene.gateway, "paid-search", uris=TOOLS)
    assert shown_tools(shown) == [CALL, RESULT]
    assert text_of(shown) == "ok"


def test_a_call_and_a_result_with_different_ids_are_two_calls(scene: Scene) -> None:
    other = RESULT | {"toolCallId": "another"}
    scene.replies(lambda _: spoken(*parts(CALL, other), {"text": "ok"}))
    shown = shown_tools(send(scene.gateway, "paid-search", uris=TOOLS))
    assert {each["toolCallId"] for each in shown} == {"c1", "another"}
    assert "toolName" not in shown[1]  # nobody has told of that call


def test_a_call_without_result_or_error_is_in_flight(scene: Scene) -> None:
    scene.replies(lambda _: spoken(*parts(CALL), {"text": "ok"}))
    assert shown_tools(send(scene.gateway, "paid-search", uris=TOOLS)) == [CALL]


@pytest.mark.parametrize("binding", ["rpc", "http"])
def test_a_stream_tells_each_as_it_comes(scene: Scene, binding: Binding) -> None:
    scene.replies(lambda _: spoken(*parts(CALL, RESULT), {"text": "ok"}))
    stream = send(scene.gateway, "paid-search", binding=binding, uris=TOOLS, stream=True).text
    frames = [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: ")]
    updates = [frame.get("result", frame).get("statusUpdate") for frame in frames]
    messages = [
        each["status"]["message"] for each in updates if each and "message" in each["status"]
    ]
    shown = [part["data"] for each in messages for part in each["parts"]]
    assert shown == [CALL, RESULT]


@pytest.mark.parametrize(
    "broken",
    [
        {"type": "tool-call", "toolName": "search"},
        {"type": "tool-call", "toolCallId": 7, "toolName": "search"},
        {"type": "tool-call", "toolCallId": "c1"},
        {"type": ["tool-call"], "toolCallId": "c1", "toolName": "search"},
        {"type": "tool-other", "toolCallId": "c1", "toolName": "search"},
    ],
)
def test_what_is_no_tool_event_is_data(scene: Scene, broken: dict[str, Any]) -> None:
    scene.replies(lambda _: spoken(*parts(broken), {"text": "ok"}))
    shown = send(scene.gateway, "paid-search", uris=TOOLS)
    assert shown_tools(shown) == []
    (artifact,) = task_of(shown)["artifacts"]
    assert artifact["parts"][0]["data"] == broken
