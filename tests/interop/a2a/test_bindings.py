"""How each binding carries what is asked and told: its frame, its fields, its errors."""

import json
from typing import Any

import pytest

from tests.support.a2a.wire import (
    BINDINGS,
    JSON,
    OVER_HTTP,
    VERSION,
    Line,
    message,
    reason_of,
    written,
)
from tests.support.http import Reply, request

Lines = dict[str, Line]


def send(line: Line, body: object, *fields: tuple[str, str], path: str = "") -> Reply:
    own = [("authorization", f"Bearer {line.token}"), *(fields or (JSON, VERSION))]
    return request("POST", line.url + path, own, json.dumps(body).encode())


@pytest.mark.parametrize("name", [7, "seven", None])
def test_an_answer_of_json_rpc_names_its_request(lines: Lines, name: object) -> None:
    body = {"jsonrpc": "2.0", "id": name, "method": "SendMessage", "params": message()}
    for given in (body, {**body, "params": {}}):
        reply = send(lines["echo"], given)
        assert reply.headers["content-type"] == "application/json"
        assert (reply.json["jsonrpc"], reply.json["id"]) == ("2.0", name)
        assert ("result" in reply.json) is not ("error" in reply.json)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"jsonrpc": "1.0"}, -32600),
        ({"method": "message/sent"}, -32601),
        ({"method": "sendMessage"}, -32601),
        ({"method": 1}, -32600),
        ({"id": {}}, -32600),
        ({"params": []}, -32600),
    ],
)
def test_what_is_no_request_of_json_rpc_is_refused(
    lines: Lines, change: dict[str, Any], code: int
) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message(), **change}
    error = send(lines["echo"], body).json["error"]
    assert error["code"] == code
    assert isinstance(error["message"], str)
    assert isinstance(error["data"], list)


def test_what_is_no_json_is_told_as_such_in_both(lines: Lines) -> None:
    line = lines["echo"]
    own = [("authorization", f"Bearer {line.token}"), JSON, VERSION]
    assert request("POST", line.url, own, b"{").json["error"]["code"] == -32700
    reply = request("POST", line.url + "/message:send", own, b"{")
    assert (reply.status, reply.json["error"]["status"]) == (400, "INVALID_ARGUMENT")


@pytest.mark.parametrize("binding", BINDINGS)
def test_fields_of_the_protocol_are_read_in_any_case_and_with_several_values(
    lines: Lines, binding: str
) -> None:
    uris = "urn:carnet:a2a:chain:v1, urn:carnet:a2a:usage:v1"
    fields = [("A2A-VERSION", "1.0"), ("a2A-eXtensions", uris)]
    reply = lines["echo"].ask(binding, "SendMessage", fields=fields, **message())
    assert reply.status == 200
    assert reply.headers["a2a-extensions"] == uris


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_stream_is_of_server_sent_events_each_of_them_whole(lines: Lines, binding: str) -> None:
    reply = lines["echo"].ask(binding, "SendStreamingMessage", **message("one two"))
    assert reply.headers["content-type"].startswith("text/event-stream")
    events = [json.loads(each[6:]) for each in reply.body.splitlines() if each[:6] == b"data: "]
    if binding == "JSONRPC":
        assert {(each["jsonrpc"], each["id"]) for each in events} == {("2.0", 1)}
        events = [each["result"] for each in events]
    kinds = {"task", "message", "statusUpdate", "artifactUpdate"}
    assert [len(each.keys() & kinds) for each in events] == [1] * len(events)


ERRORS = [
    ("echo", "GetTask", {"id": "none"}, -32001, 404, "TASK_NOT_FOUND"),
    ("echo", "CancelTask", {"id": "done"}, -32002, 400, "TASK_NOT_CANCELABLE"),
    ("echo", "SubscribeToTask", {"id": "done"}, -32004, 400, "UNSUPPORTED_OPERATION"),
    ("echo", "SendMessage", {"taskId": "done"}, -32004, 400, "UNSUPPORTED_OPERATION"),
    ("echo", "SendStreamingMessage", {"taskId": "done"}, -32004, 400, "UNSUPPORTED_OPERATION"),
]


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize(("agent", "operation", "given", "code", "status", "reason"), ERRORS)
def test_an_error_of_the_protocol_has_its_code_its_status_and_its_reason(
    lines: Lines,
    binding: str,
    agent: str,
    operation: str,
    given: dict[str, str],
    code: int,
    status: int,
    reason: str,
) -> None:
    line = lines[agent]
    done = line.task(binding)["id"]
    named = {name: done if value == "done" else value for name, value in given.items()}
    params = message(**named) if "Message" in operation else named
    check(line.ask(binding, operation, **params), binding, code, status, reason)


