"""What an agent can be asked for by name, with the shape of what goes in and comes out.

Law. A skill is data: the schemas are plain JSON Schema. Who runs it is the agent's business.
"""

from typing import Any, Final, Literal

from msgspec import Struct

Mode = Literal["sync", "async", "stream"]
Trust = Literal["public", "authenticated", "trusted-peers"]


class Skill(Struct, frozen=True, kw_only=True):
    """One skill of an agent, as its card shows it."""

    id: str  # at most 64 characters
    name: str  # at most 100
    description: str  # at most 500
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]
    modes: tuple[Mode, ...] = ("sync", "async", "stream")
    trust: Trust | None = None  # None: what the agent asks for
    allowed_peers: tuple[str, ...] | None = None  # identities; None: everybody we list as a peer


class Result(Struct, frozen=True):
    """What a skill gives in the end, where it stands among its chunks."""

    value: Any


_TEXT: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
}

# What an agent without declared skills is served as: text in, text out.
CHAT: Final = Skill(
    id="chat",
    name="chat",
    description="Say something and get an answer.",
    input_schema=_TEXT,
    output_schema=_TEXT,
)
