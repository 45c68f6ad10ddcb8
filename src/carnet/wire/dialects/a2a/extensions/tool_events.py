"""Tools that an agent runs, as Mentionable tells them: `.../ns/a2a-tool-events/v0.1`.

    {type: "tool-call",   toolCallId, toolName, input}
    {type: "tool-result", toolCallId, toolName, input, output}
    {type: "tool-error",  toolCallId, toolName, input, error: {message}}

Each is a data part of a message, of an artifact, or of the words beside a status.

Law 1. `read_event(write_event(x)) == x` for whatever an agent of ours tells of its tools, but for
       labels and previews, which have no word there.
Law 2. An id is one call, and two ids are two. What has a call and neither result nor error is in
       flight.
Law 3. What is shown was run, or is being run, there: nobody here runs it.
"""

from typing import Any, Final

from carnet.core.messages.events import ToolCall, ToolResult
from carnet.errors import InvalidJson
from carnet.wire.dialects.a2a.extensions.row import ExtensionRow, printable
from carnet.wire.grammar import json

TOOL_EVENTS_URI: Final = "https://mentionable.dev/ns/a2a-tool-events/v0.1"
TOOL_EVENTS_ALIAS: Final = "https://mentionable.dev/spec/a2a-tool-events/v0.1"

CALL: Final = "tool-call"
RESULT: Final = "tool-result"
ERROR: Final = "tool-error"

MOST_ID: Final = 256
MOST_NAME: Final = 256
MOST_WORDS: Final = 1000

_DENIED: Final = "denied"


def write_event(event: ToolCall | ToolResult, name: str = "") -> dict[str, Any]:
    """An event; `name` is that of the tool whose result it is, if it is known."""
    if isinstance(event, ToolCall):
        found = {"type": CALL, "toolCallId": event.id, "toolName": event.name}
        return found | {"input": _input(event.arguments)}
    named: dict[str, Any] = {"toolCallId": event.id} | ({"toolName": name} if name else {})
    if event.status == "ok":
        return {"type": RESULT, **named, "output": event.output}
    return {"type": ERROR, **named, "error": {"message": _words(event)}}


def _input(arguments: str) -> Any:
    try:
        return json.read(arguments.encode()) if arguments else {}
    except InvalidJson:
        return arguments


def _words(event: ToolResult) -> str:
    output = event.output
    if event.status == _DENIED and output is None:
        return _DENIED
    text = output if isinstance(output, str) else json.write_text(output)
    return text[:MOST_WORDS]


def read_event(value: object) -> ToolCall | ToolResult | None:
    """The event that a data part tells; None where it is other data."""
    if not isinstance(value, dict):
        return None
    kind, name = value.get("type"), value.get("toolCallId")
    if not isinstance(name, str) or not 0 < len(name) <= MOST_ID or not name.isprintable():
        return None
    if kind == CALL:
        return _read_call(name, value)
    if kind == RESULT:
        return ToolResult(name, "ok", value.get("output"))
    return ToolResult(name, "error", _read_words(value.get("error"))) if kind == ERROR else None


def _read_call(name: str, value: dict[str, Any]) -> ToolCall | None:
    tool, given = value.get("toolName"), value.get("input", {})
    if not isinstance(tool, str) or not 0 < len(tool) <= MOST_NAME:
        return None
    text = given if isinstance(given, str) else json.write_text(given)
    return ToolCall(name, printable(tool), text, is_own=True)


def _read_words(error: object) -> str:
    message = error.get("message") if isinstance(error, dict) else None
    return printable(message, MOST_WORDS) if isinstance(message, str) else "the tool has failed"


TOOL_EVENTS: Final = ExtensionRow(
    name="tool_events",
    uris=(TOOL_EVENTS_URI,),
    aliases=(TOOL_EVENTS_ALIAS,),
    keys=(),
    is_declared=True,
    is_in_parts=True,
    description="Visible tool execution events carried as A2A DataParts.",
    reads="the tools that an agent that we called runs, and what they give",
    writes="the tools that an agent of ours runs, to who activated it",
    believes="nothing: they are shown as what the agent says, and nobody here runs them",
)
