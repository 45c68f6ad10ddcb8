"""What is another's is told like what is not there, byte for byte, whatever is asked in A2A."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import Struct

from carnet.testing.stage import Organisation, Stage
from tests.support.http import Reply, request

BINDINGS = ("JSONRPC", "HTTP+JSON")
UNKNOWN = "task_01a1ded1bd0d7f279414f9429d781379"
NOWHERE = "https://receiver.example/in"
AGENTS = """
import carnet


@carnet.agent("asks")
async def asks(visit):
    answer = await visit.interrupt(input="Which city?")
    yield f"weather of {answer.value}"
"""
CONFIG = '[agents.asks]\nkind = "python"\ntarget = "agents:asks"\n'
# Operation, method and path over HTTP, whether its parameters are a body there.
PUSH = "pushNotificationConfigs"
OPERATIONS = {
    "GetTask": ("GET", "/tasks/{task}"),
    "CancelTask": ("POST", "/tasks/{task}:cancel"),
    "SubscribeToTask": ("POST", "/tasks/{task}:subscribe"),
    "SendMessage": ("POST", "/message:send"),
    "SendStreamingMessage": ("POST", "/message:stream"),
    "CreateTaskPushNotificationConfig": ("POST", f"/tasks/{{task}}/{PUSH}"),
    "GetTaskPushNotificationConfig": ("GET", f"/tasks/{{task}}/{PUSH}/{{config}}"),
    "ListTaskPushNotificationConfigs": ("GET", f"/tasks/{{task}}/{PUSH}"),
    "DeleteTaskPushNotificationConfig": ("DELETE", f"/tasks/{{task}}/{PUSH}/{{config}}"),
}


class Owned(Struct, frozen=True):
    """A gateway, those who meet at it, and what one of them has."""

    gateway: Organisation
    alice: str
    others: dict[str, str]  # their tokens, by who they are
    tasks: dict[str, str]  # of alice, by their state
    config: str
    context: str


def ask(
    owned: Organisation, token: str, binding: str, operation: str, *, agent: str, **given: Any
) -> Reply:
    """Ask in one of the bindings; `given` are the parameters of the operation."""
    fields = [
        ("authorization", f"Bearer {token}"),
        ("content-type", "application/json"),
        ("a2a-version", "1.0"),
    ]
    url = f"{owned.url}/agents/{agent}/a2a"
    if binding == "JSONRPC":
        body = {"jsonrpc": "2.0", "id": 1, "method": operation, "params": given}
        return request("POST", url, fields, json.dumps(body).encode())
    method, path = OPERATIONS[operation]
    name = given.get("taskId") or given.get("id")
    path = path.format(task=name, config=given.get("id"))
    content = json.dumps(given).encode() if "message" in given or "url" in given else None
    if content is None and method == "POST":
        content = b"{}"
    return request(method, url + path, fields, content)


def message(task: str | None = None, **more: Any) -> dict[str, Any]:
    named = {} if task is None else {"taskId": task}
    parts = [{"text": "Bern"}]
    return {"message": {"messageId": "m1", "role": "ROLE_USER", "parts": parts, **named, **more}}


def parameters(operation: str, task: str, config: str) -> dict[str, Any]:
    if operation.startswith("Send"):
        return message(task)
    if "Push" not in operation:
        return {"id": task}
    more = {"Create": {"url": NOWHERE, "id": config}, "ListTa": {}}
    return {"taskId": task, **more.get(operation[:6], {"id": config})}


def raw(reply: Reply) -> tuple[int, dict[str, str], bytes]:
    """All that came but what is drawn for every answer."""
    drawn = {"date", "x-correlation-id", "x-request-id"}
    fields = {name: value for name, value in reply.headers.items() if name not in drawn}
    return reply.status, fields, reply.body


@pytest.fixture(scope="module")
def owned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Owned]:
    with Stage(tmp_path_factory.mktemp("owners")) as stage:
        acme = stage.organisation("acme.example", config=CONFIG, agents=AGENTS)
        acme.start()
        alice = acme.new_token("alice")
        others = {
            "another": acme.new_token("mallory"),
            "an operator": acme.new_token("overseer", "--scope", "*"),
        }
        begun = {
            name: ask(
                acme, alice, "JSONRPC", "SendMessage", agent=agent, **message(messageId=name)
            ).json["result"]["task"]
            for name, agent in (("waiting", "asks"), ("done", "echo"))
        }
        tasks = {name: task["id"] for name, task in begun.items()}
        made = parameters("CreateTaskPushNotificationConfig", tasks["waiting"], "hers")
        create = "CreateTaskPushNotificationConfig"
        assert ask(acme, alice, "JSONRPC", create, agent="asks", **made).json["result"]
        yield Owned(acme, alice, others, tasks, "hers", begun["waiting"]["contextId"])


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("who", ["another", "an operator", "its owner, at another agent"])
def test_a_task_of_another_or_of_another_agent_is_told_like_an_unknown_one(
    owned: Owned, binding: str, operation: str, who: str
) -> None:
    token = owned.others.get(who, owned.alice)
    for state, agent in (("waiting", "asks"), ("done", "echo")):
        asked = agent if who in owned.others else {"asks": "echo", "echo": "asks"}[agent]
        unknown, malformed, theirs = (
            raw(
                ask(
                    owned.gateway,
                    token,
                    binding,
                    operation,
                    agent=asked,
                    **parameters(operation, task, owned.config),
                )
            )
            for task in (UNKNOWN, "nothing", owned.tasks[state])
        )
        assert theirs == unknown == malformed
        error = json.loads(theirs[2])["error"]
        reported = (theirs[0], error["code"])
        assert reported == ((200, -32001) if binding == "JSONRPC" else (404, 404))
    shown = ask(
        owned.gateway, owned.alice, "JSONRPC", "GetTask", agent="asks", id=owned.tasks["waiting"]
    )
    assert shown.json["result"]["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("operation", ["Get", "Delete"])
def test_an_address_of_anothers_task_is_told_like_an_unknown_one(
    owned: Owned, binding: str, operation: str
) -> None:
    """Also by the name that another gave it, asked of a task of one's own."""
    operation = f"{operation}TaskPushNotificationConfig"
    mallory, acme = owned.others["another"], owned.gateway
    begun = ask(acme, mallory, "JSONRPC", "SendMessage", agent="asks", **message())
    own = begun.json["result"]["task"]["id"]
    replies = [
        raw(ask(acme, mallory, binding, operation, agent="asks", taskId=own, id=name))
        for name in (owned.config, "nobodys")
    ]
    assert replies[0] == replies[1]
    hers = {"taskId": owned.tasks["waiting"], "id": owned.config}
    get = "GetTaskPushNotificationConfig"
    assert ask(acme, owned.alice, binding, get, agent="asks", **hers).status == 200


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("who", ["another", "an operator"])
def test_a_context_of_another_is_empty_like_an_unknown_one(
    owned: Owned, binding: str, who: str
) -> None:
    pages = [
        raw(listed(owned, owned.others[who], binding, context))
        for context in (owned.context, "ctx_" + "0" * 32)
    ]
    assert pages[0] == pages[1]
    page = json.loads(pages[0][2])
    page = page.get("result", page)
    assert page == {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0}


def listed(owned: Owned, token: str, binding: str, context: str) -> Reply:
    if binding == "JSONRPC":
        return ask(owned.gateway, token, binding, "ListTasks", agent="asks", contextId=context)
    url = f"{owned.gateway.url}/agents/asks/a2a/tasks?contextId={context}"
    return request("GET", url, [("authorization", f"Bearer {token}"), ("a2a-version", "1.0")])


@pytest.mark.parametrize("binding", BINDINGS)
def test_who_names_the_context_of_another_has_one_of_its_own(owned: Owned, binding: str) -> None:
    token = owned.gateway.new_token(f"namesake-{binding[:4].lower()}")
    named = message(contextId=owned.context)
    sent = ask(owned.gateway, token, binding, "SendMessage", agent="asks", **named)
    task = sent.json.get("result", sent.json)["task"]
    assert task["contextId"] == owned.context
    assert [each["parts"] for each in task["history"]] == [[{"text": "Bern"}]]
    for who, known in ((token, task["id"]), (owned.alice, owned.tasks["waiting"])):
        page = listed(owned, who, binding, owned.context).json
        assert [each["id"] for each in page.get("result", page)["tasks"]] == [known]
