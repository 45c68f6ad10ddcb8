"""Requests to an A2A agent: eleven operations, in two bindings and two versions.

Law 1. The same question is the same bytes: a request has no time and no chance in it.
Law 2. What names a task or a configuration becomes one part of a path, and nothing else of it.
Law 3. Every request says its version. One of 0.3 says so too, whose readers may overlook it.
"""

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes, urlencode

from msgspec import Struct

from carnet.core.messages.events import File, Link, Part
from carnet.errors import UsageInvalid
from carnet.wire.dialects.a2a.client import legacy
from carnet.wire.dialects.a2a.client.interface import HTTP_JSON, Interface
from carnet.wire.dialects.a2a.parts import write_part
from carnet.wire.grammar import json

Json = dict[str, Any]

VERSION_HEADER: Final = "a2a-version"
EXTENSIONS_HEADER: Final = "a2a-extensions"
LEGACY_EXTENSIONS_HEADER: Final = "x-a2a-extensions"
JSON: Final = "application/json"
A2A_JSON: Final = "application/a2a+json"
SSE: Final = "text/event-stream"
REQUEST_ID: Final = "1"  # each answers one request of its own connection


class RestRoute(Struct, frozen=True):
    """Where an operation is in HTTP+JSON."""

    method: str
    path: str
    is_stream: bool = False


ROUTES: Final[Mapping[str, RestRoute]] = {
    "SendMessage": RestRoute("POST", "/message:send"),
    "SendStreamingMessage": RestRoute("POST", "/message:stream", is_stream=True),
    "GetTask": RestRoute("GET", "/tasks/{id}"),
    "ListTasks": RestRoute("GET", "/tasks"),
    "CancelTask": RestRoute("POST", "/tasks/{id}:cancel"),
    "SubscribeToTask": RestRoute("POST", "/tasks/{id}:subscribe", is_stream=True),
    "CreateTaskPushNotificationConfig": RestRoute(
        "POST", "/tasks/{taskId}/pushNotificationConfigs"
    ),
    "GetTaskPushNotificationConfig": RestRoute(
        "GET", "/tasks/{taskId}/pushNotificationConfigs/{id}"
    ),
    "ListTaskPushNotificationConfigs": RestRoute("GET", "/tasks/{taskId}/pushNotificationConfigs"),
    "DeleteTaskPushNotificationConfig": RestRoute(
        "DELETE", "/tasks/{taskId}/pushNotificationConfigs/{id}"
    ),
    "GetExtendedAgentCard": RestRoute("GET", "/extendedAgentCard"),
}
_NOT_IN_REST: Final = frozenset(
    {"ListTaskPushNotificationConfigs", "DeleteTaskPushNotificationConfig"}
)
_DATA_URL: Final = re.compile(
    r"data:(?P<type>[A-Za-z0-9!#$&^_.+/-]{0,256})(?:;[A-Za-z0-9=_.-]{1,64}){0,4}?"
    r"(?P<base64>;base64)?,",
    re.ASCII,
)
_LEGACY_CARD: Final = "/card"


class A2aRequest(Struct, frozen=True, kw_only=True):
    """A request as it leaves, but for what says who sends it."""

    method: str
    url: str
    body: bytes
    headers: Mapping[str, str]
    operation: str
    is_stream: bool


def write_request(
    interface: Interface, operation: str, given: Json, *, extensions: Sequence[str] = ()
) -> A2aRequest:
    """The request for an operation; `given` are its parameters as 1.0 names them.

    Raises:
        UsageInvalid: There is no such operation in that version.
    """
    route = ROUTES[operation]
    if interface.is_legacy:
        _refuse_unknown(interface, operation)
    is_rest = interface.binding == HTTP_JSON
    method, url, body = (_rest if is_rest else _rpc)(interface, operation, given)
    return A2aRequest(
        method=method,
        url=url,
        body=body,
        headers=_headers(interface, extensions, has_body=bool(body), is_stream=route.is_stream),
        operation=operation,
        is_stream=route.is_stream,
    )


