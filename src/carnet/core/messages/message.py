"""One message of a conversation, in parts.

Law 1. A part that is plain text is a `str`: nearly every message has one such part and no other.
Law 2. `text` is what a reader of text sees: the text parts, a line each.
Law 3. What a dialect cannot say of a message stays in its own body; nothing is guessed.
"""

from typing import Any, Literal

from msgspec import Struct

from carnet.core.messages.events import ToolCall

Role = Literal["system", "developer", "user", "assistant", "tool"]


class DataPart(Struct, frozen=True, tag="data"):
    """A value, such as a form that was filled in."""

    value: Any
    media_type: str | None = None


class File(Struct, frozen=True, tag="file"):
    """Bytes that travel with the message, in base64."""

    content: str
    name: str | None = None
    media_type: str | None = None


class Link(Struct, frozen=True, tag="link"):
    """Where to find what is meant. Nobody follows it unasked."""

    url: str
    name: str | None = None
    media_type: str | None = None


Part = str | DataPart | File | Link


class Message(Struct, frozen=True):
    """One message that is sent to an agent."""

    role: Role
    parts: tuple[Part, ...]
    name: str | None = None
    id: str | None = None  # the sender's own
    tool_calls: tuple[ToolCall, ...] = ()  # that the assistant asked for
    tool_call_id: str | None = None  # the call whose result a tool's message holds
    metadata: dict[str, Any] | None = None

    @property
    def text(self) -> str:
        """Its text parts, a line each."""
        match self.parts:
            case (str() as only,):
                return only
        return "\n".join([part for part in self.parts if isinstance(part, str)])

    @property
    def is_plain(self) -> bool:
        """Whether it holds text and nothing else."""
        return not (self.tool_calls or self.tool_call_id) and all(
            isinstance(part, str) for part in self.parts
        )
