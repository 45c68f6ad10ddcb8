"""A task as it goes on: events into the updates of A2A, and those into frames.

    task                the task as it begins, first and once
    artifactUpdate      what the agent says; what belongs to the same artifact is added to it
    statusUpdate        tools that the agent runs, and the end

Law 1. The frames are a function of (turn, events); where the batches were cut makes no difference
       to what they add up to. Which piece of an artifact is the last one, the end alone says: when
       a piece leaves, nobody knows whether another follows.
Law 2. Every frame names the last event that it tells, or how many pieces of the next one: who was
       away says what it has seen, and is told the rest, nothing twice and nothing not at all.
Law 3. There is one last status, terminal or interrupted, and nothing after it.
"""

from collections.abc import Sequence
from typing import Any, Final

from carnet.core.messages.events import (
    Event,
    Interrupted,
    Resolved,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    Waiting,
    is_terminal,
)
from carnet.wire.dialects.a2a.answers.answer import (
    TOOLS,
    Piece,
    pieces,
    plain_status,
    status_of,
    tool_note,
)
from carnet.wire.dialects.a2a.answers.facts import with_events
from carnet.wire.dialects.a2a.extensions import TaskFacts, write_task
from carnet.wire.dialects.a2a.extensions.tool_events import TOOL_EVENTS_URI, write_event
from carnet.wire.dialects.a2a.message import write_message
from carnet.wire.dialects.a2a.states import WORKING

# A character takes six bytes at the most (\u0000), so that a frame stays below 256 KiB.
MOST_CHARACTERS: Final = 40_000

_TOGETHER: Final[dict[type[Event], str]] = {
    Text: "said",
    Usage: "said",
    Interrupted: "asked",
    Resolved: "answered",
}

Seen = tuple[int, int]  # so many events, and so many pieces of the next one
Update = tuple[Seen, dict[str, Any]]  # what is told when it has been, and itself


class TaskStream:
    """Writes the updates of one task."""

    __slots__ = (
        *("_begun", "_context", "_count", "_currency", "_extensions", "_facts", "_seen", "_task"),
        "_tools",
    )

    def __init__(
        self,
        facts: TaskFacts,
        context: str,
        *,
        currency: str,
        extensions: Sequence[str] = (),
        seen: Seen = (0, 0),
    ) -> None:
        """`extensions` are those activated; `seen` is what its reader knows."""
        self._facts = facts
        self._task = facts.task
        self._context = context
        self._currency = currency
        self._extensions = extensions
        self._seen = seen
        self._count = 0
        self._begun: set[str] = set()  # artifacts that something was said of
        self._tools: dict[str, str] = {}  # names of those that were told of, by their calls

    def updates(self, events: Sequence[Event]) -> list[Update]:
        """The updates that tell these events, and have not been told before."""
        known = max(0, self._seen[0] - self._count)
        runs = [*_runs(events[:known]), *_runs(events[known:])]
        reported = [update for some in runs for update in self._numbered(some)]
        return [(seen, update) for seen, update in reported if seen > self._seen]

    def _numbered(self, events: Sequence[Event]) -> list[Update]:
        """The updates of one run; an event in several pieces is told apart from all others."""
        before = self._count
        self._count += len(events)
        if len(events) > 1 and any(map(_is_long, pieces(events))):
            self._count = before
            return [update for event in events for update in self._numbered([event])]
        updates = self._tell(events)
        places = [(before, piece) for piece in range(1, len(updates))]
        return list(zip([*places, (self._count, 0)], updates, strict=False))

    def _tell(self, events: Sequence[Event]) -> list[dict[str, Any]]:
        first = events[0]
        if isinstance(first, Interrupted | Resolved):
            return [self._pause(events)]
        if isinstance(first, ToolCall | ToolResult) and _is_note(first):
            return [self._note(first)]
        self._facts = with_events(self._facts, events, self._currency)
        updates = [
            self._artifact(name, piece) for name, part in pieces(events) for piece in _short(part)
        ]
        last = events[-1]
        if is_terminal(last):
            status = status_of(
                last, task=self._task, context=self._context, extensions=self._extensions
            )
            updates.append(self._status(status, write_task(self._facts, self._extensions)))
        return updates

    def _artifact(self, name: str, part: dict[str, Any]) -> dict[str, Any]:
        update: dict[str, Any] = {
            **self._ids(),
            "artifact": {"artifactId": name, "parts": [part]},
            "append": name in self._begun,
        }
        self._begun.add(name)
        return {"artifactUpdate": update}

    def _pause(self, events: Sequence[Event]) -> dict[str, Any]:
        """What a task asks for that its reader stays with, or that it was answered."""
        asked = tuple([each.interrupt for each in events if isinstance(each, Interrupted)])
        if not asked:
            return self._status(plain_status(WORKING), {})
        status = status_of(
            Waiting(asked), task=self._task, context=self._context, extensions=self._extensions
        )
        return self._status(status, {})

    def _note(self, event: ToolCall | ToolResult) -> dict[str, Any]:
        note, name = tool_note(event), f"{self._task}.{self._count}"
        if TOOL_EVENTS_URI not in self._extensions:
            message = write_message(name, [{"data": note}], metadata={TOOLS: note}, **self._ids())
        else:
            if isinstance(event, ToolCall):
                self._tools[event.id] = event.name
            part = {"data": write_event(event, self._tools.get(event.id, ""))}
            used: dict[str, Any] = {"metadata": {TOOLS: note}, "extensions": [TOOL_EVENTS_URI]}
            message = write_message(name, [part], **used, **self._ids())
        return self._status({**plain_status(WORKING), "message": message}, {})

    def _status(self, status: dict[str, Any], metadata: dict[str, Any]) -> dict[str, Any]:
        update = {**self._ids(), "status": status}
        return {"statusUpdate": update | ({"metadata": metadata} if metadata else {})}

    def _ids(self) -> dict[str, Any]:
        return {"taskId": self._task, "contextId": self._context}


def _is_note(event: ToolCall | ToolResult) -> bool:
    """Whether it tells of a tool that the agent itself runs."""
    return isinstance(event, ToolResult) or event.is_own


def _runs(events: Sequence[Event]) -> list[list[Event]]:
    """Events that are told together: texts, questions, answers; every other one stands alone."""
    found: list[list[Event]] = []
    former: str | None = None
    for event in events:
        kind = _TOGETHER.get(type(event))
        if kind is None or kind != former:
            found.append([])
        found[-1].append(event)
        former = kind
    return found


def _is_long(piece: Piece) -> bool:
    return len(piece[1].get("text") or "") > MOST_CHARACTERS


def _short(part: dict[str, Any]) -> list[dict[str, Any]]:
    """A part, or a long text in pieces that every reader takes."""
    text = part.get("text")
    if not isinstance(text, str) or len(text) <= MOST_CHARACTERS:
        return [part]
    return [{"text": text[i : i + MOST_CHARACTERS]} for i in range(0, len(text), MOST_CHARACTERS)]
