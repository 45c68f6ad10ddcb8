"""A host of agents-api, written from the facts about it: it shares no code with Carnet.

Its agents: `parrot` repeats what was said, `counts` tells what came, `acts` wants an approval and
`fails` does not work. It keeps every request with its headers, runs every id once, and is told by
the five headers who calls.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "wp_secret_token"
FIELDS = ("agent", "user", "host", "depth", "root")
NAMES = (
    *("X-Agents-Api-Caller-Agent", "X-Agents-Api-Caller-User", "X-Agents-Api-Caller-Host"),
    *("X-Agents-Api-Chain-Depth", "X-Agents-Api-Chain-Root"),
)


class Seen:
    """What a host was asked, and what waits there."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        self.claimed: set[str] = set()
        self.pending: dict[str, str] = {}  # action to decision; empty while it waits
        self.url = ""

    def callers(self) -> list[dict[str, str]]:
        """Who has called, by the headers."""
        found = [headers for _, headers, _ in self.requests]
        return [
            {
                field: headers.get(name.lower(), "")
                for field, name in zip(FIELDS, NAMES, strict=True)
            }
            for headers in found
        ]


class Host(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    protocol_version = "HTTP/1.1"
    seen: Seen

    def log_message(self, *_: object) -> None:
        """Nothing is told on the terminal."""

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        body = json.loads(self.rfile.read(length))
        headers = {name.lower(): value for name, value in self.headers.items()}
        agent = self.path.rpartition("/")[2]
        self.seen.requests.append((agent, headers, body))
        if headers.get("authorization") != f"Bearer {TOKEN}":
            self._reply(401, {"code": "wp_invalid_token", "message": "no", "data": {"status": 401}})
            return
        if agent == "deep":
            more = {"status": 429, "chain_depth": 3, "ceiling": 3}
            error = {"code": "site_chain_depth_exceeded", "message": "too deep", "data": more}
            self._reply(429, error)
            return
        if body["method"] == "agents/resolve-pending-action":
            self._resolve(body)
            return
        run = body["params"].get("id", "run_x")
        if run in self.seen.claimed:
            text = "The run_id has already been claimed for execution."
            self._frame(body, error={"code": -32603, "message": text})
            return
        self.seen.claimed.add(run)
        self._run(agent, run, body)

    def _run(self, agent: str, run: str, body: dict[str, Any]) -> None:
        parts = body["params"]["message"]["parts"]
        text = "".join(part["text"] for part in parts if part["type"] == "text")
        if agent == "fails":
            self._frame(body, error={"code": -32603, "message": "a secret of the site"})
        elif agent == "counts":
            kinds = [sorted(part["data"]) for part in parts if part["type"] == "data"]
            files = [part["file"].get("name") for part in parts if part["type"] == "file"]
            answer = json.dumps({"text": text, "data": kinds, "files": files})
            self._frame(body, result=task_of(run, answer))
        elif agent == "acts":
            self.seen.pending[f"act-{run}"] = ""
            self._frame(body, result=waiting_of(run, f"act-{run}"))
        elif body["method"] == "message/stream":
            self._stream(body, run, f"parrot: {text}")
        else:
            self._frame(body, result=task_of(run, f"parrot: {text}"))

    def _resolve(self, body: dict[str, Any]) -> None:
        given = body["params"]
        name, decision = given["action_id"], given["decision"]
        assert decision in {"accepted", "rejected"}
        assert given["resolver"]
        if self.seen.pending.get(name) != "":
            self._frame(body, error={"code": -32603, "message": "it is not pending"})
            return
        self.seen.pending[name] = decision
        result = {"applied": decision == "accepted", "payload": given.get("payload", {})}
        self._frame(body, result={"action_id": name, "decision": decision, "result": result})

    def _stream(self, body: dict[str, Any], run: str, text: str) -> None:
        deltas = [
            {
                "deltaType": "tool_name",
                "content": "search",
                "toolCallId": "tc1",
                "toolCallName": "search",
                "toolCallIndex": 0,
            },
            {
                "deltaType": "tool_argument",
                "content": '{"q":1}',
                "toolCallId": "tc1",
                "toolCallIndex": 0,
            },
            {"deltaType": "content", "content": text[:4]},
            {"deltaType": "content", "content": text[4:]},
        ]
        frames: list[dict[str, Any]] = [
            {"jsonrpc": "2.0", "method": "message/delta", "params": {"id": run, "delta": delta}}
            for delta in deltas
        ]
        frames.append({"jsonrpc": "2.0", "id": body["id"], "result": task_of(run, text)})
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("connection", "close")
        self.end_headers()
        for frame in frames:
            self.wfile.write(b"data: " + json.dumps(frame).encode() + b"\n\n")
            self.wfile.flush()
        self.close_connection = True

    def _frame(self, body: dict[str, Any], **content: object) -> None:
        self._reply(200, {"jsonrpc": "2.0", "id": body["id"], **content})

    def _reply(self, status: int, content: object) -> None:
        written = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(written)))
        self.end_headers()
        self.wfile.write(written)


def task_of(run: str, text: str, state: str = "completed", *more: object) -> dict[str, Any]:
    parts = [{"type": "text", "text": text}, *more]
    name = f"{run}-message"
    spoken = {"role": "agent", "kind": "message", "messageId": name, "parts": parts}
    return {"id": run, "sessionId": "s", "status": {"state": state, "message": spoken}}


def waiting_of(run: str, action: str) -> dict[str, Any]:
    """A run that wants an approval."""
    payload = {
        "action_id": action,
        "kind": "post/publish",
        "summary": "Publish the post",
        "preview": {"title": "News"},
        "apply_input": {"post": 7},
        "created_at": "2026-01-01T00:00:00Z",
        "status": "pending",
    }
    envelope = {
        "schema": "agents-api.message",
        "version": 1,
        "type": "approval_required",
        "role": "tool",
        "content": "Publish the post",
        "payload": payload,
        "metadata": {},
    }
    return task_of(run, "", "input-required", {"type": "data", "data": envelope})


@contextmanager
def hosting() -> Iterator[Seen]:
    """A host that listens for as long as it is wanted."""
    seen = Seen()
    answering = type("Answering", (Host,), {"seen": seen})
    server = ThreadingHTTPServer(("127.0.0.1", 0), answering)
    seen.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
