"""A whole answer over Anthropic's messages."""

import pytest

from carnet.core.messages.events import ECHO, Done, Extension, Text, ToolCall, Usage
from carnet.errors import ProviderError
from carnet.wire.dialects.anthropic.answer import read_answer
from tests.wire.dialects.anthropic.scene import answered


def test_text_calls_and_what_was_used() -> None:
    answer = answered(
        {"type": "thinking", "thinking": "Hm.", "signature": "x"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "/a"}},
        reason="tool_use",
    )
    assert read_answer(answer.body, currency="credits") == [
        Text("I look."),
        ToolCall("t1", "read", '{"path":"/a"}'),
        Extension(
            ECHO,
            [
                {"type": "thinking", "thinking": "Hm.", "signature": "x"},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "/a"}},
            ],
        ),
        Usage(30, 15),
        Done("tool_calls"),
    ]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"\xff",
        b'{"type":"error","error":{"type":"api_error"}}',
        b'{"type":"message"}',
        b'{"type":"message","content":[{"type":"text","text":7}],"stop_reason":"end_turn"}',
        b'{"type":"message","content":[{"type":"tool_use"}],"stop_reason":"tool_use"}',
        b'{"type":"message","content":[{"type":"text","text":"a"}]}',
        answered(*[{"type": "tool_use", "id": "t", "name": "a", "input": {}}] * 129).body,
    ],
)
def test_what_is_no_answer_is_told_as_such(body: bytes) -> None:
    with pytest.raises(ProviderError):
        read_answer(body, currency="credits")
