"""A tool call as people see it: its label, and without what is hidden.

Law 1. A hidden argument is shown to nobody: not in the stream, the record, an approval or a log.
       The tool is given what the model gave.
Law 2. Whoever approves a call and leaves a hidden argument as it is shown has not changed it.
       Where the call itself comes back by other hands, what is hidden is sealed in its place: for
       this call, this argument and who acts, and opened once somebody has approved the call.
Law 3. A label is one short line, whatever the arguments hold.
"""

import asyncio
import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from carnet.core.messages.events import ToolCall
from carnet.errors import CarnetError
from carnet.ports.engine.tools import HiddenSeal, LoopTool, ToolFailed, ToolUse
from carnet.wire.dialects.engine_chat.request import arguments_of
from carnet.wire.dialects.engine_chat.stream import HIDDEN, SEALED, lines_of
from carnet.wire.grammar import json

CANNOT_OPEN: Final = "What is hidden in this call cannot be opened any more."
MOST_ARGUMENTS: Final = 120_000  # bytes, so that a call is one frame
MOST_LABEL: Final = 200  # characters
PREVIEW_SECONDS: Final = 5.0  # that a tool may take to tell what would come of a use

_PLACE: Final = re.compile(r"\{([A-Za-z_]\w*)\}", re.ASCII)


def is_long(call: ToolCall) -> bool:
    """Whether the arguments are more than a frame holds."""
    return len(call.arguments.encode(errors="replace")) > MOST_ARGUMENTS


class Cover:
    """Hides arguments, and finds them again where it has a seal."""

    def __init__(self, actor: str, seal: HiddenSeal | None = None) -> None:
        """For calls of who acts."""
        self._actor = actor
        self._seal = seal

    def hide(self, call: ToolCall, name: str, value: object) -> str:
        """What stands in the place of an argument."""
        if self._seal is None:
            return HIDDEN
        return SEALED + self._seal.seal(json.write_text(value), label=self._label(call, name))

    def find(self, call: ToolCall, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a call that came back; ValueError for what cannot be opened."""
        return {name: self._found(call, name, value) for name, value in arguments.items()}

    def _found(self, call: ToolCall, name: str, value: object) -> object:
        if self._seal is None or not isinstance(value, str) or not value.startswith(SEALED):
            return value
        label = self._label(call, name)
        return json.read(self._seal.open(value.removeprefix(SEALED), label=label).encode())

    def _label(self, call: ToolCall, name: str) -> str:
        return json.write_text(["argument", self._actor, call.id, call.name, name])


def shown(call: ToolCall, tool: LoopTool | None, cover: Cover) -> ToolCall:
    """A call as it is shown: run here, and without arguments that nobody is to see."""
    if is_long(call):
        return replace(call, arguments="{}", is_own=True)
    if tool is None or not (tool.hidden or tool.label):
        return replace(call, is_own=True)
    given = arguments_of(call) or {}
    plain = {name: HIDDEN if name in tool.hidden else value for name, value in given.items()}
    written = call.arguments
    if tool.hidden:
        hidden = {name: cover.hide(call, name, given[name]) for name in tool.hidden & given.keys()}
        written = json.write_text(plain | hidden)
    return replace(call, arguments=written, is_own=True, label=_label(tool.label, plain))


async def previewed(seen: ToolCall, tool: LoopTool, use: ToolUse) -> ToolCall:
    """The same with what would come of it; without, where the tool cannot tell."""
    if tool.preview is None:
        return seen
    try:
        async with asyncio.timeout(PREVIEW_SECONDS):
            return replace(seen, preview=lines_of(str(await tool.preview(use))))
    except (ToolFailed, CarnetError, TimeoutError):  # the use itself will say it
        return seen


def approved(given: Mapping[str, Any], true: Mapping[str, Any], tool: LoopTool) -> dict[str, Any]:
    """The arguments that somebody has approved: hidden ones that were left alone are as before."""
    left = {name for name in tool.hidden if given.get(name) == HIDDEN and name in true}
    return {name: true[name] if name in left else value for name, value in given.items()}


def _label(label: str, arguments: Mapping[str, Any]) -> str:
    def fill(place: re.Match[str]) -> str:
        value = arguments.get(place[1], "")
        return value if isinstance(value, str) else json.write_text(value)

    text = _PLACE.sub(fill, label)
    text = "".join([sign if sign.isprintable() else " " for sign in text[: 2 * MOST_LABEL]])
    return text if len(text) <= MOST_LABEL else text[: MOST_LABEL - 3] + "..."
