"""The script of the model behind every agent loop: it wants one tool, then answers with its result.

It keeps nothing: a request that holds the result of a tool is the second of its turn.
"""

import re

from bench.bodies import chunk, encode, last_chunks

TOOL = "read_page"
ARGUMENTS = '{"name":"finances"}'
PAGE = "Budget goal: 100"
QUESTION = "What is my budget goal?"
SYSTEM = "You keep the notebook."
WORDS = ("Your ", "budget ", "goal ", "is ", "100", ", ", "as ", "you ", "wrote", ".")
ANSWER = "".join(WORDS)

_HAS_RESULT = re.compile(rb'"role": ?"tool"')


def _call(**more: object) -> dict[str, object]:
    return {
        **more,
        "id": "call_1",
        "type": "function",
        "function": {"name": TOOL, "arguments": ARGUMENTS},
    }


def _completion(message: dict[str, object], finish: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return encode(
        {
            "id": "chatcmpl-loop",
            "object": "chat.completion",
            "created": 1_700_000_000,
            "model": "m",
            "choices": [choice],
            "usage": {"prompt_tokens": 60, "completion_tokens": 12, "total_tokens": 72},
        }
    )


_OPENING = chunk({"role": "assistant", "content": ""})
_WANTS = _completion({"content": None, "tool_calls": [_call()]}, "tool_calls")
_ANSWERS = _completion({"content": ANSWER}, "stop")
_WANTS_STREAMED = (
    _OPENING,
    chunk({"tool_calls": [_call(index=0)]}),
    last_chunks("tool_calls"),
)
_ANSWERS_STREAMED = (_OPENING, *[chunk({"content": word}) for word in WORDS], last_chunks())


def completion(body: bytes) -> bytes:
    """The whole answer to a request."""
    return _ANSWERS if _HAS_RESULT.search(body) else _WANTS


def events(body: bytes) -> tuple[bytes, ...]:
    """The same as a stream, an event each."""
    return _ANSWERS_STREAMED if _HAS_RESULT.search(body) else _WANTS_STREAMED
