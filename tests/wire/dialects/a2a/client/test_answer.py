"""The body of an answer, out of its binding and its version."""

import json
from typing import Any

import pytest

from carnet.errors import PeerRefused, ProviderError, TaskNotFound
from carnet.wire.dialects.a2a.client import HTTP_JSON, Interface, read_result
from carnet.wire.dialects.a2a.client.task import read_config, read_configs, read_task, read_update

URL = "https://x.example"
RPC, REST = Interface(url=URL), Interface(url=URL, binding=HTTP_JSON)
OLD = Interface(url=URL, version="0.3")
OLD_REST = Interface(url=URL, binding=HTTP_JSON, version="0.3")


def body(result: object, **more: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": "1", "result": result, **more}).encode()


def test_a_result_is_taken_out_of_its_envelope() -> None:
    assert read_result(RPC, "GetTask", body({"id": "t"})) == {"id": "t"}
    assert read_result(REST, "GetTask", b'{"id": "t"}') == {"id": "t"}
    assert read_result(REST, "DeleteTaskPushNotificationConfig", b"") == {}
    empty = b'{"jsonrpc": "2.0", "id": "1"}'
    assert read_result(RPC, "DeleteTaskPushNotificationConfig", empty) is None


@pytest.mark.parametrize(
    "wrong",
    [
        b"",
        b"[]",
        b"{",
        b'{"a": 1, "a": 2}',
        b'{"result": {}}',
        body({}, jsonrpc="1.0"),
        body({}, id="2"),
        b'{"jsonrpc": "2.0", "id": "1"}',
        b'{"jsonrpc":"2.0","id":"1","result":' + b"[" * 70 + b"]" * 70 + b"}",
    ],
)
def test_what_is_no_answer_is_refused(wrong: bytes) -> None:
    with pytest.raises(ProviderError):
        read_result(RPC, "GetTask", wrong)


def test_an_error_is_raised_in_either_binding() -> None:
    error = {"code": -32001, "message": "no"}
    with pytest.raises(TaskNotFound):
        read_result(RPC, "GetTask", json.dumps({"jsonrpc": "2.0", "error": error}).encode())
    status = {"code": 400, "details": [{"@type": "x"}, {"@type": INFO, "reason": "INVALID_PARAMS"}]}
    with pytest.raises(PeerRefused):
        read_result(REST, "GetTask", json.dumps({"error": status}).encode())
    assert read_result(REST, "GetTask", b'{"error": "a member"}') == {"error": "a member"}


INFO = "type.googleapis.com/google.rpc.ErrorInfo"

# ---------------------------------------------------------------------- 0.3

OLD_PARTS = [
    {"kind": "text", "text": "a", "metadata": {"k": 1}},
    {"kind": "data", "data": {"data": 1}},
    {"kind": "file", "file": {"bytes": "AAEC", "name": "f", "mimeType": "x/y"}},
    {"kind": "file", "file": {"uri": "u:1"}},
]
REST_PARTS = [
    {"text": "a"},
    {"data": {"data": {"data": 1}}},
    {"file": {"fileWithBytes": "AAEC", "name": "f", "mimeType": "x/y"}},
    {"file": {"fileWithUri": "u:1"}},
]


def old_task(parts: list[Any], state: str, message: dict[str, Any]) -> dict[str, Any]:
    status = {"state": state, **message}
    return {"id": "t", "status": status, "artifacts": [{"artifactId": "a", "parts": parts}]}


def test_the_former_version_reads_like_the_present_one() -> None:
    says = {"messageId": "m", "role": "agent", "parts": OLD_PARTS, "kind": "message"}
    rest_says = {"messageId": "m", "role": "ROLE_AGENT", "content": REST_PARTS}
    old = old_task(OLD_PARTS, "input-required", {"message": says})
    rest = old_task(REST_PARTS, "TASK_STATE_INPUT_REQUIRED", {"update": rest_says})
    by_rpc = read_task(read_result(OLD, "GetTask", body(old)))
    by_rest = read_task(read_result(OLD_REST, "GetTask", json.dumps(rest).encode()))
    assert by_rpc == by_rest
    assert (by_rpc.status.state, len(by_rpc.artifacts[0].parts)) == ("input_required", 4)
    message = read_update(read_result(OLD, "SendMessage", body(says)))
    assert message == read_update(
        read_result(OLD_REST, "SendMessage", json.dumps({"msg": rest_says}).encode())
    )
    task = read_update(read_result(OLD, "SendMessage", body({**old, "kind": "task"})))
    assert task == by_rpc


def test_updates_of_the_former_version() -> None:
    status = {
        "taskId": "t",
        "status": {"state": "canceled"},
        "kind": "status-update",
        "final": True,
    }
    piece = {"taskId": "t", "artifact": {"artifactId": "a", "parts": OLD_PARTS}}
    for each, name in ((status, "status"), ({**piece, "kind": "artifact-update"}, "artifact")):
        found = read_update(read_result(OLD, "SubscribeToTask", body(each)))
        assert hasattr(found, name)
    spelled = {"taskId": "t", "status": {"state": "TASK_STATE_CANCELLED"}}
    rest = json.dumps({"statusUpdate": spelled}).encode()
    found = read_update(read_result(OLD_REST, "SubscribeToTask", rest))
    assert found == read_update(read_result(OLD, "SubscribeToTask", body(status)))


def test_push_configurations_of_the_former_version() -> None:
    inner = {"id": "p", "url": "https://x", "authentication": {"schemes": ["Bearer"]}}
    config = {"taskId": "t", "pushNotificationConfig": inner}
    found = read_config(read_result(OLD, "GetTaskPushNotificationConfig", body(config)))
    assert (found.id, found.task) == ("p", "t")
    name = "tasks/t/pushNotificationConfigs/p"
    rest = {"name": name, "pushNotificationConfig": {"id": "p", "url": "https://x"}}
    shown = read_result(OLD_REST, "GetTaskPushNotificationConfig", json.dumps(rest).encode())
    assert read_config(shown) == found
    listed = read_result(OLD, "ListTaskPushNotificationConfigs", body([config]))
    assert read_configs(listed) == (found,)


@pytest.mark.parametrize("operation", ["SendMessage", "GetTask", "GetTaskPushNotificationConfig"])
@pytest.mark.parametrize(
    "value",
    [
        7,
        {"kind": "task", "status": 7, "artifacts": 7},
        {"kind": "task", "status": {"state": 7, "message": 7}, "artifacts": [7, {"parts": 7}]},
        {"kind": "message", "role": 7, "parts": [7, {}, {"kind": "data"}]},
        {"kind": "artifact-update", "artifact": 7},
        {"task": 7},
        {"pushNotificationConfig": {"url": 7, "authentication": {}}},
        {"pushNotificationConfig": 7},
    ],
)
def test_whatever_the_former_version_brings_is_refused_by_the_one_reader(
    operation: str, value: object
) -> None:
    found = read_result(OLD, operation, body(value))
    for read in (read_update, read_task, read_config):
        with pytest.raises(ProviderError):
            read(found)


def test_a_list_that_is_none_and_a_card_pass_as_they_came() -> None:
    assert read_result(OLD, "ListTaskPushNotificationConfigs", body(7)) == 7
    assert read_result(OLD, "GetExtendedAgentCard", body({"name": "a"})) == {"name": "a"}
