"""Both bindings have all operations, and the same request has the same objects in both."""

import re
from typing import Any

import pytest

from carnet.testing.stage import Organisation
from tests.support.a2a.wire import BINDINGS, OVER_HTTP, Line, message, reason_of
from tests.support.http import request
from tests.support.webhooks.receivers import Receivers

Lines = dict[str, Line]


def both(line: Line, operation: str, **given: Any) -> dict[str, Any]:
    """What an operation gives in both bindings: the same."""
    first, second = (line.result(binding, operation, **given) for binding in BINDINGS)
    assert first == second
    return first


@pytest.mark.parametrize("agent", ["echo", "asks", "files", "greets", "rejects", "fails"])
def test_the_same_message_has_the_same_answer_in_both(lines: Lines, agent: str) -> None:
    """It is the same message of the same caller, so the same task as well."""
    both(lines[agent], "SendMessage", **message())


def test_the_same_message_has_the_same_stream_in_both(lines: Lines) -> None:
    given = message("one two")
    first, second = (
        lines["echo"].stream(binding, "SendStreamingMessage", **given) for binding in BINDINGS
    )
    assert first == second


def test_every_question_has_the_same_answer_in_both(lines: Lines, receivers: Receivers) -> None:
    line = lines["asks"]
    task = line.task("JSONRPC")
    name = {"taskId": task["id"]}
    wish = {**name, "id": "one", "url": receivers.url("well"), "token": "t"}
    assert both(line, "GetTask", id=task["id"])["id"] == task["id"]
    page = both(line, "ListTasks", contextId=task["contextId"], includeArtifacts=True)
    assert [each["id"] for each in page["tasks"]] == [task["id"]]
    made = both(line, "CreateTaskPushNotificationConfig", **wish)
    assert both(line, "GetTaskPushNotificationConfig", **name, id="one") == made
    assert both(line, "ListTaskPushNotificationConfigs", **name)["configs"] == [made]
    assert both(line, "DeleteTaskPushNotificationConfig", **name, id="one") == {}
    assert both(line, "GetExtendedAgentCard")["name"]


def test_a_task_is_cancelled_in_either(lines: Lines) -> None:
    reported = []
    for binding in BINDINGS:
        task = lines["asks"].task(binding)
        ended = lines["asks"].result(binding, "CancelTask", id=task["id"])
        assert ended.pop("id") == task["id"]
        reported.append((sorted(ended), ended["status"]["state"]))
    assert reported[0] == reported[1]


REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("GetTask", {"id": "nobody"}),
    ("GetTask", {"id": "nobody", "historyLength": -1}),
    ("CancelTask", {"id": "nobody"}),
    ("SubscribeToTask", {"id": "nobody"}),
    ("ListTasks", {"pageSize": 101}),
    ("ListTasks", {"status": "DONE"}),
    ("SendMessage", {}),
    ("SendMessage", {"message": {"messageId": "m", "role": "ROLE_USER", "parts": []}}),
    ("SendStreamingMessage", {"message": {"role": "ROLE_USER", "parts": [{"text": "a"}]}}),
    ("CreateTaskPushNotificationConfig", {"taskId": "nobody", "url": "https://a.example/"}),
    ("GetTaskPushNotificationConfig", {"taskId": "nobody", "id": "x"}),
    ("ListTaskPushNotificationConfigs", {"taskId": "nobody"}),
    ("DeleteTaskPushNotificationConfig", {"taskId": "nobody", "id": "x"}),
]


@pytest.mark.parametrize(("operation", "given"), REFUSED)
def test_the_same_error_is_told_in_both(
    lines: Lines, operation: str, given: dict[str, Any]
) -> None:
    first, second = (lines["echo"].error(binding, operation, **given) for binding in BINDINGS)
    assert first["message"] == second["message"]
    assert first["data"] == second["details"]
    assert reason_of(first) == reason_of(second)


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("operation", OVER_HTTP)
def test_no_operation_is_for_those_without_a_credential(
    gateway: Organisation, binding: str, operation: str
) -> None:
    given = {"id": "x", "taskId": "y", "url": "https://a.example/", **message()}
    wrong = Line(gateway.url, "ck_nobodys", "echo")
    refused = wrong.ask(binding, operation, **given)
    assert refused.status == 401
    assert refused.headers["www-authenticate"].startswith("Bearer")
    own, _ = reason_of(refused.json["error"])
    assert own == "TOKEN_INVALID"
    method, path = OVER_HTTP[operation] if binding == "HTTP+JSON" else ("POST", "")
    url = wrong.url + re.sub(r"\{[a-zA-Z]+\}", "x", path)
    body = b"{}" if method == "POST" else None
    bare = request(method, url, [("content-type", "application/json")] if body else [], body)
    assert bare.status == 401 or bare.json["error"]["code"] in {400, -32600}


@pytest.mark.parametrize("binding", BINDINGS)
def test_who_may_not_is_told_which_permission_is_missing(
    gateway: Organisation, binding: str
) -> None:
    scopes = ("--scope", "call:asks")
    token = gateway.new_token(f"narrow-{binding[:4].lower()}", *scopes)
    line = Line(gateway.url, token, "asks")
    task = line.task(binding)["id"]
    for operation, permission in (("GetTask", "run:read"), ("CancelTask", "run:cancel")):
        for name in (task, "nobody"):
            reply = line.ask(binding, operation, id=name)
            assert reply.status == 403
            assert permission in str(reply.json["error"])
    elsewhere = Line(gateway.url, token, "echo")
    refused = elsewhere.ask(binding, "SendMessage", **message())
    assert refused.status == 403
    assert "call:echo" in str(refused.json["error"])


def test_every_agent_declares_what_it_can_and_can_what_it_declares(
    gateway: Organisation, lines: Lines
) -> None:
    for name in ("echo", "asks", "greets"):
        url = f"{gateway.url}/agents/{name}/.well-known/agent-card.json"
        card = request("GET", url).json
        able = card["capabilities"]
        assert (able["streaming"], able["pushNotifications"]) == (True, True)
        assert able["extendedAgentCard"] is True
        assert not any(each.get("required") for each in able["extensions"])
        spoken = {each["protocolBinding"] for each in card["supportedInterfaces"]}
        assert spoken == set(BINDINGS)
        extended = both(lines[name], "GetExtendedAgentCard")
        assert extended["name"] == card["name"]
