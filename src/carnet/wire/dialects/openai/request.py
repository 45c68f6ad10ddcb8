"""A chat request: from the body that arrived, and into the body that leaves.

It reads what we act on and keeps the rest. It does not judge the values that only a model
understands (temperature, tools, response_format), and it does not find the agent.

Its messages are read into parts and written again, and the whole becomes a Claim, to be answered at
once or as a task.

Law 1. A field that we act on has its type or the request is refused; nothing is coerced. `null` is
       absent, as in OpenAI's own interface.
Law 2. A refusal names the place (`messages[2].role`) and never the value.
Law 3. Keys that we do not know are kept and reach an OpenAI-like upstream (R19).
Law 4. Text and roles have their type or the request is refused. What only a model understands
       (images, audio, tools) becomes a part where its form is the usual one; in any other form it
       stays in the body alone, for whichever model there is.
"""

import re
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, get_args

from msgspec import Struct, ValidationError, convert, structs

from carnet.core.call import Ask, Claim
from carnet.core.messages.events import DataPart, File, Link, Message, Part, Role, ToolCall
from carnet.core.people.identity import Secret
from carnet.errors import InvalidRequest
from carnet.wire.dialects.dialect import Arrival
from carnet.wire.dialects.openai.answer import tool_call_object
from carnet.wire.grammar import json
from carnet.wire.stamps.stamp import read_trace

MOST_MESSAGES: Final = 1024

# The start of a data URL: a media type, perhaps with parameters, and that bytes follow in base64.
_DATA_URL: Final = re.compile(
    r"data:([A-Za-z0-9!#$&^_.+-]{1,127}/[A-Za-z0-9!#$&^_.+-]{1,127}"
    r"(?:;[A-Za-z0-9_.+-]{1,64}=[A-Za-z0-9_.+-]{1,64}){0,4});base64",
    re.ASCII,
)
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
        return _read_file(content, name if isinstance(name, str) else None)
    return None


def _read_file(content: str, name: str | None) -> File:
    """A file, whose bytes stand in a data URL as a rule, and by themselves with some."""
    start, comma, encoded = content.partition(",")
    match = _DATA_URL.fullmatch(start) if comma else None
    return File(content, name) if match is None else File(encoded, name, match[1])


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
        written["tool_calls"] = [
            tool_call_object(call.id, call.name, call.arguments) for call in message.tool_calls
        ]
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
    content = part.content
    if part.media_type is not None:
        content = f"data:{part.media_type};base64,{content}"
    return {"type": "file", "file": {"file_data": content, **named}}


MOST_MODEL_CHARACTERS: Final = 256
MOST_SKILL_CHARACTERS: Final = 64
EXTENSION: Final = "carnet"  # {"skill": ..., "payload": {...}}: what is asked for by name

_MODEL: Final = re.compile(rf"[!-~]{{1,{MOST_MODEL_CHARACTERS}}}", re.ASCII)
_FORM: Final = frozenset({"stream", "stream_options"})
_RARE: Final = frozenset({*_FORM, "n", "max_tokens", "max_completion_tokens", EXTENSION})


def read_ask(body: dict[str, object]) -> tuple[str | None, Ask]:
    """What is asked, and of which model; None where the path names the agent."""
    if _RARE.isdisjoint(body):  # nearly every request says none of these
        ask = Ask(messages=read_messages(body.get("messages")), body=body)
        return _read_model(body.get("model")), ask
    _refuse_several_choices(body.get("n"))
    options = _read_options(body.get("stream_options"))
    skill, payload = _read_skill(body.get(EXTENSION))
    ask = Ask(
        messages=read_messages(body.get("messages")),
        stream=_read_flag(body.get("stream"), "stream"),
        include_usage=_read_flag(options.get("include_usage"), "stream_options.include_usage"),
        max_tokens=_read_max_tokens(body),
        body=body,
        skill=skill,
        payload=payload,
    )
    return _read_model(body.get("model")), ask


def request_digest(body: dict[str, Any], canonical: bytes) -> bytes:
    """Thirty-two bytes that are equal for the same question; `canonical` is the body's own form.

    How the answer is written is no part of what is asked: a repeat may ask for the other form.
    """
    if not _FORM.isdisjoint(body):
        canonical = json.canonical({name: body[name] for name in body if name not in _FORM})
    return sha256(canonical).digest()


def write_request(ask: Ask, *, model: str, stream: bool, with_skill: bool = False) -> bytes:
    """The body to send: as it came where it came in this dialect, else made of the messages.

    With `with_skill` a skill that is asked for by name is passed on, to a reader who knows how.
    """
    body = _compose(ask) if ask.body is None else dict(ask.body)
    options = (body.pop("stream_options") if "stream_options" in body else None) or {}
    if EXTENSION in body:  # it was for us
        del body[EXTENSION]
    if with_skill and ask.skill is not None:
        body[EXTENSION] = {"skill": ask.skill, "payload": ask.payload or {}}
    body["model"] = model
    body["stream"] = stream
    if stream:  # upstreams refuse these options beside stream: false
        body["stream_options"] = {**options, "include_usage": True}
    return json.write(body)


def _compose(ask: Ask) -> dict[str, Any]:
    messages = ask.messages
    if not messages and ask.skill is not None:  # a chat has at least one message
        messages = (Message("user", (json.write_text(ask.payload or {}),)),)
    body: dict[str, Any] = {"messages": [write_message(message) for message in messages]}
    if ask.max_tokens is not None:
        body["max_tokens"] = ask.max_tokens
    return body


