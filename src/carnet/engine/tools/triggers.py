"""The tools by which a model makes schedules and hooks for the person it works for.

Law 1. Whose they are does not come from the model: they are hers for whom the turn is, and made
       with the token that asked for it, so they may do no more than that.
Law 2. Somebody approves each one that is made or deleted: a model does not wake itself by itself.
Law 3. A model is shown no secret. Whoever needs one has a new one made.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from carnet.core.messages.parameters import Tool
from carnet.errors import CarnetError
from carnet.ports.engine.tools import (
    LoopTool,
    ToolFailed,
    ToolUse,
    TurnOwned,
    TurnTriggers,
    UseTool,
)

PERMISSION: Final = "triggers"
_OURS: Final = 500  # statuses from here on are no mistake of the model

_NAME: Final = {"type": "string", "description": "1 to 63 of a-z, 0-9 and '-'."}
_AGENT: Final = {"type": "string", "description": "The agent that is told, by its name."}


Find = Callable[[TurnTriggers], TurnOwned]  # schedules, or hooks


def _add(find: Find) -> UseTool:
    async def add(use: ToolUse, /) -> object:
        return await _done(find(_triggers(use)).add(use.arguments))

    return add


def _list(find: Find) -> UseTool:
    async def list(use: ToolUse, /) -> object:
        return await _done(find(_triggers(use)).list())

    return list


def _delete(find: Find) -> UseTool:
    async def delete(use: ToolUse, /) -> object:
        return await _done(find(_triggers(use)).delete(_name(use)))

    return delete


def _schedules(triggers: TurnTriggers) -> TurnOwned:
    return triggers.schedules


def _hooks(triggers: TurnTriggers) -> TurnOwned:
    return triggers.hooks


async def _done(asked: Awaitable[Mapping[str, Any]]) -> Mapping[str, Any]:
    try:
        return await asked
    except CarnetError as error:
        if error.status >= _OURS:
            raise
        raise ToolFailed(f"{error.safe_text} {error.next_step}") from None


def _triggers(use: ToolUse) -> TurnTriggers:
    if use.triggers is None:
        raise AssertionError("a tool of schedules is used where there are none")
    return use.triggers


def _name(use: ToolUse) -> str:
    name = use.arguments.get("name")
    if not isinstance(name, str):
        raise ToolFailed("'name' is a text.")
    return name


def _object(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": dict(properties), "required": list(required)}


_SCHEDULE: Final = {
    "name": _NAME,
    "agent": _AGENT,
    "cron": {"type": "string", "description": "minute hour day month weekday, or @daily."},
    "zone": {"type": "string", "description": "The time zone, such as Europe/Berlin; else UTC."},
    "message": {"type": "string", "description": "What the agent is told each time."},
    "missed": {"enum": ["skip", "last", "all"], "description": "Times at which nothing ran."},
}
_HOOK: Final = {
    "name": _NAME,
    "agent": _AGENT,
    "scheme": {"enum": ["standard", "github", "stripe", "slack", "url"]},
    "template": {"type": "string", "description": "What the agent is told: {{ body.order.id }}."},
}
_ONE: Final = _object({"name": _NAME}, "name")


def _tool(definition: Tool, use: Any, *, writes: bool = False) -> LoopTool:
    return LoopTool(
        definition=definition,
        use=use,
        permission=PERMISSION,
        approval="write",
        writes=writes,
        needs_triggers=True,
    )


TRIGGER_TOOLS: Final[dict[str, LoopTool]] = {
    tool.definition.name: tool
    for tool in (
        _tool(
            Tool(
                "add_schedule",
                "Have an agent told something at set times, from now on.",
                _object(_SCHEDULE, "name", "agent", "cron", "message"),
            ),
            _add(_schedules),
            writes=True,
        ),
        _tool(
            Tool("list_schedules", "The schedules there are, and when each is due next."),
            _list(_schedules),
        ),
        _tool(Tool("delete_schedule", "End a schedule.", _ONE), _delete(_schedules), writes=True),
        _tool(
            Tool(
                "add_hook",
                "Make an address at which another program tells an agent something.",
                _object(_HOOK, "name", "agent"),
            ),
            _add(_hooks),
            writes=True,
        ),
        _tool(Tool("list_hooks", "The hooks there are."), _list(_hooks)),
        _tool(Tool("delete_hook", "End a hook.", _ONE), _delete(_hooks), writes=True),
    )
}
