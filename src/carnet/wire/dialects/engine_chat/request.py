"""The body of `POST /engine/chat`: messages, and metadata beside them.

Law 1. A field has its type or the request is refused; nothing is coerced, and null is no value.
Law 2. A refusal names the place (`messages[2].role`) and never the value.
Law 3. At the top stands nothing else (R19). What stands in the metadata and is not known passes
       through, unless it is what the loop is configured with, or a credential.
Law 4. What is said is never searched: not the content of a message, the arguments of a tool or the
       context of a client.
Law 5. A result follows the message with its call, and a call has one at the most. A call without
       any is what it is: words of somebody. Whoever reads it runs nothing.
Law 6. `read_request(write_request(x)) == x` for all that can be read.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, get_args

from msgspec import Struct

from carnet.core.messages.events import DataPart, Message, Part, Role, ToolCall
from carnet.errors import InvalidJson, InvalidRequest
from carnet.wire.grammar import json

Trigger = Literal["message", "webhook", "schedule"]

MOST_MESSAGES: Final = 1024
MOST_CALLS: Final = 128  # of one message
MOST_CALLS_IN_ALL: Final = MOST_MESSAGES  # those with a result have a message each
MOST_NAME: Final = 256  # characters of the id of a call, or of the name of a tool

_TRIGGERS: Final[Mapping[object, Trigger]] = {word: word for word in get_args(Trigger)}
_ROLES: Final[Mapping[object, Role]] = {
    "system": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_CORRELATION: Final = re.compile(r"[!-~]{1,128}", re.ASCII)  # R49
_CONVERSATION: Final = re.compile(r"[!-~]{1,256}", re.ASCII)
_SHOWN: Final = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)

_TOP: Final = frozenset({"messages", "metadata"})
_KNOWN: Final = frozenset({"correlation_id", "conversation_id", "trigger", "client_context"})
_OF_MESSAGE: Final = frozenset({"role", "content", "tool_calls", "tool_call_id"})
_OF_CALL: Final = frozenset({"id", "name", "arguments"})

# Names without capitals, hyphens and underscores: a key is a key in every spelling.
_CONFIGURED: Final = "is what the loop is configured with, and no part of a request"
_CREDENTIAL: Final = "is a credential, which belongs into a header"
_KEPT_OUT: Final[Mapping[str, str]] = {
    **dict.fromkeys(("provider", "provideradapter", "model", "baseurl"), _CONFIGURED),
    **dict.fromkeys(("tools", "toolsources", "maxiterations"), _CONFIGURED),
    **dict.fromkeys(("apikey", "apikeyenv", "xapikey", "authorization", "bearer"), _CREDENTIAL),
    **dict.fromkeys(("token", "accesstoken", "sessionid", "cookie", "password"), _CREDENTIAL),
    **dict.fromkeys(("secret", "credential", "credentials"), _CREDENTIAL),
}


class EngineRequest(Struct, frozen=True, kw_only=True):
    """What a loop is asked."""

    messages: tuple[Message, ...]
    correlation: str  # the name of the request, by which it is traced
    conversation: str | None = None
    trigger: Trigger = "message"
    client_context: dict[str, Any] | None = None
    metadata: dict[str, Any] = {}  # what else stands there, as it came


def read_request(body: bytes) -> EngineRequest:
    """What a body asks; InvalidJson or InvalidRequest where it is not in its form."""
    parsed = json.read_object(body)
    for name in parsed:
        if name not in _TOP:
            raise InvalidRequest(shown(name), _kept_out(name) or "is not known here")
    metadata = parsed.get("metadata")
    if not isinstance(metadata, dict):
        raise InvalidRequest("metadata", "must be an object")
    return _with_metadata(_read_messages(parsed.get("messages")), metadata)


def _with_metadata(messages: tuple[Message, ...], metadata: dict[str, Any]) -> EngineRequest:
    refuse_kept_out(metadata)
    trigger = _TRIGGERS.get(_hashable(metadata.get("trigger", "message")))
    if trigger is None:
        raise InvalidRequest("metadata.trigger", f"must be one of {', '.join(get_args(Trigger))}")
    context = metadata.get("client_context")
    if "client_context" in metadata and not isinstance(context, dict):
        raise InvalidRequest("metadata.client_context", "must be an object")
    correlation = _visible(metadata.get("correlation_id"), "correlation_id", _CORRELATION, 128)
    conversation = None
    if "conversation_id" in metadata:
        conversation = _visible(metadata["conversation_id"], "conversation_id", _CONVERSATION, 256)
    return EngineRequest(
        messages=messages,
        correlation=correlation,
        conversation=conversation,
        trigger=trigger,
        client_context=context,
        metadata={name: metadata[name] for name in metadata if name not in _KNOWN},
    )


def _visible(value: object, name: str, form: re.Pattern[str], most: int) -> str:
    if not isinstance(value, str) or form.fullmatch(value) is None:
        raise InvalidRequest(f"metadata.{name}", f"must be 1 to {most} visible ASCII characters")
    return value


def refuse_kept_out(metadata: Mapping[str, Any]) -> None:
    """Refuse metadata that holds what a loop is configured with, or a credential."""
    for name in metadata:
        reason = _kept_out(name)
        if reason:
            raise InvalidRequest(f"metadata.{shown(name)}", reason)


def _kept_out(name: str) -> str:
    """Why a member must not be there; empty if it may."""
    if len(name) > MOST_NAME:
        return ""
    return _KEPT_OUT.get(name.lower().replace("_", "").replace("-", ""), "")


def shown(name: str) -> str:
    """A name of the sender's as a refusal may tell it."""
    return name if _SHOWN.fullmatch(name) else "other"


