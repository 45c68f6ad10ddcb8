"""A model's provider as Anthropic's is: its streams, its whole answers, its refusals."""

import json
from typing import Any

from tests.support.model import Answer

SSE = "text/event-stream; charset=utf-8"
USED = {"input_tokens": 25, "cache_creation_input_tokens": 3, "cache_read_input_tokens": 2}


def frame(kind: str, **members: Any) -> bytes:
    """One event of a stream."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode()


def begin() -> bytes:
    """How every stream begins."""
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "model": "claude-x",
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {**USED, "output_tokens": 1},
    }
    return frame("message_start", message=message)


def text(*pieces: str, index: int = 0) -> bytes:
    """A block of text."""
    block = {"type": "text", "text": ""}
    deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
    return _block(index, block, deltas)


def tool_use(name: str, *pieces: str, id: str = "toolu_1", index: int = 0) -> bytes:
    """A block that wants a tool called, its arguments in pieces."""
    block = {"type": "tool_use", "id": id, "name": name, "input": {}}
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *pieces)]
    return _block(index, block, deltas)


def thinking(words: str, index: int = 0) -> bytes:
    """A block of thoughts, with its signature."""
    block = {"type": "thinking", "thinking": "", "signature": ""}
    deltas = [
        {"type": "thinking_delta", "thinking": words},
        {"type": "signature_delta", "signature": "EqQB"},
    ]
    return _block(index, block, deltas)


def _block(index: int, block: dict[str, Any], deltas: list[dict[str, Any]]) -> bytes:
    parts = [frame("content_block_start", index=index, content_block=block)]
    parts += [frame("content_block_delta", index=index, delta=delta) for delta in deltas]
    return b"".join([*parts, frame("content_block_stop", index=index)])


def end(reason: str = "end_turn", tokens: int = 15) -> bytes:
    """How a stream ends."""
    delta = {"stop_reason": reason, "stop_sequence": None}
    return frame("message_delta", delta=delta, usage={"output_tokens": tokens}) + STOP


STOP = frame("message_stop")
PING = frame("ping")


def error(kind: str, message: str = "no") -> dict[str, Any]:
    """An error as it is written, alone or in a stream."""
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_011"}


def streamed(*blocks: bytes, reason: str = "end_turn") -> Answer:
    """A stream of blocks."""
    return Answer(body=b"".join([begin(), PING, *blocks, end(reason)]), media_type=SSE)


def answered(*content: dict[str, Any], reason: str = "end_turn") -> Answer:
    """A whole answer."""
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": list(content),
        "model": "claude-x",
        "stop_reason": reason,
        "stop_sequence": None,
        "usage": {**USED, "output_tokens": 15},
    }
    return Answer(body=json.dumps(message).encode())


def refused(status: int, kind: str, message: str = "no") -> Answer:
    """A refusal."""
    return Answer(status, json.dumps(error(kind, message)).encode())
