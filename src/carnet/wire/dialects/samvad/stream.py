"""An answer as it grows: events into the frames of the protocol, and a peer's frames into events.

    data: {"chunk": ..., "done": false}                        any number
    data: {"done": true, "result"|"error": ..., "traceId", "spanId"}   one, the last

Law 1. The bytes are a function of (turn, events); where the batches were cut makes no difference.
Law 2. One event is one frame of one line, whatever it holds (A59). Only a text too long for a
       reader's bound is spread over several.
Law 3. There is one last frame and nothing after it. It repeats the whole result: that is the answer
       of those who do not read chunks.
Law 4. What a turn waits for is told in a comment before its last frame, which is that of an error.
       Readers that do not know it skip it.
Law 5. Reading takes LF and CRLF, any spacing, and frames of one event only, as the SDKs send them.
       Exactly one terminal event comes out; what is not such a stream ends in `provider_error`, and
       `fault` says why, for our log.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from carnet.core.chain.turn import Turn
from carnet.core.messages.events import (
    Data,
    Done,
    End,
    Event,
    Failed,
    Text,
    Waiting,
    is_terminal,
)
from carnet.core.messages.interrupt import Interrupt
from carnet.errors import CarnetError, ProviderError
from carnet.wire.dialects import policy
from carnet.wire.dialects.results import Gathered
from carnet.wire.dialects.samvad.answer import MOST_LEVELS, UNREADABLE, result_events, span_of
from carnet.wire.dialects.samvad.refusals import error_object
from carnet.wire.dialects.samvad.reports import read_failure
from carnet.wire.grammar import json
from carnet.wire.grammar.sse import SseEvent, SseReader, write_comment

KEEP_ALIVE: Final = write_comment("keep-alive")

# A character takes six bytes at the most (\u0000), so that a frame stays below 256 KiB.
MOST_CHARACTERS: Final = 40_000

# The last frame repeats what the chunks said, so it may be larger than one of them.
MAX_EVENT_BYTES: Final = 4 * 1024 * 1024


class StreamWriter:
    """Writes the stream of one turn."""

    __slots__ = ("_agent", "_domain", "_ended", "_gathered", "_names")

    def __init__(self, turn: Turn, *, trace_id: str, span_id: str = "", domain: str = "") -> None:
        """`domain` is ours: the address of an agent that asks for something holds it."""
        self._agent, self._domain = turn.agent, domain
        self._names = {"traceId": trace_id, "spanId": span_id or span_of(turn)}
        self._gathered = Gathered()
        self._ended = False

    def write(self, events: Sequence[Event]) -> bytes:
        """The frames of a batch; empty if there is nothing to see yet."""
        return b"".join([frame for event in events for frame in self._frames(event)])

    def _frames(self, event: Event) -> Iterator[bytes]:
        if self._ended:
            return
        self._ended = is_terminal(event)
        if isinstance(event, Failed):
            yield self._last({"error": error_object(event.error())})
            return
        if isinstance(event, Waiting):
            asked = policy.addressed(event, self._agent, self._domain)
            yield write_comment(policy.write_comment(asked))
            yield self._last({"error": error_object(event.error())})
            return
        self._gathered.add(event)
        if isinstance(event, Text):
            for at in range(0, len(event.text), MOST_CHARACTERS):
                yield _chunk(event.text[at : at + MOST_CHARACTERS])
        elif isinstance(event, Data):
            yield _chunk(event.value)
        elif isinstance(event, Done):
            yield self._last({"result": self._gathered.result()})

    def _last(self, member: dict[str, Any]) -> bytes:
        return b"data: %b\n\n" % json.write({"done": True, **member, **self._names})


def _chunk(value: object) -> bytes:
    return b'data: {"chunk":%b,"done":false}\n\n' % json.write(value)


class _Frame(Struct, gc=False):
    done: bool
    chunk: object | UnsetType = UNSET
    result: dict[str, Any] | None = None
    error: object = None


_decode = msgspec.json.Decoder(_Frame).decode


class FrameReader:
    """Reads one stream. `fault` is empty unless the stream was not what it should be."""

    __slots__ = (
        *("_asked", "_currency", "_ended", "_on_comment", "_sse", "_streamed"),
        *("fault", "words"),
    )

    def __init__(
        self,
        *,
        max_event_bytes: int = MAX_EVENT_BYTES,
        on_comment: Callable[[str], None] | None = None,
        currency: str = "",
    ) -> None:
        """`currency` is that of the amounts that we read."""
        self.fault = ""
        self.words: str | None = None  # of what nobody can answer, for the operator
        self._currency = currency
        self._asked: tuple[Interrupt, ...] = ()
        self._on_comment = on_comment
        self._sse = SseReader(max_event_bytes=max_event_bytes, on_comment=self._comment)
        self._streamed = Gathered()
        self._ended = False

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes and return the events that they complete."""
        events: list[Event] = []
        if not self._ended:
            try:
                self._read(self._sse.feed(chunk), events)
            except UNREADABLE as error:
                self._break(events, ProviderError(str(error)))
            except CarnetError as error:
                self._break(events, error)
        return events

    def close(self) -> list[Event]:
        """The stream has ended: return what is still owed, at least the terminal event."""
        events: list[Event] = []
        if not self._ended:
            self._break(events, ProviderError("the stream was cut off"))
        return events

    def _read(self, frames: Sequence[SseEvent], events: list[Event]) -> None:
        for frame in frames:
            if not self._ended:
                decoded = _decode(frame.data)
                json.refuse_depth([decoded.chunk, decoded.result], MOST_LEVELS + 1)
                self._read_frame(decoded, events)

    def _read_frame(self, frame: _Frame, events: list[Event]) -> None:
        if not frame.done:
            if frame.chunk is UNSET:
                raise ProviderError("a frame is not part of an answer")
            chunk = frame.chunk
            event: Event = Text(chunk) if isinstance(chunk, str) else Data(chunk)
            self._streamed.add(event)
            events.append(event)
            return
        if frame.error is not None and self._asked:
            self._end(events, self._waiting())
            return
        if frame.error is not None:
            raise read_failure(frame.error)
        if frame.result is None:
            raise ProviderError("the stream ended without a result")
        events += result_events(frame.result, self._streamed)
        self._end(events, Done())

    def _comment(self, text: str) -> None:
        self._asked = policy.read_comment(text, currency=self._currency) or self._asked
        if self._on_comment is not None:
            self._on_comment(text)

    def _waiting(self) -> Waiting | Failed:
        over = policy.over_of(self._asked)
        if over is None:
            return Waiting(self._asked)
        self.words = over.words
        return Failed.of(over)

    def _break(self, events: list[Event], error: CarnetError) -> None:
        self.fault = str(error)
        self._end(events, Failed.of(error))

    def _end(self, events: list[Event], terminal: End) -> None:
        self._ended = True
        events.append(terminal)
