"""The parts of messages and artifacts: text, data, bytes and links, as A2A 1.0 writes them.

Law 1. A part holds exactly one of `text`, `raw`, `url` and `data`, or it is refused.
Law 2. `read_parts([write_part(x)]) == (x,)` for every part that a message of ours can have.
Law 3. What a part says of itself beside (`metadata`) is nobody's business here, and is left out.
"""

import binascii
from base64 import b64decode, b64encode
from typing import Any, Final

from carnet.core.messages.events import FILE, DataPart, Extension, File, Link, Part
from carnet.errors import InvalidRequest
from carnet.wire.dialects.a2a.members import join, read_object, read_text, read_url

MOST_PARTS: Final = 1024
_KINDS: Final = ("text", "raw", "url", "data")


def read_parts(value: object, place: str) -> tuple[Part, ...]:
    """The parts of a message; there is at least one."""
    if type(value) is not list or not value:
        raise InvalidRequest(place, "must be a list of at least one part")
    if len(value) > MOST_PARTS:
        raise InvalidRequest(place, f"must not hold more than {MOST_PARTS} parts")
    found: list[Part] = []
    for part in value:
        is_plain = type(part) is dict and "text" in part and type(part["text"]) is str
        if is_plain and len(part) == 1:  # nearly every one
            found += (part["text"],)
        else:
            found += (_read_part(part, f"{place}[{len(found)}]"),)
    return tuple(found)


def _read_part(value: object, place: str) -> Part:
    part = read_object(value, place)
    kinds = [kind for kind in _KINDS if kind in part]
    if len(kinds) != 1:
        raise InvalidRequest(place, f"must hold exactly one of {', '.join(_KINDS)}")
    if kinds[0] == "text":
        if not isinstance(part["text"], str):
            raise InvalidRequest(join(place, "text"), "must be a text")
        return str(part["text"])
    media = read_text(part, "mediaType", place)
    if kinds[0] == "data":
        return DataPart(part["data"], media)
    name = read_text(part, "filename", place)
    if kinds[0] == "url":
        return Link(read_url(part, "url", place), name, media)
    return File(_read_raw(part["raw"], join(place, "raw")), name, media)


def _read_raw(value: object, place: str) -> str:
    """Bytes in base64, of either alphabet, as ProtoJSON has them; always of the usual one here."""
    if isinstance(value, str):
        usual = value.replace("-", "+").replace("_", "/")
        try:
            return b64encode(b64decode(usual + "=" * (-len(usual) % 4), validate=True)).decode()
        except (binascii.Error, ValueError):
            pass
    raise InvalidRequest(place, "must be bytes in base64")


def write_part(part: Part) -> dict[str, Any]:
    """A part as A2A writes it."""
    match part:
        case str():
            return {"text": part}
        case DataPart():
            return _with({"data": part.value}, None, part.media_type)
        case File():
            return _with({"raw": part.content}, part.name, part.media_type)
    return _with({"url": part.url}, part.name, part.media_type)


def _with(content: dict[str, Any], name: str | None, media: str | None) -> dict[str, Any]:
    if name is not None:
        content["filename"] = name
    if media is not None:
        content["mediaType"] = media
    return content


def file_of(event: Extension) -> dict[str, Any] | None:
    """The part that an event tells of; None for another event, or one that is broken."""
    if event.name != FILE or not isinstance(event.payload, dict):
        return None
    try:
        return write_part(_read_part(event.payload, FILE))
    except InvalidRequest:
        return None
