"""The stream of an engine as it arrives: its bytes into events.

It neither waits nor reconnects; whoever feeds it bounds the time and the number of bytes.

Law 1. Exactly one end comes out, and nothing after it, whatever the bytes.
Law 2. Where the chunks are cut makes no difference to a stream that is well formed.
Law 3. What is not a stream of the contract ends in `Failed("provider_error")`: another event, a
       result of no call, a second end, something after it. `fault` then says why, for our log.
Law 4. A stream without an end is a fault of the loop: `Failed("agent_failed")`, as it is where the
       loop runs in our own process.
Law 5. Of what an engine says about an error the code counts. Its message is `words`, for the
       operator alone.
Law 6. Both spellings of the fields are read (R17): content and delta, arguments and input, output
       or error, and a status beside an output.
Law 7. An end that waits for an approval asks for it: once for each call that has no result.
Law 8. An end that names a budget which has ended is the failure that it is to who asked.
Law 9. What was used is told as it is known: by comments, where a loop writes them, and by `done`,
       which has all of it. Each of them tells what came since the one before.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

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
from carnet.core.messages.interrupt import MOST_DATA_BYTES, Interrupt
from carnet.core.money.budget import read_counts, write_ceilings
from carnet.errors import AgentFailed, BudgetExceeded, InvalidJson, ProviderError
from carnet.wire.dialects.engine_chat import writer
from carnet.wire.dialects.engine_chat.refusals import (
    APPROVAL_REQUIRED,
    BUDGET_EXCEEDED,
    FAILURES,
)
from carnet.wire.dialects.engine_chat.request import is_name
from carnet.wire.grammar import json
from carnet.wire.grammar.sse import MAX_EVENT_BYTES, SseEvent, SseReader

MOST_OPEN: Final = 128  # calls without a result
MOST_TOKENS: Final = 10**12  # of one answer: beyond it a count is a mistake
MOST_REASON: Final = 64  # characters
MOST_LABEL: Final = 200  # characters of what people are shown of a call
MOST_PREVIEW: Final = 2000  # of what would come of it
HIDDEN: Final = "***"  # what people are shown of an argument that nobody is to see
SEALED: Final = "sealed:"  # what such an argument begins with where the loop must find it again
MOST_WORDS: Final = 1000  # of the message of an error, that are kept

_USED: Final = re.compile(r"used (0|[1-9][0-9]{0,11}) (0|[1-9][0-9]{0,11})", re.ASCII)
_COUNTED: Final = writer.COUNTS.format("")
_UNREADABLE: Final = (ValueError, RecursionError)  # what decoders raise

_Tokens = Annotated[int, Meta(ge=0, le=MOST_TOKENS)]


class _Delta(Struct, gc=False):
    content: str | None = None
    delta: str | None = None


class _Call(Struct, gc=False):
    id: str
    name: str
    arguments: dict[str, Any] | None = None
    input: dict[str, Any] | None = None
    label: str = ""
    preview: str = ""


class _Result(Struct, gc=False):
    id: str
    output: Any = None
    error: str | None = None
    status: str | None = None


class _Usage(Struct, gc=False):
    prompt_tokens: _Tokens = 0
    completion_tokens: _Tokens = 0


class _Window(Struct, gc=False):
    """How much of a conversation the model can read; what else is told of it is passed over."""

    estimated_tokens: _Tokens
    shown_tokens: _Tokens
    budget_tokens: Annotated[int, Meta(ge=1, le=MOST_TOKENS)]
    ratio: Annotated[float, Meta(ge=0, le=MOST_TOKENS)]
    threshold: Annotated[float, Meta(ge=0, le=1)]
    managed: bool
    left_out: _Tokens


class _Budget(Struct, gc=False):
    """A named budget that has ended."""

    of: Literal["agent", "token"]
    part: Annotated[str, Meta(min_length=1, max_length=80, pattern="^[!-~]+$")]
    observed: _Tokens
    limit: _Tokens


class _Done(Struct, gc=False):
    finish_reason: str
    usage: _Usage | None = None
    context_window: _Window | None = None
    budget: _Budget | None = None


class _Error(Struct, gc=False):
    code: str
    message: str = ""


_Shape = TypeVar("_Shape")

_decode_text: Final = msgspec.json.Decoder(_Delta).decode  # nearly every frame


class EngineReader:
    """Reads one stream. `fault` is empty unless the stream was not what it should be."""

    __slots__ = (
        *("_calls", "_counted", "_end", "_ended", "_on_comment", "_sse", "_reported", "_used"),
        *("_window", "fault", "words"),
    )

    def __init__(
        self,
        *,
        max_event_bytes: int = MAX_EVENT_BYTES,
        on_comment: Callable[[str], None] | None = None,
    ) -> None:
        self.fault = ""
        self.words: str | None = None
        self._sse = SseReader(max_event_bytes=max_event_bytes, on_comment=self._comment)
        self._on_comment = on_comment
        self._calls: dict[str, ToolCall] = {}  # that have no result yet
        self._used: tuple[int, int] | None = None  # tokens, as the stream says
        self._reported = (0, 0)  # those that came out
        self._window: Extension | None = None
        self._counted: Extension | None = None  # of named budgets
        self._end: End | None = None  # that was read, and may still be followed by something
        self._ended = False

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes and return the events that they complete."""
        events: list[Event] = []
        if not self._ended:
            try:
                for frame in self._sse.feed(chunk):
                    self._read(frame, events)
            except (ProviderError, InvalidJson, *_UNREADABLE) as error:
                self._break(events, error)
            else:
                self._tell(events)
                self._finish(events)
        return events

    def close(self) -> list[Event]:
        """The stream has ended: return what is still owed, at least the end."""
        events: list[Event] = []
        if not self._ended:
            self.fault = "the stream was cut off"
            self._end = Failed(AgentFailed.code)
            self._finish(events)
        return events

    def _read(self, frame: SseEvent, events: list[Event]) -> None:
        if self._end is not None:
            raise ProviderError("the stream goes on after its end")
        data = frame.data
        match frame.event:
            case writer.TEXT_DELTA:
                _read_text(_decode_text(data), events)
            case writer.TOOL_CALL:
                events.append(self._call(_shaped(data, _Call)))
            case writer.TOOL_RESULT:
                events.append(self._result(_shaped(data, _Result)))
            case writer.DONE:
                self._done(_shaped(data, _Done))
            case writer.ERROR:
                self._error(_shaped(data, _Error))
            case _:
                raise ProviderError("the stream has an event that the contract does not know")

    def _call(self, call: _Call) -> ToolCall:
        arguments = call.input if call.arguments is None else call.arguments
        if arguments is None or not (is_name(call.id) and is_name(call.name)):
            raise ProviderError("a tool call is not in its form")
        if call.id in self._calls or len(self._calls) == MOST_OPEN:
            raise ProviderError("two tool calls have one id, or there are too many")
        written, index = json.write_text(arguments), len(self._calls)
        label = call.label[:MOST_LABEL] if call.label.isprintable() else ""
        preview = lines_of(call.preview)
        read = ToolCall(call.id, call.name, written, index, True, label, preview)  # noqa: FBT003
        self._calls[call.id] = read
        return read

    def _result(self, result: _Result) -> ToolResult:
        if self._calls.pop(result.id, None) is None:
            raise ProviderError("the result of a tool belongs to no call")
        if result.error is not None:
            return ToolResult(result.id, "error", result.error)
        match result.status:
            case None | "ok":
                return ToolResult(result.id, "ok", result.output)
            case "error":
                return ToolResult(result.id, "error", result.output)
            case "denied":
                return ToolResult(result.id, "denied", result.output)
        raise ProviderError("the result of a tool has a status that the contract does not know")

    def _done(self, done: _Done) -> None:
        reason = done.finish_reason
        if not (1 <= len(reason) <= MOST_REASON and reason.isprintable()):
            raise ProviderError("the reason of an end is not in its form")
        if done.usage is not None:
            self._used = (done.usage.prompt_tokens, done.usage.completion_tokens)
        if done.context_window is not None:
            self._window = Extension(CONTEXT_WINDOW, msgspec.to_builtins(done.context_window))
        if done.budget is not None and reason == BUDGET_EXCEEDED:
            self._end = Failed.of(_exceeded(done.budget))
        elif reason != APPROVAL_REQUIRED:
            self._end = Done(reason)
        elif not self._calls:
            raise ProviderError("the stream waits for an approval of nothing")
        else:
            self._end = Waiting(tuple([approval_of(call) for call in self._calls.values()]))

    def _error(self, error: _Error) -> None:
        self.words = error.message[:MOST_WORDS]
        kind = FAILURES.get(error.code)
        if kind is None:
            raise ProviderError("an error has a code that the contract does not know")
        self._end = Failed(kind.code)

    def _break(self, events: list[Event], error: Exception) -> None:
        self.fault = error.detail if isinstance(error, ProviderError) else str(error)
        self._end = Failed(ProviderError.code)
        self._finish(events)

    def _finish(self, events: list[Event]) -> None:
        end = self._end
        if end is None:
            return
        self._ended = True
        if self._window is not None and type(end) is not Failed:
            events.append(self._window)
        if self._counted is not None:
            events.append(self._counted)
        self._tell(events)
        events.append(end)

    def _comment(self, text: str) -> None:
        found = _USED.fullmatch(text)
        if found is not None and self._end is None:
            self._used = (int(found[1]), int(found[2]))
        if text.startswith(_COUNTED) and self._end is None:
            with suppress(ValueError):
                counts = write_ceilings(read_counts(text.removeprefix(_COUNTED)))
                self._counted = Extension(COUNTED, counts)
        if self._on_comment is not None:
            self._on_comment(text)

    def _tell(self, events: list[Event]) -> None:
        """What was used since it was told last; a count that goes back says nothing."""
        used, reported = self._used, self._reported
        self._used = None
        if used is None:
            return
        new = (max(0, used[0] - reported[0]), max(0, used[1] - reported[1]))
        self._reported = (reported[0] + new[0], reported[1] + new[1])
        if any(new) or not any(reported):
            events.append(Usage(*new))