def _refuse_unknown(interface: Interface, operation: str) -> None:
    is_rest = interface.binding == HTTP_JSON
    if operation in legacy.METHODS and not (is_rest and operation in _NOT_IN_REST):
        return
    raise UsageInvalid(
        reason=f"The agent speaks A2A 0.3, which has no {operation} there.",
        fix="Ask for its tasks one by one.",
    )


def _rpc(interface: Interface, operation: str, given: Json) -> tuple[str, str, bytes]:
    method = operation
    if interface.is_legacy:
        method, given = legacy.METHODS[operation], legacy.params(operation, given)
    elif interface.tenant is not None:
        given = {"tenant": interface.tenant, **given}
    page: Json = {"jsonrpc": "2.0", "id": REQUEST_ID, "method": method}
    if given or operation != "GetExtendedAgentCard":
        page["params"] = given
    return "POST", interface.url, json.write(page)


def _rest(interface: Interface, operation: str, given: Json) -> tuple[str, str, bytes]:
    route, base = ROUTES[operation], interface.url.rstrip("/")
    path = route.path
    if interface.is_legacy:
        base += "/v1"
        path = _LEGACY_CARD if operation == "GetExtendedAgentCard" else path
    elif interface.tenant is not None:
        base += f"/{_segment(interface.tenant)}"
    named = {name: given[name] for name in ("id", "taskId") if f"{{{name}}}" in path}
    rest = {name: value for name, value in given.items() if name not in named}
    url = base + path.format_map({name: _segment(value) for name, value in named.items()})
    if route.method != "POST":
        query = urlencode({name: _in_query(value) for name, value in rest.items()})
        return route.method, f"{url}?{query}" if query else url, b""
    body = legacy.rest_body(operation, given) if interface.is_legacy else rest
    return "POST", url, json.write(body)


def _segment(text: str) -> str:
    """A text as one part of a path: neither a slash nor dots can leave it."""
    return quote(text, safe="") if text.strip(".") else text.replace(".", "%2E")


def _in_query(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _headers(
    interface: Interface, extensions: Sequence[str], *, has_body: bool, is_stream: bool
) -> dict[str, str]:
    is_rest = interface.binding == HTTP_JSON and not interface.is_legacy
    content_type = A2A_JSON if is_rest else JSON
    accept = SSE if is_stream else f"{A2A_JSON}, {JSON};q=0.9" if is_rest else JSON
    headers = {"accept": accept, VERSION_HEADER: interface.version}
    if has_body:
        headers["content-type"] = content_type
    if extensions:
        listed = ",".join(extensions)
        headers[EXTENSIONS_HEADER] = listed
        if interface.is_legacy:
            headers[LEGACY_EXTENSIONS_HEADER] = listed
    return headers


def write_message(
    parts: Sequence[Part],
    *,
    message_id: str,
    task: str | None = None,
    context: str | None = None,
    metadata: Json | None = None,
    extensions: Sequence[str] = (),
) -> Json:
    """A message of ours, as 1.0 writes it."""
    message: Json = {
        "messageId": message_id,
        "role": "ROLE_USER",
        "parts": [write_part(_as_file(part)) for part in parts],
    }
    if context:
        message["contextId"] = context
    if task:
        message["taskId"] = task
    if metadata:
        message["metadata"] = metadata
    if extensions:
        message["extensions"] = list(extensions)
    return message


def _as_file(part: Part) -> Part:
    """A `data:` link as the file that it is: chats have no other word for an image of their own."""
    match = _DATA_URL.match(part.url) if isinstance(part, Link) else None
    if match is None or not isinstance(part, Link):
        return part
    content = part.url[match.end() :]
    if match["base64"] is None:
        content = b64encode(unquote_to_bytes(content)).decode()
    return File(content, part.name, match["type"] or part.media_type)


def sending(message: Json, *, wait: bool, metadata: Json | None = None) -> Json:
    """The parameters of sending a message; with `wait` it is answered when there is an end."""
    configuration: Json = {"historyLength": 0}
    if not wait:
        configuration["returnImmediately"] = True
    given: Json = {"message": message, "configuration": configuration}
    if metadata:
        given["metadata"] = metadata
    return given
