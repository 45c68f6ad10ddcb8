"""Messages of conversations as they are shown, and what of a conversation can be changed."""

from collections.abc import Sequence
from typing import Any, Final

from carnet.core.messages.events import ToolCall, ToolResult
from carnet.core.money.amount import format_amount
from carnet.errors import InvalidRequest
from carnet.ports.calls.conversations import KeptMessage
from carnet.wire.dialects.engine_chat.request import arguments_of
from carnet.wire.grammar import json
from carnet.wire.grammar.times import when

MOST_NAME: Final = 200  # characters of a title

Shown = dict[str, Any]


def message_page(message: KeptMessage, siblings: Sequence[str]) -> Shown:
    """One message as it is shown; `siblings` are the ids of all that stand in its place."""
    page: Shown = {
        "id": message.id,
        "role": message.role,
        "author": message.author,
        "content": message.text,
        "state": message.state,
        "created": when(message.created),
        "siblings": [id for id in siblings if len(siblings) > 1],
    }
    if message.role == "user":
        page["client_message_id"] = message.client_id
        page["metadata"] = None if message.metadata is None else json.read_object(message.metadata)
        return page
    return page | {
        "tools": tools_of(message),
        "code": message.code,
        "waits": message.waits,
        "run": message.run,
        "ended": when(message.ended),
        "tokens_in": message.tokens_in,
        "tokens_out": message.tokens_out,
        "cost": None if message.cost is None else format_amount(message.cost),
    }


def tools_of(message: KeptMessage) -> Sequence[Shown]:
    """The tools that were used for an answer, and what they gave."""
    found: dict[str, Shown] = {}
    for event in message.events():
        if isinstance(event, ToolCall):
            found[event.id] = {
                "id": event.id,
                "name": event.name,
                "input": arguments_of(event) or {},
                "status": None,
                "output": None,
            }
        elif isinstance(event, ToolResult) and event.id in found:
            found[event.id] |= {"status": event.status, "output": event.output}
    return list(found.values())


def read_title(asked: Shown) -> str | None:
    """The new title of a conversation, if one is asked for."""
    title = asked.get("title")
    if "title" not in asked:
        return None
    is_well = isinstance(title, str) and title.strip() and len(title) <= MOST_NAME
    if not is_well or not str(title).isprintable():
        raise InvalidRequest("title", f"must be 1 to {MOST_NAME} printable characters")
    return str(title).strip()


def read_mark(asked: Shown, name: str) -> bool | None:
    """Whether something is to be so from now on; None where that is not asked."""
    value = asked.get(name)
    if name in asked and not isinstance(value, bool):
        raise InvalidRequest(name, "must be true or false")
    return None if value is None else bool(value)


SCHEMAS: Final[dict[str, Any]] = {
    "ConversationChanges": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "title": {"type": "string", "minLength": 1, "maxLength": MOST_NAME},
            "archived": {"type": "boolean"},
            "unread": {"type": "boolean"},
            "head": {"type": "string", "description": "The last message of the branch to show"},
        },
    },
}
