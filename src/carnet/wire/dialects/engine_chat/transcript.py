"""What a stream has said, as the messages that a later request begins with.

Law 1. Text and the calls behind it are one message of the assistant; results follow it. A call that
       has none yet stays without. Shown again because it was answered, it is no second call.
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
    """A part of a stream: to where every tool call has its result, or to its end."""

    events: tuple[Shown, ...]
    end: Done | Waiting | None = None  # None: it went on

    @property
    def open(self) -> frozenset[str]:
        """The ids of calls that have no result."""
        ended = {event.id for event in self.events if isinstance(event, ToolResult)}
        calls = {event.id for event in self.events if isinstance(event, ToolCall)}
        return frozenset(calls - ended)

    def written(self) -> Any:
        """As JSON, to be kept."""
        return msgspec.to_builtins(self)

    @classmethod
    def read(cls, kept: Any) -> "Transcript":
        """What was kept."""
        return msgspec.convert(kept, cls)

    def after(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """What was said, with what had been said before."""
        waiting = _without_result(messages)
        new: list[Event] = []
        for event in self.events:
            if isinstance(event, ToolCall) and event.id in waiting:
                waiting.discard(event.id)
            else:
                new.append(event)
        return (*messages, *messages_of(new))


def _without_result(messages: Sequence[Message]) -> set[str]:
    """The calls at the end of messages that have no result."""
    found: set[str] = set()
    for message in messages:
        if message.role == "tool":
            found.discard(message.tool_call_id or "")
        else:
            found = {call.id for call in message.tool_calls}
    return found


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
