"""The parts of messages: text, data and files, as the first A2A wrote them.

    {"type": "text", "text": ...}                    {"type": "data", "data": {...}}
    {"type": "file", "file": {"name", "mimeType", "bytes" or "uri"}}

Law 1. A part has one of the three types, or the message is refused.
Law 2. `read_file(write_file(x)) == x` for every file and link that a message of ours can have.
Law 3. What we write for an answer can be read again by `events_of`, and is the same then.
"""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from typing import Any, Final

from msgspec.structs import replace

from carnet.core.messages.events import (
    FILE,
    RESULT,
    Data,
    Event,
    Extension,
    File,
    Link,
    Text,
    ToolCall,
    file_event,
    joined_text,
)
from carnet.errors import CarnetError, InvalidJson, InvalidRequest
from carnet.wire.grammar import json

MOST_PARTS: Final = 1024
MOST_NAME: Final = 256  # characters of a name, an id or a media type
MOST_URL: Final = 2048
CONTEXT: Final = "context"  # the content type of text that is not said to the agent
_TYPES: Final = ("text", "data", "file")
_FILE_NAMES: Final = {"filename": "name", "mediaType": "mimeType", "raw": "bytes", "url": "uri"}


def refused(field: str, reason: str, word: str) -> InvalidRequest:
    """A refusal with the word that the dialect has for it."""
    error = InvalidRequest(field, reason)
    error.facts["word"] = word
    return error


def read_parts(message: object) -> list[dict[str, Any]]:
    """The parts of a message; a message without any has none."""
    found = message.get("parts") if isinstance(message, dict) else None
    if found is None:
        return []
    if not isinstance(found, list) or len(found) > MOST_PARTS:
        raise InvalidRequest("message.parts", f"must be a list of at most {MOST_PARTS}")
    for place, part in enumerate(found):
        if not isinstance(part, dict) or part.get("type") not in _TYPES:
            raise InvalidRequest(
                f"message.parts[{place}].type", f"must be one of {', '.join(_TYPES)}"
            )
    return found


def text_of(parts: Sequence[dict[str, Any]]) -> str:
    """What is said: the text parts, without anything between them."""  # agents-api:body:text
    texts: list[str] = []
    for part in parts:
        if part["type"] != "text" or part.get("contentType") == CONTEXT:
            continue
        text = part.get("text")
        if not isinstance(text, str):
            raise InvalidRequest("message.parts.text", "must be a text")
        texts.append(text)
    return "".join(texts).strip()


def data_of(parts: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What stands in the data parts that are objects."""
    found = [part.get("data") for part in parts if part["type"] == "data"]
    return [data for data in found if isinstance(data, dict)]


def read_name(value: object, field: str) -> str | None:
    """A name that may be there, of printable characters; a number stands for its digits."""
    if value is None or value == "":
        return None
    if type(value) is int:
        value = str(value)
    if not isinstance(value, str) or len(value) > MOST_NAME or not value.isprintable():
        raise InvalidRequest(field, f"must be a text of at most {MOST_NAME} characters")
    return value


def read_file(value: object, field: str) -> File | Link:
    """A file that travels with a message, or the link to one."""
    if not isinstance(value, dict):
        raise InvalidRequest(field, "must be an object")
    name, media = read_name(value.get("name"), field), read_name(value.get("mimeType"), field)
    content, url = value.get("bytes"), value.get("uri", value.get("url"))
    if (content is None) == (url is None):
        raise InvalidRequest(field, "must hold either bytes or uri")
    if url is not None:
        is_url = isinstance(url, str) and len(url) <= MOST_URL
        if not is_url or not all("!" <= sign <= "~" for sign in url):
            raise InvalidRequest(f"{field}.uri", f"must be a URL of at most {MOST_URL} characters")
        return Link(url, name, media)
    return File(_read_bytes(content, f"{field}.bytes"), name, media)


def _read_bytes(value: object, field: str) -> str:
    if isinstance(value, str):
        try:
            return b64encode(b64decode(value, validate=True)).decode()
        except (binascii.Error, ValueError):
            pass
    raise InvalidRequest(field, "must be bytes in base64")


def write_file(part: File | Link) -> dict[str, Any]:
    """A file as the dialect writes it."""
    payload = file_event(part).payload
    return {_FILE_NAMES[name]: value for name, value in payload.items()}


def write_text(text: str) -> dict[str, Any]:
    """A text part."""
    return {"type": "text", "text": text}


def write_data(value: object) -> dict[str, Any]:
    """A data part."""
    return {"type": "data", "data": value}


# ------------------------------------------------------------------ answers


def parts_of(events: Sequence[Event]) -> list[dict[str, Any]]:
    """What an answer is made of: its text, then what no text can tell."""
    others = [written for event in events if (written := _part_of(event)) is not None]
    return [write_text(joined_text(events)), *others]


def _part_of(event: Event) -> dict[str, Any] | None:
    match event:
        case Data():
            return write_data(event.value)
        case Extension(name=name, payload=payload) if name == RESULT:
            return write_data(payload)
        case Extension(name=name, payload=dict() as payload) if name == FILE:
            found = {_FILE_NAMES[key]: payload[key] for key in payload if key in _FILE_NAMES}
            return {"type": "file", "file": found}
        case ToolCall(is_own=False):
            arguments = _arguments(event.arguments)
            return write_data(
                {"toolCallId": event.id, "toolId": event.name, "arguments": arguments}
            )
    return None


def _arguments(written: str) -> object:
    """The arguments of a tool as an object; as they are written, if they are none."""
    try:
        return json.read(written.encode()) if written else {}
    except InvalidJson:
        return written


def events_of(parts: object, *, as_result: bool = False) -> Iterator[Event]:
    """What the parts of an answer tell; what we do not know of them is left out.

    With `as_result` the first object among the data is the result of a skill.
    """
    index = 0
    for part in parts[:MOST_PARTS] if isinstance(parts, list) else []:
        kind = part.get("type", part.get("kind")) if isinstance(part, dict) else None
        if kind == "text" and isinstance(part.get("text"), str) and part["text"]:
            yield Text(part["text"])
        elif kind == "file":
            try:
                yield file_event(read_file(part.get("file"), "file"))
            except CarnetError:
                continue
        elif kind == "data" and "data" in part:
            value = part["data"]
            call = read_call(value, index)
            if call is not None:
                index += 1
                yield call
            elif as_result and isinstance(value, dict):
                as_result = False
                yield Extension(RESULT, value)
            else:
                yield Data(value)


def read_call(value: object, index: int) -> ToolCall | None:
    """The call of a tool that a data part holds; None where it holds something else."""
    if not isinstance(value, dict) or "result" in value:
        return None
    name, tool = value.get("toolCallId"), value.get("toolId")
    if not isinstance(name, str) or not isinstance(tool, str) or not name or not tool:
        return None
    arguments = value.get("arguments")
    written = arguments if isinstance(arguments, str) else json.write_text(arguments or {})
    return ToolCall(name[:MOST_NAME], tool[:MOST_NAME], written, index)


def without_index(event: Event) -> Event:
    """A call of a tool as a receipt is about it: its place is nobody's business."""
    return replace(event, index=0) if isinstance(event, ToolCall) else event
