"""A client of agents-api, written from the facts about it: it shares no code with Carnet."""

import itertools
import json
import os
from typing import Any

from tests.support.http import HeaderList, Reply, request

JSON = ("content-type", "application/json")
_numbers = itertools.count()


def new_name(kind: str = "run") -> str:
    """A name that nothing had before, here or in another process."""
    return f"{kind}-{os.getpid()}-{next(_numbers)}"


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def data(value: object) -> dict[str, Any]:
    return {"type": "data", "data": value}


def message(*parts: dict[str, Any] | str, **more: Any) -> dict[str, Any]:
    """The parameters of a message; a word is a part of text."""
    written = [text(part) if isinstance(part, str) else part for part in parts]
    return {"message": {"role": "user", "parts": written}, **more}


class Client:
    """Somebody with a token, at one host."""

    def __init__(self, url: str, token: str) -> None:
        self.url = f"{url}/agents-api/v1"
        self.token = token

    def post(self, path: str, body: object, fields: HeaderList = ()) -> Reply:
        """The answer to a body, as it came."""
        own = [("authorization", f"Bearer {self.token}"), JSON, *fields]
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        return request("POST", self.url + path, own, sent)

    def get(self, path: str) -> Reply:
        """The answer to a path."""
        return request("GET", self.url + path, [("authorization", f"Bearer {self.token}")])

    def ask(
        self, agent: str, method: str, params: object, *, fields: HeaderList = (), **more: Any
    ) -> Reply:
        """The answer to a method."""
        body = {"jsonrpc": "2.0", "id": "q1", "method": method, "params": params, **more}
        return self.post(f"/agent/{agent}", body, fields)

    def send(self, agent: str, *parts: dict[str, Any] | str, **more: Any) -> dict[str, Any]:
        """The task that a message is answered with."""
        return self.result(agent, "message/send", message(*parts, **more))

    def result(self, agent: str, method: str, params: object) -> dict[str, Any]:
        """What a method gives."""
        reply = self.ask(agent, method, params)
        assert reply.status == 200, (reply.status, reply.body)
        frame = reply.json
        assert "error" not in frame, frame
        assert (frame["jsonrpc"], frame["id"]) == ("2.0", "q1")
        found: dict[str, Any] = frame["result"]
        return found

    def error(self, agent: str, method: str, params: object, **more: Any) -> dict[str, Any]:
        """The error that a method meets."""
        reply = self.ask(agent, method, params, **more)
        assert reply.status == 200, (reply.status, reply.body)
        found: dict[str, Any] = reply.json["error"]
        return found

    def stream(
        self, agent: str, params: object, method: str = "message/stream", **more: Any
    ) -> list[dict[str, Any]]:
        """All frames of a stream that ends."""
        return frames_of(self.ask(agent, method, params, **more))

    def decide(
        self, agent: str, action: str, decision: str = "accepted", **more: Any
    ) -> dict[str, Any]:
        """What comes of a decision."""
        given = {"action_id": action, "decision": decision, "resolver": "user:7", **more}
        return self.result(agent, "agents/resolve-pending-action", given)

    def chat(self, **body: Any) -> Reply:
        """The answer to a turn of a chat."""
        return self.post("/chat", body)


def frames_of(reply: Reply) -> list[dict[str, Any]]:
    """The frames of a stream: nothing but lines of data, and comments."""
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8", reply
    lines = [line for line in reply.body.splitlines() if line]
    assert all(line.startswith((b"data: ", b":")) for line in lines), lines
    return [json.loads(line[6:]) for line in lines if line.startswith(b"data: ")]


def text_in(task: dict[str, Any]) -> str:
    """The text of a task."""
    parts = task["status"]["message"]["parts"]
    return "".join(part["text"] for part in parts if part["type"] == "text")


def actions(task: dict[str, Any]) -> list[dict[str, Any]]:
    """The pending actions of a task."""
    found = [part["data"] for part in task["status"]["message"]["parts"] if part["type"] == "data"]
    envelopes = [each for each in found if each.get("type") == "approval_required"]
    return [each["payload"] for each in envelopes]
