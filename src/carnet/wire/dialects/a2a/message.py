"""Messages of A2A: what a caller says, and how it is told again.

Law 1. A message has an id, a role and at least one part, or it is refused.
Law 2. What was said is kept as it came, so that the history of a task tells it unchanged.
"""

from typing import Any, Final

from msgspec import Struct, convert

from carnet.core.messages.events import Message
from carnet.errors import InvalidRequest
from carnet.wire.dialects.a2a.extensions import without_secrets
from carnet.wire.dialects.a2a.members import (
    MOST_ID,
    in_camel,
    join,
    read_object,
    text_of,
    texts_of,
)
from carnet.wire.dialects.a2a.parts import read_parts

USER: Final = "ROLE_USER"
AGENT: Final = "ROLE_AGENT"
MOST_REFERENCES: Final = 64
MOST_EXTENSIONS: Final = 64
_ROLES: Final = (USER, AGENT)


class _Members(Struct, frozen=True, kw_only=True, rename="camel"):
    """The members of a message that are read, by their usual names, of whatever type they are."""

    role: Any = None
    message_id: Any = None
    task_id: Any = None
    context_id: Any = None
    parts: Any = None
    metadata: Any = None
    reference_task_ids: Any = None
    extensions: Any = None


class A2AMessage(Struct, frozen=True, kw_only=True):
    """A message as it was read."""

    id: str
    message: Message
    task: str | None  # that it goes on with
    context: str | None  # that it belongs to
    metadata: dict[str, Any]
    extensions: tuple[str, ...]
    written: dict[str, Any]  # as it came
    public: dict[str, Any]  # as it is recorded and told again: without credentials


def read_message(value: object, place: str = "message") -> A2AMessage:
    """What a caller says."""
    if type(value) is not dict:
        raise InvalidRequest(place, "must be an object")
    found = convert(in_camel(value), _Members)
    if found.role not in _ROLES:
        raise InvalidRequest(join(place, "role"), f"must be one of {', '.join(_ROLES)}")
    name = (
        None if found.message_id is None else text_of(found.message_id, "messageId", place, MOST_ID)
    )
    if name is None:
        raise InvalidRequest(join(place, "messageId"), "is missing")
    metadata = found.metadata
    metadata = {} if metadata is None else read_object(metadata, join(place, "metadata"))
    kept = public = without_secrets(metadata) if metadata else metadata
    references = found.reference_task_ids
    if references is not None:
        named = texts_of(references, "referenceTaskIds", place, MOST_REFERENCES)
        kept = {**kept, "referenceTaskIds": [*named]} if named else kept
    parts = read_parts(found.parts, f"{place}.parts")
    return A2AMessage(
        id=name,
        message=Message("user", parts, id=name, metadata=kept or None),
        task=None if found.task_id is None else text_of(found.task_id, "taskId", place, MOST_ID),
        context=None
        if found.context_id is None
        else text_of(found.context_id, "contextId", place, MOST_ID),
        metadata=metadata,
        extensions=()
        if found.extensions is None
        else texts_of(found.extensions, "extensions", place, MOST_EXTENSIONS),
        written=value,
        public=value if public is metadata else value | {"metadata": public},
    )


def write_message(
    name: str, parts: list[dict[str, Any]], *, role: str = AGENT, **more: Any
) -> dict[str, Any]:
    """A message; `more` are members that are left out where there is nothing."""
    written = {"messageId": name, "role": role, "parts": parts}
    return written | {key: value for key, value in more.items() if value}
