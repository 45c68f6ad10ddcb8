"""A peer's answer as it arrives: the bytes of its stream into events.

It neither waits nor reconnects; whoever feeds it bounds the time and the number of bytes.

Law 1. Exactly one terminal event comes out, and nothing after it, whatever the bytes (A66).
Law 2. Where the chunks are cut makes no difference to an answer that is well formed.
Law 3. What is not a chat completion stream ends in `Failed("provider_error")`. `fault` then says
       why, for our log; no text of the peer's is in the event.
Law 4. A stream may lack `[DONE]` if it said why it finished; with neither it was cut off.
Law 5. A tool call comes out when it is whole. Usage comes out once, before the terminal event,
       also before a `Failed`: what was used was used.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from carnet.core.messages.events import (
    RESULT,
    Done,
    End,
    Event,
    Extension,
    Failed,
    Text,
    ToolCall,
    Waiting,
)
from carnet.errors import ProviderError
from carnet.wire.dialects.openai.answer import (
    MOST_TOOL_CALLS,
    UNREADABLE,
    ReportedResult,
    ReportedUsage,
    fits_a_frame,
    read_finish,
    read_result,
    read_usage,
)
from carnet.wire.dialects.openai.reports import read_failure, read_model_failure, read_policy
from carnet.wire.dialects.policy import over_of
from carnet.wire.grammar.sse import MAX_EVENT_BYTES, SseEvent, SseReader

_END: Final = "[DONE]"


class _Function(Struct, gc=False):
    name: str | None = None
    arguments: str | None = None


class _Fragment(Struct, gc=False):
    index: Annotated[int, Meta(ge=0)] = 0
    id: str | None = None
    function: _Function | None = None


class _Delta(Struct, gc=False):
    content: str | None = None
    tool_calls: list[_Fragment] | None = None


class _Choice(Struct, gc=False):
    delta: _Delta | None = None
    finish_reason: str | None = None
    index: int = 0


class _Chunk(Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: ReportedUsage | None = None
    error: object = None
    carnet: ReportedResult | None = None


_decode = msgspec.json.Decoder(_Chunk).decode


class ChunkReader:
    """Reads one stream. `fault` is empty unless the stream was not what it should be."""

    __slots__ = (
        "_calls",
        "_currency",
        "_done",
        "_ended",
        "_reason",
        "_result",
        "_sse",
        "_usage",
        "fault",
        "words",
    )

    def __init__(
        self,
        *,
        currency: str,
        max_event_bytes: int = MAX_EVENT_BYTES,
        on_comment: Callable[[str], None] | None = None,
    ) -> None:
        self.fault = ""
        self.words: str | None = None
        self._sse = SseReader(max_event_bytes=max_event_bytes, on_comment=on_comment)
        self._currency = currency
        self._calls: _Drafts | None = None
        self._usage: ReportedUsage | None = None
        self._reason: str | None = None
        self._result: ReportedResult | None = None
        self._done = False
        self._ended = False

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes and return the events that they complete."""
        events: list[Event] = []
        if not self._ended:
            try:
                self._read(self._sse.feed(chunk), events)
            except (ProviderError, *UNREADABLE) as error:
                self._break(events, error)
        return events

    def close(self) -> list[Event]:
        """The stream has ended: return what is still owed, at least the terminal event."""
        events: list[Event] = []
        if not self._ended:
            try:
                self._complete(events)
            except ProviderError as error:
                self._break(events, error)
        return events

    def _read(self, frames: Sequence[SseEvent], events: list[Event]) -> None:
        for frame in frames:
            if self._ended:
                return
            if self._done:
                raise ProviderError("the stream goes on after [DONE]")
            if frame.data == _END:
                self._done = True
            else:
                self._read_chunk(_decode(frame.data), events)
        if self._done:
            self._complete(events)

    def _read_chunk(self, chunk: _Chunk, events: list[Event]) -> None:
        if chunk.usage is not None:
            self._usage = chunk.usage
        if chunk.error is not None:
            self._end(events, self._failed(chunk.error))
            return
        if chunk.usage is None and chunk.choices is None:
            raise ProviderError("a frame is not part of a chat completion")
        self._result = chunk.carnet or self._result
        for choice in chunk.choices or ():
            if choice.index == 0:  # we ask for one
                self._read_choice(choice, events)

    def _failed(self, error: object) -> Failed | Waiting:
        asked = read_policy(error, self._currency)
        over = over_of(asked)
        if over is not None:
            self.words = over.words
            return Failed.of(over)
        return Waiting(asked) if asked else read_failure(error)

    def _read_choice(self, choice: _Choice, events: list[Event]) -> None:
        delta = choice.delta
        if delta is not None:
            if delta.content:
                events.append(Text(delta.content))
            if delta.tool_calls:
                if self._calls is None:
                    self._calls = _Drafts()
                self._calls.add(delta.tool_calls)
        if choice.finish_reason is not None:
            self._reason = choice.finish_reason

    def _complete(self, events: list[Event]) -> None:
        if not self._done and self._reason is None:
            raise ProviderError("the stream was cut off")
        calls = [] if self._calls is None else self._calls.finish()
        reason = read_finish(self._reason, has_calls=bool(calls))
        events += calls
        result = read_result(self._result)
        if result is not None and fits_a_frame(result):
            events.append(Extension(RESULT, result))
        self._end(events, Done(reason))

    def _break(self, events: list[Event], error: Exception) -> None:
        self.fault = error.detail if isinstance(error, ProviderError) else str(error)
        self._end(events, Failed(ProviderError.code))

    def _end(self, events: list[Event], terminal: End) -> None:
        self._ended = True
        if self._usage is not None:
            events.append(read_usage(self._usage, self._currency))
        events.append(terminal)


class ModelChunkReader(ChunkReader):
    """Reads the stream of a model; `words` are what its provider says of a failure."""

    __slots__ = ()

    def _failed(self, error: object) -> Failed:
        failure = read_model_failure(error)
        self.words = failure.words
        return Failed.of(failure)


class _Draft:
    """A tool call of which a part has arrived."""

    __slots__ = ("arguments", "id", "name")

    def __init__(self) -> None:
        self.id = ""
        self.name = ""
        self.arguments: list[str] = []


class _Drafts:
    """The tool calls of one answer, in the order in which they began."""

    __slots__ = ("_all", "_open")

    def __init__(self) -> None:
        self._all: list[_Draft] = []
        self._open: dict[int, _Draft] = {}

    def add(self, fragments: Sequence[_Fragment]) -> None:
        for fragment in fragments:
            draft = self._draft_of(fragment)
            draft.id = draft.id or fragment.id or ""
            function = fragment.function
            if function is not None:
                draft.name = draft.name or function.name or ""
                draft.arguments.append(function.arguments or "")

    def finish(self) -> list[ToolCall]:
        if not all(draft.id and draft.name for draft in self._all):
            raise ProviderError("a tool call has no id or no name")
        return [
            ToolCall(draft.id, draft.name, "".join(draft.arguments), index)
            for index, draft in enumerate(self._all)
        ]

    def _draft_of(self, fragment: _Fragment) -> _Draft:
        draft = self._open.get(fragment.index)
        # Some servers give every call the index 0; another id is another call.
        if draft is None or (fragment.id and draft.id and fragment.id != draft.id):
            if len(self._all) == MOST_TOOL_CALLS:
                raise ProviderError(f"the stream has more than {MOST_TOOL_CALLS} tool calls")
            draft = self._open[fragment.index] = _Draft()
            self._all.append(draft)
        return draft
