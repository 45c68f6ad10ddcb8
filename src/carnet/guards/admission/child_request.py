"""What an agent asks another in process, canonically: it is what a repeat is compared with."""

from hashlib import sha256
from typing import Any

import msgspec

from carnet.core.call import Ask
from carnet.core.messages.events import Message
from carnet.wire.grammar import json


def child_request(ask: Ask) -> bytes:
    """What was asked, canonically."""
    if ask.body is not None:
        return json.canonical(ask.body)
    messages = [_written(message) for message in ask.messages]
    if ask.skill is None:
        return json.canonical({"messages": messages})
    return json.canonical({"messages": messages, "skill": ask.skill, "payload": ask.payload})


def child_digest(agent: str, request: bytes) -> bytes:
    """The digest under which a repeat of the call is recognised."""
    return sha256(agent.encode() + b"\x00" + request).digest()


def _written(message: Message) -> dict[str, Any]:
    """A message of text as it always was; of any other, every part counts."""
    if message.is_plain:
        return {"role": message.role, "content": message.text}
    written: dict[str, Any] = msgspec.to_builtins(message)
    return written