def _hashable(value: object) -> object:
    return value if isinstance(value, str) else None


# ------------------------------------------------------------------ messages


def _read_messages(value: object) -> tuple[Message, ...]:
    if not isinstance(value, list) or not value:
        raise InvalidRequest("messages", "must be a list of at least one message")
    if len(value) > MOST_MESSAGES:
        raise InvalidRequest("messages", f"must not hold more than {MOST_MESSAGES} messages")
    if sum(map(_calls_in, value)) > MOST_CALLS_IN_ALL:
        raise InvalidRequest("messages", f"must not hold more than {MOST_CALLS_IN_ALL} tool calls")
    open_calls: set[str] = set()  # of the message before, that have no result yet
    return tuple(
        [_read_message(entry, f"messages[{n}]", open_calls) for n, entry in enumerate(value)]
    )


def _calls_in(message: object) -> int:
    calls = message.get("tool_calls") if isinstance(message, dict) else None
    return len(calls) if isinstance(calls, list) else 0


def _read_message(value: object, place: str, open_calls: set[str]) -> Message:
    if not isinstance(value, dict):
        raise InvalidRequest(place, "must be an object")
    _refuse_others(value, _OF_MESSAGE, place)
    role = _ROLES.get(_hashable(value.get("role")))
    if role is None:
        raise InvalidRequest(f"{place}.role", f"must be one of {', '.join(_ROLES.values())}")
    content = value.get("content")
    if not isinstance(content, str):
        raise InvalidRequest(f"{place}.content", "must be text")
    return Message(
        role,
        (content,),
        tool_calls=_read_calls(value, place, role, open_calls),
        tool_call_id=_read_answered(value, place, role, open_calls),
    )


def _read_calls(
    message: dict[str, Any], place: str, role: Role, open_calls: set[str]
) -> tuple[ToolCall, ...]:
    if role != "tool":
        open_calls.clear()
    if "tool_calls" not in message:
        return ()
    place, calls = f"{place}.tool_calls", message["tool_calls"]
    if role != "assistant":
        raise InvalidRequest(place, "is for messages of the assistant")
    if not isinstance(calls, list) or len(calls) > MOST_CALLS:
        raise InvalidRequest(place, f"must be a list of at most {MOST_CALLS} calls")
    read = tuple([_read_call(call, f"{place}[{n}]", n) for n, call in enumerate(calls)])
    for n, call in enumerate(read):
        if call.id in open_calls:
            raise InvalidRequest(f"{place}[{n}].id", "is the id of another call")
        open_calls.add(call.id)
    return read


