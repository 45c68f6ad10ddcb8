"""What a person's client sends: the body of `POST /message`.

Law 1. A field has its type or the request is refused; nothing is coerced.
Law 2. At the top stands nothing else (R19). Metadata passes through, unless it is a credential or
       what a loop is configured with.
Law 3. What is said is kept as it came: nothing of it is changed or searched.
"""

import re
from typing import Any, Final

from msgspec import Struct

from carnet.errors import InvalidRequest
from carnet.wire.dialects.engine_chat.request import refuse_kept_out, shown
from carnet.wire.grammar import json

MOST_METADATA_BYTES: Final = 16_384
_TOP: Final = frozenset({"content", "metadata", "client_message_id", "agent", "edits"})
_NAME: Final = re.compile(r"[!-~]{1,256}", re.ASCII)
_CLIENT_ID: Final = re.compile(r"[!-~]{1,128}", re.ASCII)


class SentMessage(Struct, frozen=True, kw_only=True):
    """What was sent."""

    content: str
    metadata: dict[str, Any] | None = None
    client_id: str | None = None  # the client's own name for it
    agent: str | None = None
    edits: str | None = None  # the id of a message that this one stands in the place of

    @property
    def client_context(self) -> dict[str, Any]:
        """What the client tells of itself."""
        found: dict[str, Any] = (self.metadata or {}).get("client_context") or {}
        return found


def read_sent(body: bytes, *, most_bytes: int) -> SentMessage:
    """What a body says; InvalidJson or InvalidRequest where it is not in its form."""
    parsed = json.read_object(body)
    for name in parsed:
        if name not in _TOP:
            raise InvalidRequest(shown(name), "is not known here")
    content = parsed.get("content")
    if not isinstance(content, str) or not content.strip():
        raise InvalidRequest("content", "must be text that is not blank")
    if len(content.encode()) > most_bytes:
        raise InvalidRequest("content", f"must not have more than {most_bytes} bytes")
    return SentMessage(
        content=content,
        metadata=_metadata(parsed),
        client_id=_word(parsed, "client_message_id", _CLIENT_ID, 128),
        agent=_word(parsed, "agent", _NAME, 256),
        edits=_word(parsed, "edits", _NAME, 256),
    )


def _metadata(parsed: dict[str, Any]) -> dict[str, Any] | None:
    metadata = parsed.get("metadata")
    if "metadata" not in parsed:
        return None
    if not isinstance(metadata, dict):
        raise InvalidRequest("metadata", "must be an object")
    refuse_kept_out(metadata)
    if "client_context" in metadata and not isinstance(metadata["client_context"], dict):
        raise InvalidRequest("metadata.client_context", "must be an object")
    if len(json.write(metadata)) > MOST_METADATA_BYTES:
        raise InvalidRequest("metadata", f"must not have more than {MOST_METADATA_BYTES} bytes")
    return metadata


def _word(parsed: dict[str, Any], name: str, form: re.Pattern[str], most: int) -> str | None:
    value = parsed.get(name)
    if name not in parsed:
        return None
    if not isinstance(value, str) or form.fullmatch(value) is None:
        raise InvalidRequest(name, f"must be 1 to {most} visible ASCII characters")
    return value
