"""The bytes on the wire: 2 KB chat requests and answers, and the chunks of a stream.

Law. Every body of the comparison is BODY_BYTES long, whoever sends it and in whatever dialect.
"""

import json
from collections.abc import Mapping
from typing import Any

BODY_BYTES = 2048
COMPLETION_ID = "chatcmpl-bench"
CHAT_PATH = "/v1/chat/completions"
SAMVAD_PATH = "/agent/message"
SAMVAD_CARD_PATH = "/.well-known/agent.json"
SAMVAD_IDENTITY = "agent://upstream.example"
# Some public key: the upstream's answers are not signed in this dialect, and nobody asks for it.
SAMVAD_KEY = "11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
WORD = "border "  # the text of each event of a stream

# Words, not one letter repeated: scanners and encoders should see something like language.
_WORDS = "Two carriers met at the border and compared what each of them had been told to deliver. "


def text(size: int) -> str:
    """Plain text of exactly this many ASCII characters."""
    return (_WORDS * (size // len(_WORDS) + 1))[:size]


def encode(value: Any) -> bytes:
    """JSON without spaces."""
    return json.dumps(value, separators=(",", ":")).encode()


def filled(template: str, size: int = BODY_BYTES) -> bytes:
    """The JSON text with its one `@@` replaced by as many words as make it `size` bytes long."""
    return template.replace("@@", text(size - len(template) + 2)).encode()


def chat_request(model: str, *, stream: bool = False) -> bytes:
    """An OpenAI chat request."""
    question = {"role": "user", "content": "@@"}
    body: dict[str, Any] = {"model": model, "messages": [question]}
    if stream:
        body["stream"] = True
    return filled(encode(body).decode())


def chat_answer() -> bytes:
    """An OpenAI chat completion, with usage."""
    message = {"role": "assistant", "content": "@@"}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return filled(
        encode(
            {
                "id": COMPLETION_ID,
                "object": "chat.completion",
                "created": 1_700_000_000,
                "model": "m",
                "choices": [choice],
                "usage": _usage(),
            }
        ).decode()
    )


def _usage() -> dict[str, int]:
    return {"prompt_tokens": 400, "completion_tokens": 380, "total_tokens": 780}


def chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
    """One server-sent event of a streamed completion."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _event({"choices": [choice]})


def last_chunks(finish: str = "stop") -> bytes:
    """How a stream ends: the finish, the usage, the end mark."""
    usage = _event({"choices": [], "usage": _usage()})
    return chunk({}, finish) + usage + b"data: [DONE]\n\n"


def _event(part: Mapping[str, Any]) -> bytes:
    whole = {
        "id": COMPLETION_ID,
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "m",
        **part,
    }
    return b"data: " + encode(whole) + b"\n\n"


def samvad_answer(trace: bytes) -> bytes:
    """A response of the signed dialect, within the trace of its request."""
    return _SAMVAD_ANSWER.replace(b"@trace", trace)


_SAMVAD_ANSWER = filled(
    encode(
        {
            "traceId": "@trace",
            "spanId": "span-bench",
            "status": "ok",
            "result": {"text": "@@"},
        }
    ).decode()
)


def samvad_card(port: int) -> bytes:
    """The card of an agent on this machine, with all that the package's client asks for."""
    url = f"http://127.0.0.1:{port}"
    names = ("intro", "message", "task", "taskStatus", "stream", "health")
    schema = {"type": "object"}
    skill = {
        "id": "chat",
        "name": "chat",
        "description": "answers at once",
        "inputSchema": schema,
        "outputSchema": schema,
        "modes": ["sync"],
        "trust": "public",
    }
    return encode(
        {
            "id": SAMVAD_IDENTITY,
            "name": "bench",
            "version": "1",
            "description": "answers at once",
            "url": url,
            "protocolVersion": "1.2",
            "specializations": [],
            "models": [],
            "skills": [skill],
            "publicKeys": [{"kid": "bench", "key": SAMVAD_KEY, "active": True}],
            "auth": {"schemes": ["none"]},
            "rateLimit": {"requestsPerMinute": 10**9, "requestsPerSender": 10**9},
            "cardTTL": 3600,
            "endpoints": {name: f"/agent/{name}" for name in names},
        }
    )


def post(path: str, body: bytes, headers: Mapping[str, str] | None = None) -> bytes:
    """A whole HTTP/1.1 request on a connection that stays open."""
    fields = {
        "host": "127.0.0.1",
        "content-type": "application/json",
        "content-length": str(len(body)),
        **(headers or {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"POST {path} HTTP/1.1\r\n{head}\r\n".encode() + body
