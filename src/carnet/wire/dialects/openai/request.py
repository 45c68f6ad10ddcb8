"""A chat request: from the body that arrived, and into the body that leaves.

It reads what we act on and keeps the rest. It does not judge the values that only a model
understands (temperature, tools, response_format), and it does not find the agent.

Law 1. A field that we act on has its type or the request is refused; nothing is coerced. `null`
       is absent, as in OpenAI's own interface.
Law 2. A refusal names the place (`messages[2].role`) and never the value.
Law 3. Keys that we do not know are kept and reach an OpenAI-like upstream (R19).
"""

import re
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from carnet.core.call import Ask
from carnet.core.messages.events import Message
from carnet.errors import InvalidRequest
from carnet.wire.dialects.openai.messages import read_messages, write_message
from carnet.wire.grammar import json

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
