"""Another loop in the place of ours: thirty lines that know the contract and nothing else."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from carnet.wire.crypto import ed25519
from carnet.wire.dialects.engine_chat.bearer import read_bearer
from tests.support.http import request
from tests.support.organisation import Organisation

CONFIG = """
[agents.mirror]
kind = "engine"
system = "Be brief."

[engine]
listen = "{url}"

[owner]
tool_context = ["path"]
"""


class Echo(BaseHTTPRequestHandler):
    """An independent loop: it says what it was told."""

    asked: ClassVar[list[tuple[dict[str, str], dict[str, Any]]]] = []
    frames: list[tuple[str, dict[str, Any]]] | None = None  # in the place of the echo
    status = 200
    is_cut = False  # each byte of its stream is a piece of its own

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        Echo.asked.append(({name.lower(): value for name, value in self.headers.items()}, body))
        text = f"Echo: {body['messages'][-1]['content']}"
        usage = {"prompt_tokens": 1, "completion_tokens": 2}
        frames = Echo.frames or [
            ("text-delta", {"content": text}),
            ("done", {"finish_reason": "stop", "usage": usage}),
        ]
        data = "".join(f"event: {name}\ndata: {json.dumps(each)}\n\n" for name, each in frames)
        self.send_response(Echo.status)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for piece in [data[n : n + 1] for n in range(len(data))] if Echo.is_cut else [data]:
            self.wfile.write(piece.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def serving() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def front(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    with serving() as url:
        gateway = Organisation(tmp_path_factory.mktemp("swapped"), "acme.example")
        gateway.configure(CONFIG.format(url=url))
        gateway.start()
        yield gateway
        assert gateway.stop() == 0


@pytest.fixture(autouse=True)
def as_it_was() -> None:
    Echo.asked.clear()
    Echo.frames, Echo.status, Echo.is_cut = None, 200, False


def test_another_loop_answers_in_the_place_of_ours_by_one_line_of_configuration(
    front: Organisation,
) -> None:
    reply = front.chat("Hello, mirror!", "mirror")
    assert reply.text == "Echo: Hello, mirror!"
    assert reply.json["usage"]["total_tokens"] == 3
    ((_, body),) = Echo.asked
    assert body["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hello, mirror!"},
    ]
    assert set(body) == {"messages", "metadata"}


def test_a_conversation_with_another_loop_is_kept_as_one_with_ours(front: Organisation) -> None:
    fields = [("authorization", f"Bearer {front.token}"), ("content-type", "application/json")]
    context = {"path": "/finances", "clipboard": "x"}
    body = {"content": "Hello, mirror!", "metadata": {"client_context": context}}
    sent = request("POST", f"{front.url}/message", fields, json.dumps(body).encode())
    assert b'"delta":"Echo: Hello, mirror!"' in sent.body
    ((_, asked),) = Echo.asked
    conversation = sent.headers["x-conversation-id"]
    assert asked["metadata"]["conversation_id"] == conversation
    assert (asked["metadata"]["trigger"], asked["metadata"]["client_context"]) == (
        "message",
        {"path": "/finances"},
    )
    page = front.get(f"/conversations/{conversation}").json
    kept = [(each["role"], each["content"]) for each in page["messages"]]
    assert kept == [("assistant", "Echo: Hello, mirror!"), ("user", "Hello, mirror!")]


def test_a_loop_that_is_down_loses_no_message(front: Organisation) -> None:
    Echo.status = 503
    fields = [("authorization", f"Bearer {front.token}"), ("content-type", "application/json")]
    sent = request("POST", f"{front.url}/message", fields, b'{"content":"down"}')
    assert (sent.status, b"event: error" in sent.body) == (200, True)
    path = f"{front.url}/conversations/{sent.headers['x-conversation-id']}"
    page = request("GET", path, fields).json
    assert [each["state"] for each in page["messages"]] == ["unanswered", "unanswered"]
    Echo.status = 200
    again = request("POST", f"{path}/retry", fields, b"")
    assert b'"delta":"Echo: down"' in again.body


def test_it_is_asked_with_a_bearer_of_the_turn_and_no_credential_of_the_caller(
    front: Organisation,
) -> None:
    asked = front.chat("Hi", "mirror", headers=[("x-correlation-id", "req_swapped")])
    assert asked.status == 200
    ((headers, body),) = Echo.asked
    bearer = headers["authorization"].removeprefix("Bearer ")
    signed = read_bearer(bearer)
    (key,) = front.json("keys", "list")["keys"]
    public = ed25519.read_public_key(key["key"])
    assert ed25519.holds(public, signed.signed, signed.signature)
    assert (signed.bearer.issuer, signed.bearer.resolved) == ("acme.example", {})
    assert signed.bearer.actor.id == "owner"
    assert signed.bearer.turn == asked.headers["x-tangle-turnid"]
    assert body["metadata"]["correlation_id"] == headers["x-correlation-id"] == "req_swapped"
    assert front.token not in json.dumps([headers, body])
    assert "x-actor-id" not in headers


def test_a_person_acts_under_her_own_name(front: Organisation) -> None:
    front.carnet("people", "add", "alice", "--role", "operator", "--permission", "tool:*")
    scopes = ("--scope", "call:*", "--scope", "tool:read")
    token = front.new_token("laptop", "--person", "alice", *scopes)
    assert front.chat("Hi", "mirror", token=token).status == 200
    ((headers, _),) = Echo.asked
    actor = read_bearer(headers["authorization"].removeprefix("Bearer ")).bearer.actor
    assert (actor.id, actor.may("tool:read"), actor.may("tool:send")) == ("alice", True, False)


@pytest.mark.parametrize("name", ["content", "delta"])
def test_where_a_stream_is_cut_and_how_its_fields_are_spelled_changes_nothing(
    front: Organisation, name: str
) -> None:
    Echo.frames = [
        ("text-delta", {name: "Hello, "}),
        ("text-delta", {name: "mirror ✓"}),
        ("done", {"finish_reason": "stop", "usage": {"prompt_tokens": 1, "completion_tokens": 1}}),
    ]
    Echo.is_cut = True
    assert front.chat("Hi", "mirror").text == "Hello, mirror ✓"


@pytest.mark.parametrize(
    ("frames", "status", "code"),
    [
        ([("text-delta", {"content": "half"})], 500, "agent_failed"),
        ([("text-delta", {"content": "x"}), ("partial-done", {})], 502, "provider_error"),
        ([("tool-result", {"id": "other", "output": "x"})], 502, "provider_error"),
        ([("error", {"code": "tool_error", "message": "/srv/secret"})], 502, "tool_error"),
        (
            [("error", {"code": "context_overflow", "message": "/srv/secret"})],
            400,
            "context_length_exceeded",
        ),
        ([("error", {"code": "odd", "message": "/srv/secret"})], 502, "provider_error"),
    ],
)
def test_a_loop_that_breaks_the_contract_fails_the_call_and_shows_nothing_of_its_own(
    front: Organisation, frames: list[tuple[str, dict[str, Any]]], status: int, code: str
) -> None:
    Echo.frames = frames
    reply = front.chat("Hi", "mirror")
    assert (reply.status, reply.code) == (status, code)
    assert b"/srv" not in reply.body


@pytest.mark.parametrize("status", [400, 401, 403, 404, 503])
def test_a_loop_that_refuses_us_is_told_as_a_failure(front: Organisation, status: int) -> None:
    Echo.frames, Echo.status = [("x", {"code": "x", "message": "/srv/secret"})], status
    reply = front.chat("Hi", "mirror")
    assert (reply.status, reply.code) == (502, "provider_error")
    assert b"/srv" not in reply.body