def _read_model(value: object) -> str | None:
    if value is None:
        return None
    return _check_model(value if type(value) is str else "")


@lru_cache(maxsize=256)  # the names of our agents; what is refused is not kept
def _check_model(name: str) -> str:
    if _MODEL.fullmatch(name) is None:
        raise InvalidRequest(
            "model", f"must be 1 to {MOST_MODEL_CHARACTERS} visible ASCII characters"
        )
    return name


def _read_skill(value: object) -> tuple[str | None, dict[str, Any] | None]:
    if value is None:
        return None, None
    if not isinstance(value, dict) or not value.keys() <= {"skill", "payload"}:
        raise InvalidRequest(EXTENSION, "must be an object of skill and payload")
    skill, payload = value.get("skill"), value.get("payload")
    if not isinstance(skill, str) or not 1 <= len(skill) <= MOST_SKILL_CHARACTERS:
        raise InvalidRequest(
            f"{EXTENSION}.skill", f"must be 1 to {MOST_SKILL_CHARACTERS} characters"
        )
    if not skill.isprintable():  # as in the other dialect: no store need hold a NUL
        raise InvalidRequest(f"{EXTENSION}.skill", "must be printable characters")
    if not (payload is None or isinstance(payload, dict)):
        raise InvalidRequest(f"{EXTENSION}.payload", "must be an object")
    return skill, payload or {}


def _read_flag(value: object, field: str) -> bool:
    if value is None:
        return False
    if not isinstance(value, bool):
        raise InvalidRequest(field, "must be true or false")
    return value


def _read_max_tokens(body: dict[str, object]) -> int | None:
    older = _read_count(body.get("max_tokens"), "max_tokens")
    newer = _read_count(body.get("max_completion_tokens"), "max_completion_tokens")
    return older if newer is None else newer


def _read_count(value: object, field: str) -> int | None:
    if value is None:
        return None
    if type(value) is not int or value < 1:  # not isinstance: True is an int to Python
        raise InvalidRequest(field, "must be a whole number of at least 1")
    return value


def _refuse_several_choices(value: object) -> None:
    if value is not None and (type(value) is not int or value != 1):
        raise InvalidRequest("n", "must be 1: an agent gives one answer")


def _read_options(value: object) -> dict[str, object]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidRequest("stream_options", "must be an object")
    return value


NAME: Final = "openai"

_URL: Final = re.compile(r"[!-~]{1,2048}", re.ASCII)

# Members of other requests, without capitals, hyphens and underscores. A chat keeps what it does
# not know, for whichever model there is; of these we know that they would do nothing.
_CALLBACK: Final = "is not known here; write it as 'callback'"
_SIGNED: Final = "is for signed requests, which go to /agent/task"
_WITHIN: Final = "belongs into 'carnet', an object of skill and payload"
_ELSEWHERE: Final = {
    **dict.fromkeys(("callbackurl", "callbackuri", "callbacks"), _CALLBACK),
    **dict.fromkeys(("webhook", "webhookurl", "webhookuri", "notifyurl"), _CALLBACK),
    **dict.fromkeys(("skill", "payload"), _WITHIN),
    **dict.fromkeys(("mode", "delegationtoken", "traceid", "spanid"), _SIGNED),
}
_MOST_NAME: Final = 20


def read_chat(arrival: Arrival, body: bytes | None = None) -> Claim:
    """Read a chat completion request; `body` stands in the place of the one that came."""
    headers, stamped = arrival.headers, arrival.stamped()
    parsed = json.read_object(arrival.body if body is None else body)
    model, ask = read_ask(parsed)
    request = json.canonical(parsed)
    authorization = headers.get("authorization")
    return Claim(
        dialect=NAME,
        agent=arrival.agent if arrival.agent is not None else model or "",
        ask=ask,
        digest=request_digest(parsed, request),
        request=request,
        marks=stamped.marks,
        authorization=None if authorization is None else Secret(authorization),
        forwarded=stamped.forwarded,
        context=stamped.context,
        correlation=arrival.correlation,
        path=arrival.path,
        trace=read_trace(headers),
    )


def read_later(arrival: Arrival) -> Claim:
    """Read a chat request that is to be run as a task; it may name a `callback`."""
    parsed = json.read_object(arrival.body)
    _refuse_misplaced(parsed)
    callback = parsed.pop("callback", None)
    if callback is not None and (not isinstance(callback, str) or not _URL.fullmatch(callback)):
        raise InvalidRequest("callback", "must be a URL")
    claim = read_chat(arrival, json.write(parsed))
    if claim.ask.stream:
        raise InvalidRequest("stream", "is not for tasks: a result comes when one has ended")
    # The same turn, asked for at once, is another call.
    digest = sha256(b"task\0" + claim.digest).digest()
    return structs.replace(claim, is_task=True, callback=callback, digest=digest)


def _refuse_misplaced(parsed: dict[str, object]) -> None:
    """Refuse a member that its sender expects something of, and that nothing here would read."""
    for name in parsed:
        plain = name[: _MOST_NAME + 1].lower().replace("_", "").replace("-", "")
        if len(name) <= _MOST_NAME and plain in _ELSEWHERE:
            raise InvalidRequest(name, _ELSEWHERE[plain])
