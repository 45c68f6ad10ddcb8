"""Requests to A2A agents, in both bindings and both versions."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.messages.events import DataPart, File, Link
from carnet.errors import UsageInvalid
from carnet.wire.dialects.a2a.client import (
    HTTP_JSON,
    ROUTES,
    Interface,
    sending,
    write_message,
    write_request,
)

URL = "https://x.example/a2a"
RPC, REST = Interface(url=URL), Interface(url=URL, binding=HTTP_JSON)
OLD = Interface(url=URL, version="0.3")
OLD_REST = Interface(url=URL, binding=HTTP_JSON, version="0.3")
IDS = {"id": "t/1", "taskId": "t/1"}
FILES = ("hi", DataPart({"a": 1}), DataPart(3), File("AAEC", "f", "x/y"), Link("https://y", "g"))
MESSAGE = write_message(FILES, message_id="m1", task="t1", context="c1", metadata={"k": "v"})


def page(interface: Interface, operation: str, given_: dict[str, Any]) -> Any:
    return json.loads(write_request(interface, operation, given_).body)


@pytest.mark.parametrize("operation", ROUTES)
def test_over_json_rpc_every_operation_is_a_method(operation: str) -> None:
    request = write_request(RPC, operation, IDS)
    assert (request.method, request.url) == ("POST", URL)
    body = json.loads(request.body)
    assert (body["jsonrpc"], body["id"], body["method"]) == ("2.0", "1", operation)
    assert body["params"] == IDS
    assert request.headers["a2a-version"] == "1.0"
    assert request.headers["content-type"] == "application/json"
    is_stream = operation in {"SendStreamingMessage", "SubscribeToTask"}
    assert request.is_stream is is_stream
    assert (request.headers["accept"] == "text/event-stream") is is_stream


def test_a_call_without_parameters_has_none() -> None:
    assert "params" not in page(RPC, "GetExtendedAgentCard", {})
    assert page(RPC, "ListTasks", {})["params"] == {}


@pytest.mark.parametrize(
    ("operation", "given_", "method", "path"),
    [
        ("SendMessage", {}, "POST", "/message:send"),
        ("SendStreamingMessage", {}, "POST", "/message:stream"),
        ("GetTask", {"id": "t/1", "historyLength": 0}, "GET", "/tasks/t%2F1?historyLength=0"),
        ("ListTasks", {"contextId": "a&b", "includeArtifacts": True}, "GET",
         "/tasks?contextId=a%26b&includeArtifacts=true"),
        ("ListTasks", {"includeArtifacts": False}, "GET", "/tasks?includeArtifacts=false"),
        ("CancelTask", {"id": "../x"}, "POST", "/tasks/..%2Fx:cancel"),
        ("CancelTask", {"id": ".."}, "POST", "/tasks/%2E%2E:cancel"),
        ("SubscribeToTask", {"id": "t1"}, "POST", "/tasks/t1:subscribe"),
        ("CreateTaskPushNotificationConfig", {"taskId": "t1", "url": "u"}, "POST",
         "/tasks/t1/pushNotificationConfigs"),
        ("GetTaskPushNotificationConfig", {"taskId": "t1", "id": "p"}, "GET",
         "/tasks/t1/pushNotificationConfigs/p"),
        ("ListTaskPushNotificationConfigs", {"taskId": "t1"}, "GET",
         "/tasks/t1/pushNotificationConfigs"),
        ("DeleteTaskPushNotificationConfig", {"taskId": "t1", "id": "p"}, "DELETE",
         "/tasks/t1/pushNotificationConfigs/p"),
        ("GetExtendedAgentCard", {}, "GET", "/extendedAgentCard"),
    ],
)  # fmt: skip
def test_over_http_every_operation_has_its_path(
    operation: str, given_: dict[str, Any], method: str, path: str
) -> None:
    request = write_request(REST, operation, given_)
    assert (request.method, request.url) == (method, URL + path)
    assert ("content-type" in request.headers) is (method == "POST")
    if method == "POST":
        assert request.headers["content-type"] == "application/a2a+json"
        assert "id" not in json.loads(request.body)
    else:
        assert request.body == b""


@given(st.text(min_size=1, max_size=30))
def test_no_id_can_lead_to_another_path(name: str) -> None:
    url = write_request(REST, "GetTask", {"id": name.encode(errors="replace").decode()}).url
    rest = url.removeprefix(f"{URL}/tasks/")
    assert {"/", "?", "#", " "}.isdisjoint(rest)
    assert rest.strip(".")


def test_a_tenant_is_told_in_every_request() -> None:
    tenant = Interface(url=f"{URL}/", tenant="a/b")
    assert page(tenant, "GetTask", {"id": "t"})["params"] == {"tenant": "a/b", "id": "t"}
    rest = Interface(url=f"{URL}/", binding=HTTP_JSON, tenant="a/b")
    assert write_request(rest, "GetTask", {"id": "t"}).url == f"{URL}/a%2Fb/tasks/t"


def test_extensions_are_named_in_the_header_of_the_version() -> None:
    uris = ["urn:a", "urn:b"]
    new = write_request(RPC, "SendMessage", {}, extensions=uris).headers
    assert new["a2a-extensions"] == "urn:a,urn:b"
    assert "x-a2a-extensions" not in new
    old = write_request(OLD, "GetTask", {"id": "t"}, extensions=uris).headers
    assert old["x-a2a-extensions"] == "urn:a,urn:b"
    assert old["a2a-version"] == "0.3"


def test_a_message_holds_what_it_is_given() -> None:
    assert MESSAGE == {
        "messageId": "m1",
        "role": "ROLE_USER",
        "parts": [
            {"text": "hi"},
            {"data": {"a": 1}},
            {"data": 3},
            {"raw": "AAEC", "filename": "f", "mediaType": "x/y"},
            {"url": "https://y", "filename": "g"},
        ],
        "contextId": "c1",
        "taskId": "t1",
        "metadata": {"k": "v"},
    }
    assert set(write_message(("",), message_id="m")) == {"messageId", "role", "parts"}
    assert write_message(("",), message_id="m", extensions=["u"])["extensions"] == ["u"]


@pytest.mark.parametrize(
    ("url", "part"),
    [
        ("data:image/png;base64,AAEC", {"raw": "AAEC", "mediaType": "image/png"}),
        ("data:,a%20b", {"raw": "YSBi", "mediaType": "image/*"}),
        ("data:text/plain;charset=utf-8;base64,YQ==", {"raw": "YQ==", "mediaType": "text/plain"}),
        ("https://x/y", {"url": "https://x/y", "mediaType": "image/*"}),
    ],
)
def test_a_link_that_holds_its_file_is_sent_as_one(url: str, part: dict[str, str]) -> None:
    message = write_message((Link(url, media_type="image/*"),), message_id="m")
    assert message["parts"] == [part]


def test_who_does_not_wait_says_so() -> None:
    assert sending({}, wait=True)["configuration"] == {"historyLength": 0}
    quick = sending({}, wait=False, metadata={"a": 1})
    assert quick["configuration"]["returnImmediately"] is True
    assert quick["metadata"] == {"a": 1}


# ---------------------------------------------------------------------- 0.3


def test_the_former_version_is_written_in_its_words() -> None:
    body = page(OLD, "SendMessage", sending(MESSAGE, wait=False))
    assert body["method"] == "message/send"
    message = body["params"]["message"]
    assert (message["kind"], message["role"]) == ("message", "user")
    assert [part["kind"] for part in message["parts"]] == ["text", "data", "data", "file", "file"]
    assert message["parts"][2]["data"] == {"value": 3}  # which must be an object there
    assert message["parts"][3]["file"] == {"bytes": "AAEC", "name": "f", "mimeType": "x/y"}
    assert message["parts"][4]["file"] == {"uri": "https://y", "name": "g"}
    assert body["params"]["configuration"] == {"historyLength": 0, "blocking": False}
    assert MESSAGE["role"] == "ROLE_USER"  # what was given is as it was
    assert page(OLD, "SendMessage", sending(MESSAGE, wait=True))["params"]["configuration"][
        "blocking"
    ]


def test_a_file_without_a_name_has_none() -> None:
    body = page(OLD, "SendMessage", {"message": write_message((File("AA=="),), message_id="m")})
    assert body["params"]["message"]["parts"] == [{"kind": "file", "file": {"bytes": "AA=="}}]


def test_metadata_of_parts_is_kept() -> None:
    message = {"messageId": "m", "parts": [{"text": "a", "metadata": {"k": 1}}]}
    body = page(OLD, "SendStreamingMessage", {"message": message})
    assert body["params"]["message"]["parts"] == [
        {"kind": "text", "text": "a", "metadata": {"k": 1}}
    ]


def test_push_configurations_of_the_former_version() -> None:
    config = {
        "taskId": "t", "id": "p", "url": "u", "token": "s",
        "authentication": {"scheme": "Bearer", "credentials": "c"},
    }  # fmt: skip
    made = page(OLD, "CreateTaskPushNotificationConfig", config)
    assert made["method"] == "tasks/pushNotificationConfig/set"
    old = {"id": "p", "url": "u", "token": "s"}
    old_config = {**old, "authentication": {"schemes": ["Bearer"], "credentials": "c"}}
    assert made["params"] == {"taskId": "t", "pushNotificationConfig": old_config}
    shown = page(OLD, "GetTaskPushNotificationConfig", {"taskId": "t", "id": "p"})
    assert shown["params"] == {"id": "t", "pushNotificationConfigId": "p"}
    assert page(OLD, "ListTaskPushNotificationConfigs", {"taskId": "t"})["params"] == {"id": "t"}
    rest = write_request(OLD_REST, "CreateTaskPushNotificationConfig", config)
    assert rest.url == f"{URL}/v1/tasks/t/pushNotificationConfigs"
    assert json.loads(rest.body) == {
        "parent": "tasks/t",
        "configId": "p",
        "config": {
            "name": "tasks/t/pushNotificationConfigs/p",
            "pushNotificationConfig": old_config,
        },
    }
    given_ = {"configuration": {"taskPushNotificationConfig": config}, "message": MESSAGE}
    plain = page(OLD, "CreateTaskPushNotificationConfig", {"taskId": "t", "url": "u"})
    assert plain["params"]["pushNotificationConfig"] == {"url": "u"}
    sent = page(OLD, "SendMessage", given_)
    assert sent["params"]["configuration"]["pushNotificationConfig"] == old_config


def test_the_former_version_over_http() -> None:
    request = write_request(OLD_REST, "SendMessage", sending(MESSAGE, wait=True))
    assert request.url == f"{URL}/v1/message:send"
    assert request.headers["content-type"] == "application/json"
    message = json.loads(request.body)["message"]
    assert message["role"] == "ROLE_USER"
    assert message["content"] == [
        {"text": "hi"},
        {"data": {"data": {"a": 1}}},
        {"data": {"data": {"value": 3}}},
        {"file": {"fileWithBytes": "AAEC", "name": "f", "mimeType": "x/y"}},
        {"file": {"fileWithUri": "https://y", "name": "g"}},
    ]
    assert write_request(OLD_REST, "CancelTask", {"id": "t"}).body == b"{}"
    assert write_request(OLD_REST, "GetExtendedAgentCard", {}).url == f"{URL}/v1/card"


@pytest.mark.parametrize(
    ("interface", "operation"),
    [
        (OLD, "ListTasks"),
        (OLD_REST, "ListTasks"),
        (OLD_REST, "ListTaskPushNotificationConfigs"),
        (OLD_REST, "DeleteTaskPushNotificationConfig"),
    ],
)
def test_what_the_former_version_has_not_is_refused(interface: Interface, operation: str) -> None:
    with pytest.raises(UsageInvalid):
        write_request(interface, operation, {"taskId": "t", "id": "p"})


def test_the_same_question_is_the_same_bytes() -> None:
    both = [write_request(each, "SendMessage", sending(MESSAGE, wait=True)) for each in (RPC, RPC)]
    assert both[0] == both[1]
