"""What an agent says, as the artifacts of a task, and how a task has ended, as its status.

    text, data, files          parts of the artifact `answer`, in the order in which they came
    the result of a skill      the artifact `result`, one data part
    tools that the caller has  data parts of the answer: what is wanted, by name and arguments

Law 1. What is written is a function of the events alone.
Law 2. Texts that follow each other are one part; in a stream each is added to the one before.
"""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from carnet.core.messages.events import (
    RESULT,
    Data,
    Done,
    End,
    Event,
    Extension,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    Waiting,
)
from carnet.wire.dialects.a2a.extensions import in_use, status_parts, write_status
from carnet.wire.dialects.a2a.extensions.questions.policy_part import POLICY_URI, failure_part
from carnet.wire.dialects.a2a.extensions.tool_events import TOOL_EVENTS_URI, write_event
from carnet.wire.dialects.a2a.message import write_message
from carnet.wire.dialects.a2a.parts import file_of
from carnet.wire.dialects.a2a.states import end_state

ANSWER: Final = "answer"
OUTCOME: Final = "result"
ERROR: Final = "urn:carnet:a2a:error:v1"
TOOLS: Final = "urn:carnet:a2a:tools:v1"

_SILENT: Final = frozenset({Usage, Done})  # of which nothing is told in an artifact

Piece = tuple[str, dict[str, Any]]  # the artifact that it belongs to, and a part of it


def pieces(events: Iterable[Event]) -> list[Piece]:
    """What events add to the artifacts of a task, texts that follow each other in one."""
    found: list[Piece] = []
    texts: list[str] = []
    for event in events:
        if type(event) is Text:
            texts += (event.text,)
        elif type(event) not in _SILENT and (part := _part_of(event)) is not None:
            found += _texts(texts)
            texts = []
            found.append(part)
    return found + _texts(texts)


def _texts(texts: list[str]) -> list[Piece]:
    text = texts[0] if len(texts) == 1 else "".join(texts)
    return [(ANSWER, {"text": text})] if text else []


def _part_of(event: Event) -> Piece | None:
    match event:
        case Data():
            return ANSWER, {"data": event.value}
        case ToolCall() if not event.is_own:
            call = {"id": event.id, "name": event.name, "arguments": event.arguments}
            return ANSWER, {"data": {"toolCall": call}, "metadata": {TOOLS: {"type": "call"}}}
        case Extension(name=name, payload=payload) if name == RESULT:
            return OUTCOME, {"data": payload}
        case Extension():
            part = file_of(event)
            return None if part is None else (ANSWER, part)
    return None


def artifacts_of(events: Iterable[Event]) -> list[dict[str, Any]]:
    """All that was said, as artifacts."""
    found: list[dict[str, Any]] = []
    parts: dict[str, list[dict[str, Any]]] = {}
    for name, part in pieces(events):
        if name in parts:
            parts[name].append(part)
        else:
            parts[name] = [part]
            found += ({"artifactId": name, "parts": parts[name]},)
    return found


def tool_note(event: ToolCall | ToolResult) -> dict[str, Any]:
    """What is shown of a tool that the agent itself has run."""
    if isinstance(event, ToolCall):
        shown = {"type": "call", "id": event.id, "name": event.name, "arguments": event.arguments}
        return shown | ({"label": event.label} if event.label else {})
    return {"type": "result", "id": event.id, "status": event.status, "output": event.output}


def tool_parts(events: Iterable[Event]) -> list[dict[str, Any]]:
    """The tools that an agent itself has run, each as a part of what is told of its task."""
    found: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for event in events:
        if isinstance(event, ToolCall) and event.is_own:
            names[event.id] = event.name
            found.append({"data": write_event(event)})
        elif isinstance(event, ToolResult):
            found.append({"data": write_event(event, names.get(event.id, ""))})
    return found


def status_of(
    end: End,
    *,
    task: str,
    context: str,
    timestamp: str | None = None,
    extensions: Sequence[str] = (),
    events: Iterable[Event] = (),
) -> dict[str, Any]:
    """The status of a task that has ended so, or waits; `extensions` are those activated.

    `events` are what is told of beside it, where nothing was told of it before.
    """
    message = _message_of(end, task, context, extensions)
    tools = tool_parts(events) if TOOL_EVENTS_URI in extensions else []
    if tools and message is None:
        more: dict[str, Any] = {"taskId": task, "contextId": context}
        message = write_message(f"{task}.tools", tools, extensions=[TOOL_EVENTS_URI], **more)
    elif tools and message is not None:
        used = [*message.get("extensions", ()), TOOL_EVENTS_URI]
        message = message | {"parts": [*message["parts"], *tools], "extensions": used}
    status: dict[str, Any] = {"state": end_state(end)}
    if message is not None:
        status["message"] = message
    return _stamped(status, timestamp)


def plain_status(state: str, timestamp: str | None = None) -> dict[str, Any]:
    """A status without words."""
    return _stamped({"state": state}, timestamp)


def _stamped(status: dict[str, Any], timestamp: str | None) -> dict[str, Any]:
    return status if timestamp is None else status | {"timestamp": timestamp}


def _message_of(
    end: End, task: str, context: str, extensions: Sequence[str]
) -> dict[str, Any] | None:
    ids = {"taskId": task, "contextId": context}
    match end:
        case Done():
            return None
        case Waiting():
            asked = end.interrupts
            metadata = write_status(asked, extensions)
            used = in_use(metadata, extensions)
            name = f"{task}.{asked[0].id or 'asks'}"
            parts = status_parts(asked, extensions)
            return write_message(name, parts, **ids, metadata=metadata, extensions=used)
    error = end.error()
    error_object: dict[str, Any] = {
        "code": error.sent_as or error.code,
        "message": error.safe_text,
    }
    error_object |= error.public_facts() | ({"hint": error.next_step} if error.next_step else {})
    words: list[dict[str, Any]] = [{"text": error.safe_text}]
    policy = failure_part(error) if POLICY_URI in extensions else None
    used = [] if policy is None else [POLICY_URI]
    words += [] if policy is None else [{"data": policy}]
    metadata = {ERROR: error_object}
    return write_message(f"{task}.failed", words, **ids, metadata=metadata, extensions=used)
