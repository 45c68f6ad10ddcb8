"""What a stream has said, as the messages that a later request begins with.

Law 1. Text and the calls behind it are one message of the assistant; results follow it. A call that
       has none yet stays without.
Law 2. `Transcript.read(x.written()) == x`: what is kept is what was said.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from carnet.core.messages.events import (
    Done,
    Event,
    Message,
    Text,
    ToolCall,
    ToolResult,
    Waiting,
)
from carnet.wire.dialects.engine_chat.writer import words_of

Shown = Text | ToolCall | ToolResult


class Transcript(Struct, frozen=True):
    """One stream, from its beginning to its end."""

    events: tuple[Shown, ...]
    end: Done | Waiting

    def written(self) -> Any:
        """As JSON, to be kept."""
        return msgspec.to_builtins(self)

    @classmethod
    def read(cls, kept: Any) -> "Transcript":
        """What was kept."""
        return msgspec.convert(kept, cls)

    def messages(self) -> tuple[Message, ...]:
        """What was said."""
        return messages_of(self.events)


def messages_of(events: Sequence[Event]) -> tuple[Message, ...]:
    """The messages that events are."""
    found: list[Message] = []
    texts: list[str] = []
    calls: list[ToolCall] = []
    for event in events:
        if isinstance(event, ToolResult):
            found += _assistant(texts, calls)
            found.append(Message("tool", (words_of(event.output),), tool_call_id=event.id))
            texts, calls = [], []
        elif isinstance(event, ToolCall):
            calls.append(event)
        elif isinstance(event, Text):
            if calls:
                found += _assistant(texts, calls)
                texts, calls = [], []
            texts.append(event.text)
    return (*found, *_assistant(texts, calls))


def _assistant(texts: list[str], calls: list[ToolCall]) -> list[Message]:
    if not texts and not calls:
        return []
    return [Message("assistant", ("".join(texts),), tool_calls=tuple(calls))]
