"""The tools by which a model makes schedules and hooks for the person it works for.

Law 1. Whose they are does not come from the model: they are hers for whom the turn is, and made
       with the token that asked for it, so they may do no more than that.
Law 2. Somebody approves each one that is made or deleted: a model does not wake itself by itself.
Law 3. A model is shown no secret. Whoever needs one has a new one made.
"""

from collections.abc import Mapping
from typing import Any, Final

from carnet.core.messages.parameters import Tool
from carnet.errors import CarnetError
from carnet.ports.engine.tools import LoopTool, ToolFailed, ToolUse, TurnTriggers

PERMISSION: Final = "triggers"
NEXT_STEP: Final = "Its owner has its secret made: carnet hooks rotate {name}"
_OURS: Final = 500  # statuses from here on are no mistake of the model

_NAME: Final = {"type": "string", "description": "1 to 63 of a-z, 0-9 and '-'."}
_AGENT: Final = {"type": "string", "description": "The agent that is told, by its name."}


async def add_schedule(use: ToolUse, /) -> object:
    """Make a schedule."""
    return await _done(_triggers(use).add_schedule(use.arguments))


async def list_schedules(use: ToolUse, /) -> object:
    """All of hers."""
    return await _done(_triggers(use).list_schedules())


async def delete_schedule(use: ToolUse, /) -> object:
    """Forget one of hers."""
    return await _done(_triggers(use).delete_schedule(_name(use)))


async def add_hook(use: ToolUse, /) -> object:
    """Make a hook."""
    if "secret" in use.arguments:
        raise ToolFailed("A secret is not given here: its owner gives it, or has one made.")
    page = dict(await _done(_triggers(use).add_hook(use.arguments)))
    secret = str(page.pop("secret"))
    page["address"] = str(page["address"]).replace(secret, "SECRET")
    return {**page, "hint": NEXT_STEP.format(name=page["name"])}


async def list_hooks(use: ToolUse, /) -> object:
    """All of hers."""
    return await _done(_triggers(use).list_hooks())


async def delete_hook(use: ToolUse, /) -> object:
    """Forget one of hers."""
    return await _done(_triggers(use).delete_hook(_name(use)))


async def _done(asked: Any) -> Mapping[str, Any]:
    try:
        page: Mapping[str, Any] = await asked
    except CarnetError as error:
        if error.status >= _OURS:
            raise
        raise ToolFailed(f"{error.safe_text} {error.next_step}") from None
    return page


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
            add_schedule,
            writes=True,
        ),
        _tool(
            Tool("list_schedules", "The schedules there are, and when each is due next."),
            list_schedules,
        ),
        _tool(Tool("delete_schedule", "End a schedule.", _ONE), delete_schedule, writes=True),
        _tool(
            Tool(
                "add_hook",
                "Make an address at which another program tells an agent something.",
                _object(_HOOK, "name", "agent"),
            ),
            add_hook,
            writes=True,
        ),
        _tool(Tool("list_hooks", "The hooks there are."), list_hooks),
        _tool(Tool("delete_hook", "End a hook.", _ONE), delete_hook, writes=True),
    )
}
