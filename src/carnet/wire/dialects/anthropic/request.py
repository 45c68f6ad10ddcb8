"""What a model is asked over Anthropic's messages.

Law 1. What instructs it stands at the top, whatever message it was said in. The rest are turns of
       user and assistant; messages of one side that follow one another are one turn.
Law 2. The results of tools are the user's, right behind the turn that has the calls, and before
       whatever else is said.
Law 3. An answer that was kept whole with the model's thoughts is sent back as it came: a provider
       refuses calls of tools without them. A block without words is refused as well, and left out.
Law 4. An answer has a greatest length, which must be said: `max_tokens`, or DEFAULT_TOKENS.
Law 5. A parameter that is known there by another name or form is written so; one that is not known
       at all is left out, such as `temperature`, which its newest version refuses. What only this
       interface knows (`extra_body`) passes as it is.
"""

import re
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any, Final

from carnet.core.call import Ask
from carnet.core.messages.events import ECHO, DataPart, File, Link, Message, Part, ToolCall
from carnet.core.messages.parameters import Parameters, Tool
from carnet.errors import InvalidJson, ModelRefused, SkillNotFound
from carnet.wire.grammar import json

DEFAULT_TOKENS: Final = 4096  # the most that every model of theirs can answer with
MOST_ID: Final = 128  # characters

_ID: Final = re.compile(rf"[A-Za-z0-9_-]{{1,{MOST_ID}}}", re.ASCII)
_SYSTEM: Final = frozenset({"system", "developer"})
_CHOICES: Final = {"auto": "auto", "none": "none", "required": "any"}
# Of the request itself: what is said and to whom, and how the answer comes.
_OURS: Final = frozenset({"messages", "model", "n", "stream", "stream_options", "carnet"})
_KNOWN: Final = frozenset({*Parameters.__annotations__, *_OURS})
_INLINE: Final = re.compile(r"data:([a-z]+/[a-z0-9.+-]+);base64,", re.ASCII)
_PDF: Final = "application/pdf"

Block = dict[str, Any]


def write_request(ask: Ask, *, model: str, stream: bool, with_skill: bool) -> bytes:
    """The body that asks it; ModelRefused for a part that this interface has no word for."""
    if with_skill:
        raise SkillNotFound("a model has no skills")
    members = ask.body or {}
    body: dict[str, Any] = {
        **{name: value for name, value in members.items() if name not in _KNOWN},
        "model": model,
        "max_tokens": _most_tokens(ask, members),
        "messages": _turns(ask.messages),
        **_system(ask.messages),
        **_stops(members.get("stop")),
        **_tools(members),
        **_format(members.get("response_format")),
    }
    if stream:
        body["stream"] = True
    return json.write(body)


def _most_tokens(ask: Ask, members: Mapping[str, Any]) -> int:
    given = members.get("max_completion_tokens") or members.get("max_tokens") or ask.max_tokens
    return given or DEFAULT_TOKENS


def _system(messages: tuple[Message, ...]) -> dict[str, Any]:
    texts = [message.text for message in messages if message.role in _SYSTEM]
    written = "\n\n".join([text for text in texts if text.strip()])
    return {"system": written} if written else {}


# ------------------------------------------------------------------ what was said


def _turns(messages: tuple[Message, ...]) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = []
    for message in messages:
        if message.role in _SYSTEM:
            continue
        role, blocks = _turn(message)
        if not blocks:
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return turns


def _turn(message: Message) -> tuple[str, list[Block]]:
    if message.role == "tool":
        result = {"type": "tool_result", "tool_use_id": _id(message.tool_call_id or "")}
        return "user", [{**result, "content": message.text}]
    if message.role == "assistant":
        return "assistant", _echo(message) or [
            *_blocks((message.text,)),
            *map(_call, message.tool_calls),
        ]
    return "user", list(_blocks(message.parts))


def _answer(message: Message) -> list[Block]:
    return [*_blocks((message.text,)), *map(_call, message.tool_calls)]


def _echo(message: Message) -> list[Block] | None:
    """The answer as it came, where it is to be sent back so, and its calls are still the same."""
    blocks: list[Block] | None = (message.metadata or {}).get(ECHO)
    if blocks is None:
        return None
    calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
    return blocks if calls == [call.id for call in message.tool_calls] else None


def _call(call: ToolCall) -> Block:
    try:
        arguments = json.read_object(call.arguments.encode())
    except (InvalidJson, UnicodeEncodeError):
        arguments = {}
    return {"type": "tool_use", "id": _id(call.id), "name": call.name, "input": arguments}


def _id(id: str) -> str:
    """The id of a call; one that would be refused there has another, the same each time."""
    if _ID.fullmatch(id):
        return id
    return f"call_{sha256(id.encode(errors='replace')).hexdigest()[:32]}"


def _blocks(parts: tuple[Part, ...]) -> Iterator[Block]:
    for part in parts:
        match part:
            case str():
                if part.strip():
                    yield {"type": "text", "text": part}
            case DataPart():
                yield {"type": "text", "text": json.write_text(part.value)}
            case Link():
                yield {"type": "image", "source": _link(part)}
            case File():
                yield _file(part)


def _link(link: Link) -> Block:
    inline = _INLINE.match(link.url)
    if inline is None:
        return {"type": "url", "url": link.url}
    return _inline(inline[1], link.url[inline.end() :])


def _inline(media_type: str, content: str) -> Block:
    return {"type": "base64", "media_type": media_type, "data": content}


def _file(file: File) -> Block:
    inline = _INLINE.match(file.content)
    media_type = inline[1] if inline else file.media_type or ""
    content = file.content[inline.end() :] if inline else file.content
    if media_type.startswith("image/"):
        return {"type": "image", "source": _inline(media_type, content)}
    if media_type == _PDF:
        return {"type": "document", "source": _inline(media_type, content)}
    raise ModelRefused(f"this model reads no file of the type {media_type[:64] or 'none'}")


# ------------------------------------------------------------------ how to answer


def _stops(stop: object) -> dict[str, Any]:
    if not stop:
        return {}
    return {"stop_sequences": [stop] if isinstance(stop, str) else stop}


def _tools(members: Mapping[str, Any]) -> dict[str, Any]:
    tools = [Tool.of(tool) for tool in members.get("tools") or ()]
    if not tools:
        return {}
    written = [_tool(tool) for tool in tools]
    choice = _choice(members.get("tool_choice"))
    if members.get("parallel_tool_calls") is False and choice.get("type") != "none":
        choice = {"type": "auto", **choice, "disable_parallel_tool_use": True}
    return {"tools": written, **({"tool_choice": choice} if choice else {})}


def _tool(tool: Tool) -> Block:
    described = {"description": tool.description} if tool.description else {}
    return {
        "name": tool.name,
        **described,
        "input_schema": tool.parameters or {"type": "object", "properties": {}},
    }


def _choice(chosen: object) -> Block:
    if isinstance(chosen, str):
        return {"type": _CHOICES[chosen]} if chosen in _CHOICES else {}
    function = chosen.get("function") if isinstance(chosen, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    return {"type": "tool", "name": name} if isinstance(name, str) else {}


def _format(wanted: object) -> dict[str, Any]:
    """The schema that an answer is to fit; other forms have no word here."""
    described = wanted.get("json_schema") if isinstance(wanted, Mapping) else None
    schema = described.get("schema") if isinstance(described, Mapping) else None
    if not isinstance(schema, Mapping):
        return {}
    return {"output_config": {"format": {"type": "json_schema", "schema": schema}}}
