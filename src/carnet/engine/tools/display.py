"""A tool call as people see it: its label, and without what is hidden.

Law 1. A hidden argument is shown to nobody: not in the stream, the record, an approval or a log.
       The tool is given what the model gave.
Law 2. Whoever approves a call and leaves a hidden argument as it is shown has not changed it.
Law 3. A label is one short line, whatever the arguments hold.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from carnet.core.messages.events import ToolCall
from carnet.ports.engine.tools import LoopTool
from carnet.wire.dialects.engine_chat.request import arguments_of
from carnet.wire.grammar import json

HIDDEN: Final = "***"
MOST_ARGUMENTS: Final = 120_000  # bytes, so that a call is one frame
MOST_LABEL: Final = 200  # characters

_PLACE: Final = re.compile(r"\{([A-Za-z_]\w*)\}", re.ASCII)


def is_long(call: ToolCall) -> bool:
    """Whether the arguments are more than a frame holds."""
    return len(call.arguments.encode(errors="replace")) > MOST_ARGUMENTS


def shown(call: ToolCall, tool: LoopTool | None) -> ToolCall:
    """A call as it is shown: run here, and without arguments that nobody is to see."""
    if is_long(call):
        return replace(call, arguments="{}", is_own=True)
    if tool is None or not (tool.hidden or tool.label):
        return replace(call, is_own=True)
    arguments = _covered(arguments_of(call) or {}, tool.hidden)
    written = json.write_text(arguments) if tool.hidden else call.arguments
    return replace(call, arguments=written, is_own=True, label=_label(tool.label, arguments))


def approved(given: Mapping[str, Any], true: Mapping[str, Any], tool: LoopTool) -> dict[str, Any]:
    """The arguments that somebody has approved: hidden ones that were left alone are as before."""
    left = {name for name in tool.hidden if given.get(name) == HIDDEN and name in true}
    return {name: true[name] if name in left else value for name, value in given.items()}


def _covered(arguments: dict[str, Any], hidden: frozenset[str]) -> dict[str, Any]:
    return {name: HIDDEN if name in hidden else value for name, value in arguments.items()}


def _label(label: str, arguments: Mapping[str, Any]) -> str:
    def fill(place: re.Match[str]) -> str:
        value = arguments.get(place[1], "")
        return value if isinstance(value, str) else json.write_text(value)

    text = _PLACE.sub(fill, label)
    text = "".join([sign if sign.isprintable() else " " for sign in text[: 2 * MOST_LABEL]])
    return text if len(text) <= MOST_LABEL else text[: MOST_LABEL - 3] + "..."
