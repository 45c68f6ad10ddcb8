"""The parts that are played by this process: models, gateways of another make, an SDK, hooks.

What is answered depends on the path alone, so that nothing has to be set up for an exchange.
"""

import json
from collections.abc import Callable
from typing import Any

from tests.exchanges.tap import Answer, Fields, Received
from tests.support.signing.signed import Sender

JSON: Fields = [("content-type", "application/json")]
SSE: Fields = [("content-type", "text/event-stream")]
SDK = Sender("agent://sdk.example", kid="k-sdk", seed=b"s" * 32)
CALLER = Sender("agent://caller.example", kid="k-caller", seed=b"c" * 32)

_USAGE = {"prompt_tokens": 12, "completion_tokens": 4, "total_tokens": 16}
_TOOL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "look_up", "arguments": '{"word":"carnet"}'},
}


def _json(page: Any, status: int = 200, *more: tuple[str, str]) -> Answer:
    return Answer(status=status, headers=[*JSON, *more], body=json.dumps(page).encode())


def _completion(message: dict[str, Any], why: str, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": why}
    return {
        "id": "chatcmpl-upstream",
        "object": "chat.completion",
        "created": 1,
        "model": "some-model-2026",
        "choices": [choice],
        "usage": _USAGE,
        **more,
    }


def _chunk(delta: dict[str, Any], why: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": why}
    return {
        "id": "chatcmpl-upstream",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "some-model-2026",
        "choices": [choice],
    }


def _events(*pages: Any, done: bool = True) -> Answer:
    frames = [f"data: {json.dumps(page)}\n\n" for page in pages]
    end = "data: [DONE]\n\n" if done else ""
    return Answer(headers=SSE, body=("".join(frames) + end).encode(), is_cut=not done)


def _asked(received: Received) -> dict[str, Any]:
    asked: dict[str, Any] = json.loads(received.body)
    return asked


def _model(received: Received) -> Answer:
    asked = _asked(received)
    if asked.get("stream"):
        return _events(
            _chunk({"role": "assistant", "content": ""}),
            _chunk({"content": "good "}),
            _chunk({"content": "day"}),
            _chunk({}, "stop"),
            {**_chunk({}), "choices": [], "usage": _USAGE},
        )
    return _json(_completion({"content": "good day"}, "stop"))


def _tooled(received: Received) -> Answer:
    if _asked(received).get("stream"):
        call = {"index": 0, **_TOOL}
        return _events(
            _chunk({"role": "assistant", "tool_calls": [call]}),
            _chunk({}, "tool_calls"),
            {**_chunk({}), "choices": [], "usage": _USAGE},
        )
    return _json(_completion({"content": None, "tool_calls": [_TOOL]}, "tool_calls"))


def _tangle(received: Received) -> Answer:
    usage = {**_USAGE, "cost": "0.002", "currency": "credits", "run_cost": "0.002"}
    if _asked(received).get("stream"):
        return _events(
            _chunk({"role": "assistant", "content": "from "}),
            _chunk({"content": "afar"}),
            _chunk({}, "stop"),
            {**_chunk({}), "choices": [], "usage": usage},
        )
    return _json(_completion({"content": "from afar"}, "stop", usage=usage))


def _refusing(status: int, page: Any, *more: tuple[str, str]) -> Callable[[Received], Answer]:
    return lambda _: _json(page, status, *more)


def _error(code: str, message: str = "no") -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "type": "x"}, "code": code}


def _card(sender: Sender, *, active: bool = True) -> dict[str, Any]:
    """A card as the SDK writes it."""
    chat = {
        "id": "chat",
        "name": "Chat",
        "description": "Talk.",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        },
        "outputSchema": {"type": "object"},
        "modes": ["sync", "stream", "async"],
        "trust": "public",
    }
    return {
        "id": sender.identity,
        "name": "sdk",
        "version": "1.0.0",
        "description": "An agent of another make.",
        "url": "https://sdk.example",
        "protocolVersion": "1.2",
        "specializations": [],
        "models": [],
        "skills": [chat],
        "publicKeys": [{"kid": sender.kid, "key": sender.public, "active": active}],
        "auth": {"schemes": ["none"]},
        "rateLimit": {"requestsPerMinute": 60, "requestsPerSender": 60},
        "cardTTL": 300,
        "endpoints": {
            "intro": "https://sdk.example/agent/intro",
            "message": "https://sdk.example/agent/message",
            "task": "https://sdk.example/agent/task",
            "stream": "https://sdk.example/agent/stream",
            "health": "https://sdk.example/agent/health",
        },
    }


def _envelope(received: Received, **more: Any) -> dict[str, Any]:
    return {"traceId": _asked(received)["traceId"], "spanId": "their-span", **more}


def _message(received: Received) -> Answer:
    asked = _asked(received)
    if asked["payload"].get("text") == "refuse":
        error = {"code": "RATE_LIMITED", "message": "later"}
        return _json(_envelope(received, status="error", error=error), 429, ("retry-after", "1"))
    return _json(_envelope(received, status="ok", result={"text": "from the SDK"}))


def _stream(received: Received) -> Answer:
    pages = [
        {"chunk": "from ", "done": False},
        {"chunk": "the SDK", "done": False},
        {**_envelope(received), "done": True, "result": {"text": "from the SDK"}},
    ]
    frames = "".join(f"data: {json.dumps(page)}\r\n\r\n" for page in pages)
    return Answer(headers=SSE, body=frames.encode())


PARTS: dict[str, Callable[[Received], Answer]] = {
    "/model/v1/chat/completions": _model,
    "/tooled/v1/chat/completions": _tooled,
    "/tangle/v1/chat/completions": _tangle,
    "/listed/agents/critic/v1/chat/completions": _tangle,
    "/listed/v1/chat/completions": _tangle,
    "/broken/v1/chat/completions": _refusing(500, _error("internal_error", "a secret word")),
    "/busy/v1/chat/completions": _refusing(429, _error("rate_limit"), ("retry-after", "1")),
    "/denied/v1/chat/completions": _refusing(401, _error("invalid_api_key", "a secret word")),
    "/deep/v1/chat/completions": _refusing(429, _error("bridge_depth_exceeded")),
    "/deeper/v1/chat/completions": _refusing(
        404, _error("agent_not_found", "a secret word"), ("x-should-retry", "false")
    ),
    "/nonsense/v1/chat/completions": lambda _: Answer(headers=JSON, body=b'{"choices": 7}'),
    "/html/v1/chat/completions": lambda _: Answer(
        headers=[("content-type", "text/html")], body=b"<p>hello</p>"
    ),
    "/cut/v1/chat/completions": lambda _: _events(_chunk({"content": "so "}), done=False),
    "/mute/v1/chat/completions": lambda _: Answer(status=0),
    "/down/v1/chat/completions": _refusing(503, _error("down")),
    "/moved/v1/chat/completions": lambda _: Answer(
        status=302, headers=[("location", "http://127.0.0.1:9/")]
    ),
    "/sdk/.well-known/agent.json": lambda _: _json(_card(SDK)),
    "/sdk/agent/message": _message,
    "/sdk/agent/stream": _stream,
    "/hooks/well": lambda _: Answer(body=b"ok"),
    "/hooks/gone": lambda _: Answer(status=410),
}


def play(received: Received) -> Answer:
    """Answer as the path says."""
    found = PARTS.get(received.target.partition("?")[0])
    return Answer(status=404) if found is None else found(received)