def _read_call(value: object, place: str, index: int) -> ToolCall:
    if not isinstance(value, dict):
        raise InvalidRequest(place, "must be an object")
    _refuse_others(value, _OF_CALL, place)
    arguments = value.get("arguments")
    if not isinstance(arguments, dict):
        raise InvalidRequest(f"{place}.arguments", "must be an object")
    id, name = _read_name(value, "id", place), _read_name(value, "name", place)
    return ToolCall(id, name, json.write_text(arguments), index)


def _read_name(value: dict[str, Any], name: str, place: str) -> str:
    word = value.get(name)
    if not is_name(word):
        raise InvalidRequest(f"{place}.{name}", f"must be 1 to {MOST_NAME} printable characters")
    return str(word)


def _read_answered(
    message: dict[str, Any], place: str, role: Role, open_calls: set[str]
) -> str | None:
    id, place = message.get("tool_call_id"), f"{place}.tool_call_id"
    if role != "tool":
        if "tool_call_id" in message:
            raise InvalidRequest(place, "is for messages of a tool")
        return None
    if not isinstance(id, str) or id not in open_calls:
        raise InvalidRequest(
            place, "must be the id of a call of the message before that has no result"
        )
    open_calls.discard(id)
    return id


def _refuse_others(value: Mapping[str, Any], known: frozenset[str], place: str) -> None:
    for name in value:
        if name not in known:
            raise InvalidRequest(f"{place}.{shown(name)}", "is not known here")


def is_name(value: object) -> bool:
    """Whether it may be the id of a call, or the name of a tool."""
    return isinstance(value, str) and 1 <= len(value) <= MOST_NAME and value.isprintable()


# ------------------------------------------------------------------ writing


def write_request(request: EngineRequest) -> bytes:
    """The body that asks it; InvalidRequest for what a loop cannot be given."""
    refuse_kept_out(request.metadata)
    # What somebody passes through never stands in the place of what the gateway says.
    metadata = {name: value for name, value in request.metadata.items() if name not in _KNOWN}
    metadata |= {"correlation_id": request.correlation, "trigger": request.trigger}
    if request.conversation is not None:
        metadata["conversation_id"] = request.conversation
    if request.client_context is not None:
        metadata["client_context"] = request.client_context
    messages = [_write_message(each, f"messages[{n}]") for n, each in enumerate(request.messages)]
    return json.write({"messages": messages, "metadata": metadata})


def _write_message(message: Message, place: str) -> dict[str, Any]:
    role = "system" if message.role == "developer" else message.role
    written: dict[str, Any] = {"role": role, "content": _write_parts(message.parts, place)}
    if message.tool_calls:
        written["tool_calls"] = [_write_call(call, place) for call in message.tool_calls]
    if message.tool_call_id is not None:
        written["tool_call_id"] = message.tool_call_id
    return written


def _write_parts(parts: Sequence[Part], place: str) -> str:
    texts: list[str] = []
    for part in parts:
        if not isinstance(part, str | DataPart):
            raise InvalidRequest(
                f"{place}.content", "holds more than text, which is all this reads"
            )
        texts.append(part if isinstance(part, str) else json.write_text(part.value))
    return "\n".join(texts)


def _write_call(call: ToolCall, place: str) -> dict[str, Any]:
    arguments = arguments_of(call)
    if arguments is None:
        raise InvalidRequest(f"{place}.tool_calls", "has arguments that are no JSON object")
    return {"id": call.id, "name": call.name, "arguments": arguments}


def arguments_of(call: ToolCall) -> dict[str, Any] | None:
    """The arguments of a call as an object; None where a model wrote something else."""
    try:
        return json.read_object(call.arguments.encode())
    except (InvalidJson, UnicodeEncodeError):
        return None
