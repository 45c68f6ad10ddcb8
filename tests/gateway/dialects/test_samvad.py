"""The SAMVAD endpoints of a real gateway, on each store: cards, answers, streams, refusals."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.http import Reply, request
from tests.support.organisation import Organisation
from tests.support.served import executions
from tests.support.signing.signed import (
    MESSAGE,
    STREAM,
    Line,
    Sender,
    frames,
    message,
    refusal,
    result,
    sign,
    unsigned,
)

DOMAIN = "acme.example"
DEFAULT = f"agent://{DOMAIN}"
CARD = "/.well-known/agent.json"


class Client:
    """A pinned sender on one connection."""

    def __init__(self, acme: Organisation, line: Line) -> None:
        self.acme = acme
        self.line = line
        self.sender = Sender("agent://client-gateway")
        acme.carnet("peers", "add", self.sender.identity, "--key", self.sender.public)

    def send(self, to: str = DEFAULT, **fields: Any) -> Reply:
        return self.line.send(message(self.sender, to, **fields))

    def ask(self, agent: str, text: str, path: str = MESSAGE) -> Reply:
        """Ask an agent at its prefix, with a token beside the signature."""
        return self.send(
            f"agent://{agent.replace('_', '-')}.{DOMAIN}",
            target=f"/agents/{agent}{path}",
            payload={"text": text},
            auth={"scheme": "bearer", "token": self.acme.token},
        )


@pytest.fixture(scope="module")
def client(acme: Organisation) -> Iterator[Client]:
    with Line(acme.port) as line:
        yield Client(acme, line)


def get(acme: Organisation, path: str) -> Reply:
    return request("GET", acme.url + path)


# ------------------------------------------------------------- what agents say of themselves


def test_the_card_of_the_default_agent_is_at_the_root_and_at_its_prefix(
    acme: Organisation,
) -> None:
    root = get(acme, CARD)
    assert (root.status, root.headers["content-type"]) == (200, "application/json")
    assert root.headers["cache-control"] == f"public, max-age={root.json['cardTTL']}"
    assert (root.json["id"], root.json["url"]) == (DEFAULT, acme.url)
    assert root.json["protocolVersion"] == "1.2"
    assert root.json["rateLimit"] == {"requestsPerMinute": 60_000, "requestsPerSender": 600}
    assert get(acme, f"/agents/echo{CARD}").body == root.body


def test_another_agent_has_its_card_at_its_prefix_and_at_its_host(acme: Organisation) -> None:
    named = get(acme, f"/agents/words{CARD}")
    assert named.json["id"] == f"agent://words.{DOMAIN}"
    assert named.json["url"] == f"{acme.url}/agents/words"
    assert named.json["auth"] == {"schemes": ["bearer", "none"]}
    with Line(acme.port) as line:
        for host in (f"words.{DOMAIN}", f"WORDS.{DOMAIN}:{acme.port}"):
            assert line.send(card_of(host)).body == named.body
        assert line.send(card_of(f"nobody.{DOMAIN}")).json["id"] == DEFAULT


def card_of(host: str) -> bytes:
    return f"GET {CARD} HTTP/1.1\r\nhost: {host}\r\n\r\n".encode()


def test_a_name_that_no_host_can_have_gets_one_that_it_can(acme: Organisation) -> None:
    card = get(acme, f"/agents/own_pocket{CARD}").json
    assert card["id"] == f"agent://own-pocket.{DOMAIN}"
    assert card["url"].endswith("/agents/own_pocket")


def test_the_card_shows_the_keys_that_carnet_json_shows(acme: Organisation) -> None:
    keys = get(acme, CARD).json["publicKeys"]
    page = get(acme, "/.well-known/carnet.json").json
    assert [(key["kid"], key["key"]) for key in page["keys"]] == [
        (key["kid"], key["key"]) for key in keys
    ]
    assert all(key["active"] for key in keys)


def test_the_introduction_is_for_people(acme: Organisation) -> None:
    for path, name in (("/agent/intro", "# echo"), ("/agents/words/agent/intro", "# words")):
        intro = get(acme, path)
        assert intro.headers["content-type"] == "text/markdown; charset=utf-8"
        assert intro.body.decode().startswith(name)


def test_health_tells_the_load(acme: Organisation) -> None:
    for path in ("/agent/health", "/agents/words/agent/health"):
        health = get(acme, path).json
        assert (health["status"], health["protocolVersion"]) == ("ok", "1.2")
        assert set(health["load"]) == {"activeRequests", "queuedTasks"}
        assert health["uptime"] >= 0


def test_a_question_without_its_answer_is_answered_with_the_head_alone(
    acme: Organisation,
) -> None:
    reply = request("HEAD", acme.url + CARD)
    assert (reply.status, reply.body) == (200, b"")
    assert int(reply.headers["content-length"]) > 0


@pytest.mark.parametrize(
    "path", [f"/agents/nobody{CARD}", "/agents/nobody/agent/health", f"/agents/@a@b.example{CARD}"]
)
def test_an_agent_that_is_not_here_has_no_card(acme: Organisation, path: str) -> None:
    assert refusal(get(acme, path)) == (404, "SKILL_NOT_FOUND")


# ------------------------------------------------------------------------------------- answers


def test_a_signed_message_is_answered_in_the_envelope_of_the_dialect(client: Client) -> None:
    sent = message(client.sender, DEFAULT, payload={"text": "namaste"})
    reply = client.line.send(sent)
    assert result(reply) == {"text": "namaste"}
    assert set(reply.json) == {"traceId", "spanId", "status", "result"}
    envelope = json.loads(sent.body)
    assert reply.json["traceId"] == envelope["traceId"]
    assert reply.json["spanId"] != envelope["spanId"]
    assert reply.headers["cache-control"] == "no-store"
    assert get(client.acme, f"/runs/{envelope['traceId']}").status == 401


def test_a_named_agent_answers_at_its_prefix_and_at_its_host(client: Client) -> None:
    assert result(client.ask("words", "one two")) == {"text": "one two "}
    sent = message(
        client.sender,
        f"agent://words.{DOMAIN}",
        payload={"text": "by host"},
        auth={"scheme": "bearer", "token": client.acme.token},
    )
    assert result(client.line.send(sent.raw(f"words.{DOMAIN}"))) == {"text": "by host "}
    assert result(client.ask("own_pocket", "echo")) == {"text": "mine"}


def test_a_stream_tells_what_came_as_it_came_and_then_the_whole(client: Client) -> None:
    reply = client.ask("words", "one two", STREAM)
    assert reply.headers["content-type"] == "text/event-stream"
    assert reply.headers["cache-control"] == "no-cache"
    assert reply.headers["x-accel-buffering"] == "no"
    assert b"\r" not in reply.body
    *chunks, last = frames(reply.body)
    assert "".join(frame["chunk"] for frame in chunks) == "one two "
    assert not any(frame["done"] for frame in chunks)
    assert (last["done"], last["result"]) == (True, {"text": "one two "})


@pytest.mark.parametrize(
    ("asked", "answered"), [("keep-alive", b"keep-alive"), ("close", b"close")]
)
def test_a_stream_says_once_what_becomes_of_the_connection(
    client: Client, asked: str, answered: bytes
) -> None:
    sent = message(client.sender, DEFAULT, target=STREAM, payload={"text": "once"})
    with socket.create_connection(("127.0.0.1", client.acme.port), 30) as raw:
        raw.sendall(sent.beside(("connection", asked)).raw())
        with raw.makefile("rb") as lines:
            head = [line.strip().lower() for line in iter(lines.readline, b"\r\n")]
    assert head[0] == b"http/1.1 200 ok"
    assert [line for line in head if line.startswith(b"connection:")] == [
        b"connection: " + answered
    ]


@pytest.mark.parametrize(("agent", "texts"), [("broken", []), ("half", ["so far "])])
def test_what_fails_in_a_stream_is_told_in_its_last_frame(
    client: Client, agent: str, texts: list[str]
) -> None:
    reply = client.ask(agent, "go", STREAM)
    *chunks, last = frames(reply.body)
    assert (reply.status, [frame["chunk"] for frame in chunks]) == (200, texts)
    assert (last["done"], last["error"]["code"]) == (True, "AGENT_UNAVAILABLE")
    assert b"canary" not in reply.body


def test_an_agent_that_fails_is_unavailable_and_says_nothing_of_why(client: Client) -> None:
    reply = client.ask("broken", "go")
    assert refusal(reply) == (500, "AGENT_UNAVAILABLE")
    assert b"canary" not in reply.body
    assert reply.json["traceId"].startswith("trace-")


def test_a_span_that_is_repeated_under_a_new_nonce_is_answered_from_the_record(
    client: Client,
) -> None:
    again: dict[str, Any] = {
        "traceId": "trace-again",
        "spanId": "span-again",
        "payload": {"text": "once"},
    }
    before = len(executions(client.acme.folder, "echo"))
    first = client.send(**again)
    second = client.send(**again)
    assert (result(first), second.body) == ({"text": "once"}, first.body)
    assert len(executions(client.acme.folder, "echo")) == before + 1
    assert refusal(client.send(**{**again, "payload": {"text": "other"}})) == (
        400,
        "SCHEMA_INVALID",
    )


def test_the_caller_is_recorded_as_the_sender_and_the_payer_as_whom_it_acts_for(
    client: Client,
) -> None:
    run = client.ask("words", "hello").json["traceId"]
    [turn] = client.acme.json("run", "show", run)["turns"]
    assert turn["actor"] == f"sender:{client.sender.identity}"
    assert turn["payer"] == f"starter@{DOMAIN}"


# ------------------------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", MESSAGE, 405),
        ("DELETE", f"/agents/words{STREAM}", 405),
        ("POST", CARD, 405),
        ("GET", "/agent/nothing", 404),
        ("GET", "/agents/words/agent/nothing", 404),
        ("GET", "/agent/health/", 404),
        ("GET", "/agent/task/a/b", 404),
        ("GET", "/agents/words/agent/task", 405),
        ("DELETE", "/agent/task/3fa85f64-5717-4562-b3fc-2c963f66afa6", 405),
        ("POST", "/agent/task", 415),
        ("POST", "/agents/words/agent/task", 415),
        ("POST", "/agent/task/3fa85f64-5717-4562-b3fc-2c963f66afa6/cancel", 401),
        ("POST", MESSAGE, 415),
    ],
)
def test_every_refusal_under_these_paths_is_in_the_words_of_the_dialect(
    acme: Organisation, method: str, path: str, status: int
) -> None:
    reply = request(method, acme.url + path, (), b"" if method == "POST" else None)
    assert reply.status == status
    body = reply.json
    assert set(body) == {"traceId", "spanId", "status", "error"}
    assert set(body["error"]) == {"code", "message"}


def test_a_body_over_a_mebibyte_is_refused_in_the_words_of_the_dialect(client: Client) -> None:
    for size in ((1 << 20) + 1, 11 << 20):  # more than this endpoint takes, and more than any takes
        with Line(client.acme.port) as line:
            reply = line.send(sign(client.sender, unsigned(b"x" * size)))
            assert refusal(reply) == (413, "SCHEMA_INVALID")


def test_what_is_not_http_is_refused_in_the_words_of_the_dialect(acme: Organisation) -> None:
    with socket.create_connection(("127.0.0.1", acme.port), 30) as raw:
        raw.sendall(b"POST /agent/message HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n")
        answer = raw.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"error":{"code":"SCHEMA_INVALID"' in answer


def test_a_refusal_names_the_trace_of_its_request_and_our_own_code(client: Client) -> None:
    reply = client.send("agent://other.example", traceId="trace-of-mine")
    assert refusal(reply) == (401, "AUTH_FAILED")
    assert reply.json["traceId"] == "trace-of-mine"
    assert reply.headers["carnet-code"] == "destination_mismatch"


def test_no_other_site_may_read_the_answers(client: Client) -> None:
    assert not [name for name in client.send().headers if name.startswith("access-control-")]


def test_the_shape_of_the_endpoints_is_in_the_api_description(acme: Organisation) -> None:
    api = get(acme, "/openapi.json").json
    for path in ("/agent/message", "/agents/{name}/agent/message"):
        assert api["paths"][path]["post"]["security"] == []
    assert "/.well-known/carnet.json" in api["paths"]
    assert api["components"]["schemas"]["Envelope"]["additionalProperties"] is False


def test_what_is_refused_beside_the_envelope_names_its_trace(client: Client) -> None:
    """The envelope could be read by then: whoever sent it finds the refusal by its trace."""
    request = message(client.sender, DEFAULT, traceId="trace-beside")
    reply = client.line.send(request.beside(("x_tangle_runid", "conv_1")))
    assert (reply.status, reply.headers["carnet-code"]) == (400, "malformed_caller_context")
    assert reply.json["traceId"] == "trace-beside"
