"""Both bindings as one object each: what is read, by which version, in whose words."""

from typing import Any

import pytest

from carnet.core.call import Claim
from carnet.core.messages.events import Text
from carnet.errors import (
    CarnetError,
    InvalidJson,
    InvalidRequest,
    RouteNotFound,
    UnsupportedProtocolVersion,
)
from carnet.wire.dialects.a2a import DIALECT, HTTP_DIALECT
from carnet.wire.dialects.a2a.request import OPERATIONS
from carnet.wire.dialects.dialect import TaskQuestion
from tests.wire.dialects.a2a.scene import MESSAGE, call, came, form_in, http, rpc

PUSH = {"taskId": "t1", "url": "https://x/", "id": "p1"}
PARAMS: dict[str, dict[str, Any]] = {
    "SendMessage": {"message": MESSAGE},
    "SendStreamingMessage": {"message": MESSAGE},
    "ListTasks": {},
    "CreateTaskPushNotificationConfig": PUSH,
    "GetTaskPushNotificationConfig": PUSH,
    "ListTaskPushNotificationConfigs": PUSH,
    "DeleteTaskPushNotificationConfig": PUSH,
    "GetExtendedAgentCard": {},
}
TASK = {"task": "t1"}
CONFIG = {"task": "t1", "config": "p1"}
ROUTES: dict[str, tuple[str, str, object, dict[str, str]]] = {
    "SendMessage": ("POST", "/message:send", {"message": MESSAGE}, {}),
    "SendStreamingMessage": ("POST", "/message:stream", {"message": MESSAGE}, {}),
    "GetTask": ("GET", "/tasks/{task}", None, TASK),
    "CancelTask": ("POST", "/tasks/{task}:cancel", None, TASK),
    "SubscribeToTask": ("POST", "/tasks/{task}:subscribe", {}, TASK),
    "ListTasks": ("GET", "/tasks", None, {}),
    "CreateTaskPushNotificationConfig": (
        *("POST", "/tasks/{task}/pushNotificationConfigs"),
        *({"url": "https://x/", "id": "p1"}, TASK),
    ),
    "ListTaskPushNotificationConfigs": (
        *("GET", "/tasks/{task}/pushNotificationConfigs"),
        *(None, TASK),
    ),
    "GetTaskPushNotificationConfig": (
        *("GET", "/tasks/{task}/pushNotificationConfigs/{config}"),
        *(None, CONFIG),
    ),
    "DeleteTaskPushNotificationConfig": (
        *("DELETE", "/tasks/{task}/pushNotificationConfigs/{config}"),
        *(None, CONFIG),
    ),
    "GetExtendedAgentCard": ("GET", "/extendedAgentCard", None, {}),
}


def plain(asked: Any) -> tuple[object, ...]:
    """What is asked, without how it was written."""
    if isinstance(asked, Claim):
        return asked.digest, asked.ask.stream, asked.agent
    assert isinstance(asked, TaskQuestion)
    return asked.about, asked.task, asked.agent, asked.name, asked.limit


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_operation_asks_the_same_in_both_bindings(operation: str) -> None:
    method, path, body, names = ROUTES[operation]
    by_rpc = rpc(operation, PARAMS.get(operation, {"id": "t1"}))
    by_http = http(method, path, body, names=names)
    assert plain(by_rpc) == plain(by_http)
    assert form_in(by_rpc)["id"] == 7
    assert form_in(by_http)["binding"] == "http"


