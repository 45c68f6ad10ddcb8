"""The messages of a chat request, read into parts and written again.

Law 1. Text and roles have their type or the request is refused. What only a model understands
       (images, audio, tools) becomes a part where its form is the usual one; in any other form it
       stays in the body alone, for whichever model there is.
Law 2. A refusal names the place (`messages[2].role`) and never the value.
"""

from typing import Any, Final, get_args

from msgspec import Struct, ValidationError, convert

from carnet.core.messages.events import DataPart, File, Link, Message, Part, Role, ToolCall
from carnet.errors import InvalidRequest
from carnet.wire.grammar import json

MOST_MESSAGES: Final = 1024

_ROLES: Final[dict[object, Role]] = {role: role for role in get_args(Role)}


class _Plain(Struct, forbid_unknown_fields=True, gc=False):
    """A message as most are: the library judges them all in C."""

    role: Role
    content: str
    name: str | None = None


def read_messages(value: object) -> tuple[Message, ...]:
    """The messages of a body."""
    if not isinstance(value, list) or not value:
        raise InvalidRequest("messages", "must be a list of at least one message")
    if len(value) > MOST_MESSAGES:
        raise InvalidRequest("messages", f"must not hold more than {MOST_MESSAGES} messages")
    try:
        plain = convert(value, list[_Plain])
    except ValidationError:  # right or wrong, it takes a closer look
        return tuple([_read_message(message, index) for index, message in enumerate(value)])
    return tuple([Message(message.role, (message.content,), message.name) for message in plain])


def _read_message(value: object, index: int) -> Message:
    if not isinstance(value, dict):
        raise InvalidRequest(f"messages[{index}]", "must be an object")
    word = value.get("role")
    role = _ROLES.get(word) if isinstance(word, str) else None
    if role is None:
        raise InvalidRequest(
            f"messages[{index}].role", f"must be one of {', '.join(_ROLES.values())}"
        )
    name = value.get("name")
    if not (name is None or isinstance(name, str)):
        raise InvalidRequest(f"messages[{index}].name", "must be text")
    content = value.get("content")
    if isinstance(content, str):
        parts: tuple[Part, ...] = (content,)
    else:
        parts = _read_parts(content, f"messages[{index}].content")
    if "tool_calls" not in value and "tool_call_id" not in value:
        return Message(role, parts, name)
    answered = value.get("tool_call_id")
    return Message(
        role,
        parts,
        name,
        tool_calls=_read_tool_calls(value.get("tool_calls")),
        tool_call_id=answered if isinstance(answered, str) else None,
    )


def _read_parts(value: object, place: str) -> tuple[Part, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise InvalidRequest(place, "must be text, null or a list of parts")
    parts = [_read_part(part, f"{place}[{index}]") for index, part in enumerate(value)]
    return tuple([part for part in parts if part is not None])


def _read_part(value: object, place: str) -> Part | None:
    if not isinstance(value, dict):
        raise InvalidRequest(place, "must be an object")
    kind, text = value.get("type"), value.get("text")
    if not isinstance(kind, str):
        raise InvalidRequest(f"{place}.type", "must be text")
    if kind == "text":
        if not isinstance(text, str):
            raise InvalidRequest(f"{place}.text", "must be text")
        return text
    inner = value.get(kind)
    return _read_other(kind, inner) if isinstance(inner, dict) else None


def _read_other(kind: str, inner: dict[str, Any]) -> Part | None:
    """What is no text, in the forms of OpenAI's interface."""
    url, data, name = inner.get("url"), inner.get("data"), inner.get("filename")
    if kind == "image_url" and isinstance(url, str):
        return Link(url, media_type="image/*")
    if kind == "input_audio" and isinstance(data, str):
        return File(data, media_type=f"audio/{inner.get('format') or '*'}")
    content = inner.get("file_data")
    if kind == "file" and isinstance(content, str):
        return File(content, name if isinstance(name, str) else None)
    return None


def _read_tool_calls(value: object) -> tuple[ToolCall, ...]:
    calls = value if isinstance(value, list) else []
    read = [_read_tool_call(call, index) for index, call in enumerate(calls)]
    return tuple([call for call in read if call is not None])


def _read_tool_call(value: object, index: int) -> ToolCall | None:
    function = value.get("function") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(function, dict):
        return None
    given = (value.get("id"), function.get("name"), function.get("arguments"))
    if not all(isinstance(word, str) for word in given):
        return None
    return ToolCall(str(given[0]), str(given[1]), str(given[2]), index)


def write_message(message: Message) -> dict[str, Any]:
    """A message for an upstream that reads this interface."""
    written: dict[str, Any] = {"role": message.role, "content": _write_content(message)}
    if message.name is not None:
        written["name"] = message.name
    if message.tool_calls:
        written["tool_calls"] = [_write_tool_call(call) for call in message.tool_calls]
    if message.tool_call_id is not None:
        written["tool_call_id"] = message.tool_call_id
    return written


def _write_content(message: Message) -> str | list[dict[str, Any]]:
    if all(isinstance(part, str) for part in message.parts):
        return message.text
    return [_write_part(part) for part in message.parts]


def _write_part(part: Part) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if isinstance(part, Link):
        return {"type": "image_url", "image_url": {"url": part.url}}
    if isinstance(part, DataPart):
        return {"type": "text", "text": json.write_text(part.value)}
    kind, _, form = (part.media_type or "").partition("/")
    if kind == "audio":
        return {"type": "input_audio", "input_audio": {"data": part.content, "format": form}}
    named = {} if part.name is None else {"filename": part.name}
    return {"type": "file", "file": {"file_data": part.content, **named}}


def _write_tool_call(call: ToolCall) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}
