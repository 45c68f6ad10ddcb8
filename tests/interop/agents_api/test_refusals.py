"""What is refused, and in which words: in a frame, or by the status of the answer."""

import json
from typing import Any

import pytest

from carnet.testing.stage import Organisation
from tests.support.agents_api.client import Client, data, message, text


def test_a_frame_that_is_not_json_rpc_is_refused_before_anything_else(client: Client) -> None:
    for version in ("1.0", 2.0, None):
        body: dict[str, Any] = {"jsonrpc": version, "id": 4, "method": "no/such", "params": {}}
        reply = client.post("/agent/echo", body)
        assert reply.status == 200
        assert reply.json["id"] == 4
        assert reply.json["error"]["code"] == -32600
        assert reply.json["error"]["message"] == "Request must be JSON-RPC 2.0."


@pytest.mark.parametrize(
    "params",
    [
        {},
        [],
        None,
        message(),
        message("   "),
        message(text("only this", contentType="context")),
        message(data({"role": "user", "text": "said before"})),
        message({"kind": "text", "text": "another discriminator"}),
        message({"type": "text", "text": 7}),
        message("hi", id=["x"]),
        message("hi", sessionId="x" * 257),
        message("hi", {"type": "file", "file": {"bytes": "no base64!"}}),
        {"message": {"parts": "hello"}},
    ],
)
@pytest.mark.parametrize("method", ["message/send", "message/stream", "no/such"])
def test_parameters_are_judged_before_the_name_of_the_method(
    client: Client, params: object, method: str
) -> None:
    error = client.error("echo", method, params)
    assert error["code"] == -32602
    assert error["data"]["code"] == "agents_chat_jsonrpc_invalid_params"


def test_an_unknown_method_is_named_in_the_refusal(client: Client) -> None:
    error = client.error("echo", "no/such", message("hi"))
    assert (error["code"], error["message"]) == (-32601, 'Unknown JSON-RPC method "no/such".')
    error = client.error("echo", 'x"<b>' + "y" * 200, message("hi"))
    assert error["code"] == -32601
    assert "<b>" not in error["message"]
    assert len(error["message"]) < 120


def test_the_id_of_a_request_is_told_again_if_it_can_be_one(client: Client) -> None:
    ids: list[tuple[object, object]] = [("a", "a"), (7, 7), (None, None), (1.5, None), ([1], None)]
    for sent, shown in ids:
        body = {"jsonrpc": "2.0", "id": sent, "method": "message/send", "params": message("hi")}
        assert client.post("/agent/echo", body).json["id"] == shown


def test_a_body_that_is_not_json_is_refused_by_the_status(client: Client) -> None:
    reply = client.post("/agent/echo", b"{not json")
    assert reply.status == 400
    assert reply.json["code"] == "rest_invalid_json"
    assert reply.json["data"]["status"] == 400


def test_who_is_not_known_is_told_by_the_status(gateway: Organisation) -> None:
    reply = Client(gateway.url, "no-token").ask("echo", "message/send", message("hi"))
    assert reply.status == 401
    assert reply.json["code"] == "agents_api_token_invalid"
    assert reply.json["data"]["status"] == 401
    assert reply.headers["www-authenticate"] == "Bearer"


def test_who_may_not_call_is_told_so_by_the_status_in_the_words_of_the_path(
    gateway: Organisation,
) -> None:
    token = gateway.new_token("only-tells", "--scope", "call:tells")
    client = Client(gateway.url, token)
    for method in ("message/send", "message/stream"):
        reply = client.ask("echo", method, message("hi"))
        assert (reply.status, reply.json["code"]) == (403, "agents_chat_jsonrpc_forbidden")
        assert reply.json["data"]["status"] == 403
    reply = client.chat(agent="echo", message="hi")
    assert (reply.status, reply.json["code"]) == (403, "agents_frontend_chat_forbidden")


def test_an_agent_that_there_is_not_has_nobody_who_answers(client: Client) -> None:
    error = client.error("nobody", "message/send", message("hi"))
    assert (error["code"], error["data"]["code"]) == (-32603, "agents_chat_no_handler")
    assert client.chat(agent="nobody", message="hi").json["code"] == "agents_chat_no_handler"


def test_a_name_without_a_slug_may_not_be_called(client: Client) -> None:
    reply = client.ask("...", "message/send", message("hi"))
    assert (reply.status, reply.json["code"]) == (403, "agents_chat_jsonrpc_forbidden")


def test_a_name_outside_its_characters_is_no_path_of_the_dialect(client: Client) -> None:
    for name in ("a%20b", "a!b", "x" * 129):
        reply = client.ask(name, "message/send", message("hi"))
        assert (reply.status, reply.json["code"]) == (404, "rest_no_route")


def test_a_chain_that_is_too_deep_is_refused_with_its_ceiling(client: Client) -> None:
    fields = [
        ("x-agents-api-caller-agent", "planner"),
        ("x-agents-api-caller-host", "https://source.example"),
        ("x-agents-api-chain-depth", "17"),
        ("x-agents-api-chain-root", "root-17"),
    ]
    reply = client.ask("echo", "message/send", message("hi"), fields=fields)
    assert reply.status == 429
    assert reply.json["code"] == "agents_api_chain_depth_exceeded"
    found = reply.json["data"]
    assert (found["status"], found["chain_depth"], found["retry_after"]) == (429, 17, 60)
    assert found["chain_root_request_id"] == "root-17"


def test_a_refusal_of_a_stream_is_one_frame_of_it(client: Client) -> None:
    reply = client.ask("nobody", "message/stream", message("hi"))
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    (line,) = [line for line in reply.body.splitlines() if line]
    frame: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
    assert (frame["id"], frame["error"]["code"]) == ("q1", -32603)


def test_a_path_that_there_is_not_is_refused_in_the_words_of_the_dialect(client: Client) -> None:
    reply = client.post("/no/such/path", {})
    assert (reply.status, reply.json["code"]) == (404, "rest_no_route")