def check(reply: Reply, binding: str, code: int, status: int, reason: str) -> None:
    error = reply.json["error"]
    assert error["message"]
    assert reason_of(error) == (reason, "a2a-protocol.org")
    if binding == "JSONRPC":
        assert (error["code"], -32099 <= error["code"] <= -32001) == (code, True)
        return
    assert (reply.status, error["code"]) == (status, status)
    assert error["status"] == ("NOT_FOUND" if status == 404 else "FAILED_PRECONDITION")


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("version", ["9.9", "1.1", "one", "1"])
def test_a_version_that_is_not_spoken_is_refused(lines: Lines, binding: str, version: str) -> None:
    fields = [("a2a-version", version)]
    reply = lines["echo"].ask(binding, "SendMessage", fields=fields, **message())
    check(reply, binding, -32009, 400, "VERSION_NOT_SUPPORTED")
    named = written(binding, "SendMessage", **message())
    url = f"{lines['echo'].url}{named[1]}?A2A-Version={version}"
    own = [("authorization", f"Bearer {lines['echo'].token}"), JSON]
    check(request("POST", url, own, named[2]), binding, -32009, 400, "VERSION_NOT_SUPPORTED")


@pytest.mark.parametrize("binding", BINDINGS)
def test_a_patch_version_counts_for_nothing_and_a_parameter_names_one_as_well(
    lines: Lines, binding: str
) -> None:
    line = lines["echo"]
    fields = [("a2a-version", "1.0.7")]
    assert line.ask(binding, "SendMessage", fields=fields, **message()).status == 200
    method, path, body = written(binding, "SendMessage", **message())
    own = [("authorization", f"Bearer {line.token}"), JSON]
    reply = request(method, f"{line.url}{path}?A2A-Version=1.0", own, body)
    assert "kind" not in reply.json.get("result", reply.json)


def test_who_names_no_version_and_speaks_the_former_one_is_answered_in_it(lines: Lines) -> None:
    part = {"kind": "text", "text": "hello"}
    stated = {"messageId": "former", "role": "user", "parts": [part], "kind": "message"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": stated}}
    for fields in ((JSON,), (JSON, ("a2a-version", "0.3")), (JSON, ("a2a-version", ""))):
        found = send(lines["echo"], body, *fields).json["result"]
        assert (found["kind"], found["status"]["state"]) == ("task", "completed")
        assert found["artifacts"][0]["parts"] == [part]
    refused = send(lines["echo"], body, JSON, VERSION).json["error"]
    assert refused["code"] == -32601  # by the rules of the version that it names


def test_each_operation_has_its_path_and_its_method(lines: Lines) -> None:
    line = lines["asks"]
    task = line.task("HTTP+JSON")["id"]
    for operation, (method, path) in OVER_HTTP.items():
        if path in {"/message:stream", "/tasks/{id}:subscribe"}:
            continue  # streams, which are read elsewhere
        others = {"GET", "POST", "PUT", "PATCH", "DELETE"} - {
            used for used, known in OVER_HTTP.values() if known == path
        }
        named = path.format(id=task, taskId=task)
        for other in sorted(others):
            own = [("authorization", f"Bearer {line.token}"), JSON, VERSION]
            reply = request(other, line.url + named, own, b"{}")
            assert reply.status == 405, (operation, other)
            assert method in reply.headers["allow"]
    own = [("authorization", f"Bearer {line.token}"), VERSION]
    assert request("GET", line.url + "/task", own).status == 404


def test_the_type_of_an_answer_over_http_is_what_its_caller_takes(lines: Lines) -> None:
    line, own = lines["echo"], [VERSION, ("accept", "application/a2a+json, application/json")]
    task = line.ask("HTTP+JSON", "SendMessage", fields=own, **message())
    assert task.headers["content-type"] == "application/a2a+json"
    plain = line.ask("HTTP+JSON", "GetTask", id=task.json["task"]["id"])
    assert plain.headers["content-type"] == "application/json"
    body = json.dumps(message()).encode()
    taken, refused = (
        request(
            "POST",
            line.url + "/message:send",
            [("authorization", f"Bearer {line.token}"), ("content-type", given), VERSION],
            body,
        )
        for given in ("application/a2a+json", "text/plain")
    )
    assert (taken.status, refused.status) == (200, 415)
    assert reason_of(refused.json["error"]) == ("CONTENT_TYPE_NOT_SUPPORTED", "a2a-protocol.org")


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("pageSize=ten", "pageSize"),
        ("pageSize=0", "pageSize"),
        ("historyLength=-1", "historyLength"),
        ("includeArtifacts=yes", "includeArtifacts"),
        ("status=done", "status"),
        ("statusTimestampAfter=yesterday", "statusTimestampAfter"),
        ("pageToken=x", "pageToken"),
        ("pageSize=1&pageSize=2", "pageSize"),
    ],
)
def test_a_parameter_of_a_query_has_its_spelling(lines: Lines, query: str, field: str) -> None:
    line = lines["echo"]
    own = [("authorization", f"Bearer {line.token}"), VERSION]
    error = request("GET", f"{line.url}/tasks?{query}", own).json["error"]
    assert (error["code"], error["status"]) == (400, "INVALID_ARGUMENT")
    assert field in json.dumps(error)
    well = "pageSize=1&includeArtifacts=true&status=TASK_STATE_COMPLETED&contextId=a%20b"
    moment = "statusTimestampAfter=2026-11-18T10%3A00%3A00Z"
    assert request("GET", f"{line.url}/tasks?{well}&{moment}", own).status == 200
