"""The stream of an engine: events into the frames of the contract.

Law 1. One event is one frame of one line, whatever its text holds. Only a text too long for a
       reader's bound is spread over several.
Law 2. There is one end, and nothing after it: `done`, which tells what was used in all model calls,
       or `error`. Where there is no word for an end there is none, and the connection is cut.
Law 3. A result belongs to a call that was written and has none yet.
Law 4. What the contract cannot carry is left out: data, extensions, what a turn asked for. A turn
       that waits for an approval ends with the call that has no result. That a conversation fills
       what its model can read stands beside the usage, and only then; so does the named budget that
       has ended.
Law 5. A gateway is told in a comment before the next frame what was used so far: a stream that
       fails, or that nobody reads any more, has no `done`, and what was used is paid all the same.
"""

from collections.abc import Sequence
from typing import Any, Final

from carnet.core.messages.events import (
    CONTEXT_WINDOW,
    COUNTED,
    Done,
    End,
    Event,
    Extension,
    Failed,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    Waiting,
)
from carnet.errors import Internal
from carnet.wire.dialects.engine_chat.refusals import (
    APPROVAL_REQUIRED,
    BUDGET_EXCEEDED,
    end_of,
    error_object,
)
from carnet.wire.dialects.engine_chat.request import arguments_of
from carnet.wire.grammar import json, sse

# A character takes six bytes at the most (\u0000), so that a frame stays below 256 KiB.
MOST_CHARACTERS: Final = 40_000

TEXT_DELTA: Final = "text-delta"
TOOL_CALL: Final = "tool-call"
TOOL_RESULT: Final = "tool-result"
DONE: Final = "done"
USED: Final = "used {} {}"  # a comment: tokens in and out, of all model calls so far
COUNTS: Final = "counted {}"  # a comment: what was counted of named budgets, as words
ERROR: Final = "error"
OWNERS: Final = ("agent", "token")  # that have named budgets
FACTS: Final = ("part", "observed", "limit")  # what is told of one that has ended


class EngineWriter:
    """Writes the stream of one request."""

    __slots__ = (
        *("_counted", "_ended", "_open", "_reported", "_tells", "_tokens_in", "_tokens_out"),
        "_window",
    )

    def __init__(self, *, tells_used: bool = False) -> None:
        """`tells_used` where a gateway reads it."""
        self._tells = tells_used
        self._open: set[str] = set()  # calls that have no result yet
        self._tokens_in = 0
        self._tokens_out = 0
        self._reported = (0, 0)  # of these
        self._counted = ""  # of named budgets, for who goes on with the turn
        self._window: object = None  # how much of the conversation the model can read
        self._ended = False

    def write(self, events: Sequence[Event]) -> bytes:
        """The frames of events that are no end; empty if there is nothing to see."""
        if self._ended:
            raise Internal("something was said after the end of a stream")
        frames = b"".join([self._frames(event) for event in events])
        return self.used() + frames if frames else b""

    def used(self) -> bytes:
        """What was used so far, as a comment; empty where it was told."""
        used = (self._tokens_in, self._tokens_out)
        if used == self._reported or not self._tells:
            return b""
        self._reported = used
        return sse.write_comment(USED.format(*used))

    def end(self, end: End) -> bytes | None:
        """The last frame; None where the contract has no word for this end."""
        self._ended = True
        ending: End | None = end_of(end.error()) if isinstance(end, Failed) else end
        match ending:
            case Failed():
                return self.used() + _frame(ERROR, error_object(ending.code))
            case Done():
                return self._done(ending.reason, budget_of(end))
            case Waiting():
                return self._done(APPROVAL_REQUIRED)
        return None

    def _frames(self, event: Event) -> bytes:
        match event:
            case Text():
                return _text(event.text)
            case ToolCall():
                return self._call(event)
            case ToolResult():
                return self._result(event)
            case Usage():
                self._tokens_in += event.tokens_in or 0
                self._tokens_out += event.tokens_out or 0
            case Extension(name=name) if name == CONTEXT_WINDOW:
                self._window = event.payload
            case Extension(name=name) if name == COUNTED:
                self._counted = str(event.payload)
        return b""

    def _call(self, call: ToolCall) -> bytes:
        if call.id in self._open:
            raise Internal("two tool calls have the same id")
        self._open.add(call.id)
        # Arguments that are no object are told to the model as an error; there are none to show.
        arguments = arguments_of(call) or {}
        data = {"id": call.id, "name": call.name, "arguments": arguments}
        words = {"label": call.label, "preview": call.preview}
        return _frame(TOOL_CALL, data | {name: text for name, text in words.items() if text})

    def _result(self, result: ToolResult) -> bytes:
        if result.id not in self._open:
            raise Internal("the result of a tool belongs to no call")
        self._open.discard(result.id)
        member = "output" if result.status == "ok" else "error"
        return _frame(TOOL_RESULT, {"id": result.id, member: words_of(result.output)})

    def _done(self, reason: str, budget: dict[str, Any] | None = None) -> bytes:
        usage = {"prompt_tokens": self._tokens_in, "completion_tokens": self._tokens_out}
        window = {} if self._window is None else {"context_window": self._window}
        named = {} if budget is None else {"budget": budget}
        counted = sse.write_comment(COUNTS.format(self._counted)) if self._counted else b""
        return counted + _frame(DONE, {"finish_reason": reason, "usage": usage, **window, **named})


def budget_of(end: End) -> dict[str, Any] | None:
    """Which named budget has ended a stream, and with what; None where none has."""
    if not isinstance(end, Failed) or end.code != BUDGET_EXCEEDED:
        return None
    of, facts = end.facts.get("budget"), [end.facts.get(name) for name in FACTS]
    is_named = of in OWNERS and None not in facts
    return {"of": of, **dict(zip(FACTS, facts, strict=True))} if is_named else None


def words_of(output: object) -> str:
    """What a tool gave, as text."""
    return output if isinstance(output, str) else json.write_text(output)


def _text(text: str) -> bytes:
    pieces = [text[at : at + MOST_CHARACTERS] for at in range(0, len(text), MOST_CHARACTERS)]
    return b"".join([_frame(TEXT_DELTA, {"content": piece}) for piece in pieces])


def _frame(event: str, data: dict[str, Any]) -> bytes:
    return sse.write_event(json.write(data), event=event)
