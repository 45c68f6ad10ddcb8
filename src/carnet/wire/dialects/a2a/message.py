"""Messages of A2A: what a caller says, and how it is told again.

Law 1. A message has an id, a role and at least one part, or it is refused.
Law 2. What was said is kept as it came, so that the history of a task tells it unchanged.
"""

from typing import Any, Final

from msgspec import Struct

from carnet.core.messages.events import Message
from carnet.errors import InvalidRequest
from carnet.wire.dialects.a2a.extensions import without_secrets
from carnet.wire.dialects.a2a.members import (
    join,
    member,
    need_id,
    read_id,
    read_object,
    read_optional,
    read_texts,
)
from carnet.wire.dialects.a2a.parts import read_parts

USER: Final = "ROLE_USER"
AGENT: Final = "ROLE_AGENT"
MOST_REFERENCES: Final = 64
MOST_EXTENSIONS: Final = 64
_ROLES: Final = (USER, AGENT)


class A2AMessage(Struct, frozen=True, kw_only=True):
    """A message as it was read."""

    id: str
    message: Message
    task: str | None  # that it goes on with
    context: str | None  # that it belongs to
    metadata: dict[str, Any]
    extensions: tuple[str, ...]
    written: dict[str, Any]  # as it came


def read_message(value: object, place: str = "message") -> A2AMessage:
    """What a caller says."""
    found = read_object(value, place)
    role = member(found, "role")
    if role not in _ROLES:
        raise InvalidRequest(join(place, "role"), f"must be one of {', '.join(_ROLES)}")
    name = need_id(found, "messageId", place)
    metadata = read_optional(found, "metadata", place)
    references = read_texts(found, "referenceTaskIds", place, MOST_REFERENCES)
    kept = {
        **without_secrets(metadata),
        **({"referenceTaskIds": [*references]} if references else {}),
    }
    parts = read_parts(member(found, "parts"), join(place, "parts"))
    return A2AMessage(
        id=name,
        message=Message("user", parts, id=name, metadata=kept or None),
        task=read_id(found, "taskId", place),
        context=read_id(found, "contextId", place),
        metadata=metadata,
        extensions=read_texts(found, "extensions", place, MOST_EXTENSIONS),
        written=found,
    )


def write_message(
    name: str, parts: list[dict[str, Any]], *, role: str = AGENT, **more: Any
) -> dict[str, Any]:
    """A message; `more` are members that are left out where there is nothing."""
    written = {"messageId": name, "role": role, "parts": parts}
    return written | {key: value for key, value in more.items() if value}
