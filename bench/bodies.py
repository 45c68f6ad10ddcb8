"""The bytes on the wire: 2 KB chat requests and answers, and the chunks of a stream.

Law. Every body of the comparison is BODY_BYTES long, whoever sends it and in whatever dialect.
"""

import json
from collections.abc import Mapping
from typing import Any

BODY_BYTES = 2048
COMPLETION_ID = "chatcmpl-bench"
CHAT_PATH = "/v1/chat/completions"
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


def chunk(delta: Mapping[str, str], finish: str | None = None) -> bytes:
    """One server-sent event of a streamed completion."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _event({"choices": [choice]})


def last_chunks() -> bytes:
    """How a stream ends: the finish, the usage, the end mark."""
    usage = _event({"choices": [], "usage": _usage()})
    return chunk({}, "stop") + usage + b"data: [DONE]\n\n"


def _event(part: Mapping[str, Any]) -> bytes:
    whole = {
        "id": COMPLETION_ID,
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": "m",
        **part,
    }
    return b"data: " + encode(whole) + b"\n\n"


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