def _exceeded(found: _Budget) -> BudgetExceeded:
    counts = {"observed": found.observed, "limit": found.limit}
    return BudgetExceeded(found.part, budget=found.of, part=found.part, **counts)


def approval_of(call: ToolCall) -> Interrupt:
    """What a person is asked for a tool call; arguments too long to be kept are left out."""
    given = json.read_object(call.arguments.encode())
    arguments = {name: HIDDEN if _is_sealed(value) else value for name, value in given.items()}
    more: dict[str, Any] = {"tool": call.name, "arguments": arguments}
    if call.preview:
        more["preview"] = call.preview
    if len(json.write(more)) > MOST_DATA_BYTES:
        del more["arguments"]
    message = call.label or f"The tool {call.name} is to be run."
    return Interrupt(kind="approval", id=call.id, message=message, more=more)


def lines_of(preview: str) -> str:
    """What people are shown of what would come of a call: lines that can be shown, not too many."""
    shown = preview[:MOST_PREVIEW]
    return "".join([sign if sign == "\n" or sign.isprintable() else " " for sign in shown])


def _is_sealed(value: object) -> bool:
    return isinstance(value, str) and value.startswith(SEALED)


def _read_text(delta: _Delta, events: list[Event]) -> None:
    text = delta.delta if delta.content is None else delta.content
    if text is None:
        raise ProviderError("a text has no content")
    if text:
        events.append(Text(text))


def _shaped(data: str, shape: type[_Shape]) -> _Shape:
    """What a frame says. What a tool is given or gave is shown to others: it has one meaning."""
    return msgspec.convert(json.read_object(data.encode()), shape)