def test_a_claim_keeps_the_binding_that_it_came_in() -> None:
    assert rpc("SendMessage", {"message": MESSAGE}).dialect == DIALECT.name == "a2a"
    claim = http("POST", "/message:send", {"message": MESSAGE})
    assert claim.dialect == HTTP_DIALECT.name == "a2a_http"
    again = HTTP_DIALECT.reread(claim.request, came(HTTP_DIALECT.ways[0], agent="echo"))
    assert (again.dialect, again.digest, again.key) == ("a2a_http", claim.digest, claim.key)
    assert DIALECT.proof(came(DIALECT.ways[0])) is None


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"{", InvalidJson),
        (b"[]", CarnetError),
        (b'{"jsonrpc": "1.0", "method": "GetTask"}', InvalidRequest),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "GetTask"}', InvalidRequest),
        (b'{"jsonrpc": "2.0", "id": true, "method": "GetTask"}', InvalidRequest),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "GetTask"}', InvalidRequest),
        (b'{"jsonrpc": "2.0", "method": 7}', InvalidRequest),
        (b'{"jsonrpc": "2.0", "method": "GetTask", "params": []}', InvalidRequest),
        (b'{"jsonrpc": "2.0", "method": "GetTask"}', InvalidRequest),
        (b'{"jsonrpc": "2.0", "method": "Nothing"}', RouteNotFound),
    ],
)
def test_a_request_that_is_none_is_refused(body: bytes, error: type[CarnetError]) -> None:
    with pytest.raises(error):
        DIALECT.read(came(DIALECT.ways[0], body, agent="echo"))


def test_a_refusal_knows_the_request_as_soon_as_its_id_is_read() -> None:
    arrival = came(DIALECT.ways[0], b'{"jsonrpc": "2.0", "id": "q", "method": 7}')
    with pytest.raises(InvalidRequest):
        DIALECT.read(arrival)
    assert arrival.request_id == "q"


@pytest.mark.parametrize("version", ["1.0", "0.3", "1.0.7", "", " 1.0 "])
def test_a_version_that_is_spoken_is_read(version: str) -> None:
    assert rpc("GetTask", {"id": "t"}, {"a2a-version": version})
    assert http("GET", "/tasks/{task}", names=TASK, query="A2A-Version=1.0")


@pytest.mark.parametrize("version", ["2.0", "0.2", "1", "one", "1.0.0.0", "1.٠", "9999.0"])
def test_another_version_is_refused(version: str) -> None:
    with pytest.raises(UnsupportedProtocolVersion):
        rpc("GetTask", {"id": "t"}, {"a2a-version": version})
    with pytest.raises(UnsupportedProtocolVersion):
        http("GET", "/tasks/{task}", names=TASK, query="A2A-Version=7.0")


def test_a_query_spells_numbers_and_flags() -> None:
    query = "historyLength=3&pageSize=7&includeArtifacts=true&contextId=7"
    asked = http("GET", "/tasks", query=query)
    assert (asked.limit, asked.context) == (7, "7")
    assert form_in(asked)["history"] == 3
    assert "artifacts" not in form_in(asked)
    assert form_in(http("GET", "/tasks", query="includeArtifacts=false"))["artifacts"] is False


@pytest.mark.parametrize(
    "query",
    ["pageSize=1&pageSize=2", "pageSize=x", "pageSize=0", "includeArtifacts=yes", "pageSize=-1"],
)
def test_a_query_that_is_none_is_refused(query: str) -> None:
    with pytest.raises(InvalidRequest):
        http("GET", "/tasks", query=query)


def test_extensions_are_activated_by_the_field_of_either_version() -> None:
    fields = {"a2a-extensions": "urn:a, urn:b", "x-a2a-extensions": "urn:c"}
    kept = form_in(rpc("GetTask", {"id": "t"}, fields))
    assert kept["extensions"] == ("urn:a", "urn:b", "urn:c")
    with pytest.raises(InvalidRequest):
        http("GET", "/tasks", fields={"a2a-extensions": "no uri"})


def test_an_answer_is_called_what_its_reader_takes() -> None:
    asked = http("GET", "/tasks", fields={"accept": "application/a2a+json, */*"})
    assert form_in(asked)["media"] == "application/a2a+json"


def test_a_result_and_what_was_accepted_are_told() -> None:
    assert DIALECT.result([Text("a"), Text("b")]) == {
        "artifacts": [{"artifactId": "answer", "parts": [{"text": "ab"}]}]
    }
    status, _, body = DIALECT.accepted(call())
    assert status == 200
    assert b"TASK_STATE_WORKING" in body
