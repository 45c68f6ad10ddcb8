"""Asking over A2A in either binding, byte by byte: what the SDK would hide is seen."""

import itertools
import json
import os
from typing import Any
from urllib.parse import urlencode

from tests.support.http import HeaderList, Reply, request

BINDINGS = ("JSONRPC", "HTTP+JSON")
VERSION = ("a2a-version", "1.0")
JSON = ("content-type", "application/json")
_PUSH = "/tasks/{taskId}/pushNotificationConfigs"

# Over HTTP: the method, and the path with the parameters that stand in it.
OVER_HTTP = {
    "SendMessage": ("POST", "/message:send"),
    "SendStreamingMessage": ("POST", "/message:stream"),
    "GetTask": ("GET", "/tasks/{id}"),
    "ListTasks": ("GET", "/tasks"),
    "CancelTask": ("POST", "/tasks/{id}:cancel"),
    "SubscribeToTask": ("POST", "/tasks/{id}:subscribe"),
    "CreateTaskPushNotificationConfig": ("POST", _PUSH),
    "GetTaskPushNotificationConfig": ("GET", _PUSH + "/{id}"),
    "ListTaskPushNotificationConfigs": ("GET", _PUSH),
    "DeleteTaskPushNotificationConfig": ("DELETE", _PUSH + "/{id}"),
    "GetExtendedAgentCard": ("GET", "/extendedAgentCard"),
}
_numbers = itertools.count()


def new_name(kind: str) -> str:
    """A name that nothing had before, here or in another process."""
    return f"{kind}-{os.getpid()}-{next(_numbers)}"


def message(text: str = "hello", **more: Any) -> dict[str, Any]:
    """The parameters of a message that nobody has sent before."""
    name = new_name("m")
    parts = [{"text": text}]
    return {"message": {"messageId": name, "role": "ROLE_USER", "parts": parts, **more}}


def written(binding: str, operation: str, **given: Any) -> tuple[str, str, bytes | None]:
    """An operation as method, path below the address of the binding, and body."""
    if binding == "JSONRPC":
        body = {"jsonrpc": "2.0", "id": 1, "method": operation, "params": given}
        return "POST", "", json.dumps(body).encode()
    method, form = OVER_HTTP[operation]
    path = form.format(**given)
    rest = {name: value for name, value in given.items() if f"{{{name}}}" not in form}
    if method == "POST":
        return method, path, json.dumps(rest).encode()
    query = urlencode({name: _spelled(value) for name, value in rest.items()})
    return method, path + (f"?{query}" if query else ""), None


def _spelled(value: object) -> str:
    return json.dumps(value) if isinstance(value, bool | int) else str(value)


class Line:
    """A caller of one agent."""

    def __init__(self, url: str, token: str, agent: str) -> None:
        self.url = f"{url}/agents/{agent}/a2a"
        self.token = token

    def ask(
        self, binding: str, operation: str, /, fields: HeaderList = (VERSION,), **given: Any
    ) -> Reply:
        """The answer as it came."""
        method, path, body = written(binding, operation, **given)
        own = [("authorization", f"Bearer {self.token}"), *([JSON] if body else []), *fields]
        return request(method, self.url + path, own, body)

    def result(self, binding: str, operation: str, /, **given: Any) -> dict[str, Any]:
        """The object that an operation gives."""
        return result_of(self.ask(binding, operation, **given))

    def error(self, binding: str, operation: str, /, **given: Any) -> dict[str, Any]:
        """The error that an operation meets."""
        found: dict[str, Any] = self.ask(binding, operation, **given).json["error"]
        return found

    def task(self, binding: str, /, text: str = "hello", **more: Any) -> dict[str, Any]:
        """The task that a message is answered with."""
        found: dict[str, Any] = self.result(binding, "SendMessage", **message(text, **more))["task"]
        return found

    def stream(self, binding: str, operation: str, /, **given: Any) -> list[dict[str, Any]]:
        """All events of a stream that ends."""
        reply = self.ask(binding, operation, **given)
        assert reply.headers["content-type"].startswith("text/event-stream"), reply
        lines = [line for line in reply.body.splitlines() if line.startswith(b"data: ")]
        events = [json.loads(line[6:]) for line in lines]
        return [each["result"] if binding == "JSONRPC" else each for each in events]


def result_of(reply: Reply) -> dict[str, Any]:
    """What a binding carries, without what it is carried in."""
    assert reply.status == 200, reply
    found: dict[str, Any] = reply.json
    assert "error" not in found, found
    return found["result"] if "jsonrpc" in found else found


def reason_of(error: dict[str, Any]) -> tuple[str, str]:
    """The reason and the domain of an error, in either binding."""
    details = error.get("data") or error.get("details") or []
    (info,) = [each for each in details if each["@type"].endswith("google.rpc.ErrorInfo")]
    return info["reason"], info["domain"]
