"""An answer over Anthropic's messages as it arrives: the bytes of its stream into events.

It neither waits nor reconnects; whoever feeds it bounds the time and the number of bytes.

Law 1. Exactly one terminal event comes out, and nothing after it, whatever the bytes.
Law 2. Where the chunks are cut makes no difference to an answer that is well formed.
Law 3. A stream begins with its message, has blocks that begin and end, and says why it ended. What
       is not so ends in `Failed("provider_error")`; `fault` says why, for our log. Events, blocks
       and deltas that we do not know are passed over, as their interface asks for.
Law 4. A stream may lack its last event if it said why it ended; with neither it was cut off.
Law 5. A tool call comes out when its block has ended. Usage comes out once, before the terminal
       event, also before a `Failed`: what was used was used.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from carnet.core.messages.events import Done, End, Event, Failed, Text
from carnet.errors import InvalidJson, ProviderError
from carnet.wire.dialects.anthropic.answer import (
    UNREADABLE,
    ContentBlock,
    CountedTokens,
    EchoDraft,
    reason_of,
    tool_call,
)
from carnet.wire.dialects.anthropic.reports import read_failure
from carnet.wire.grammar import json
from carnet.wire.grammar.sse import MAX_EVENT_BYTES, SseReader

MOST_BLOCKS: Final = 10_000  # of one answer
_EMPTY: Final = "{}"


class _Message(Struct, gc=False):
    usage: CountedTokens | None = None


class _Piece(Struct, gc=False):
    type: str | None = None  # of a delta of the message there is none
    text: str | None = None
    partial_json: str | None = None
    thinking: str | None = None
    signature: str | None = None
    stop_reason: str | None = None


class _Frame(Struct, gc=False):
    type: str
    index: Annotated[int, Meta(ge=0)] | None = None
    message: _Message | None = None
    content_block: ContentBlock | None = None
    delta: _Piece | None = None
    usage: CountedTokens | None = None
    error: dict[str, Any] | None = None


_decode = msgspec.json.Decoder(_Frame).decode


class MessageReader:
    """Reads one stream. `fault` is empty unless the stream was not what it should be."""

    __slots__ = (
        *("_block", "_blocks", "_calls", "_echo", "_ended", "_has_begun", "_pieces", "_reason"),
        *("_sse", "_usage", "fault", "words"),
    )

    def __init__(
        self,
        *,
        currency: str,
        max_event_bytes: int = MAX_EVENT_BYTES,
        on_comment: Callable[[str], None] | None = None,
    ) -> None:
        del currency  # what a model costs is ours to say
        self.fault = ""
        self.words: str | None = None
        self._sse = SseReader(max_event_bytes=max_event_bytes, on_comment=on_comment)
        self._has_begun = False
        self._block: ContentBlock | None = None  # the one that is open
        self._blocks = 0
        self._pieces: list[str] = []  # of it, as they came
        self._echo = EchoDraft()
        self._calls = 0
        self._usage: CountedTokens | None = None
        self._reason: str | None = None
        self._ended = False

    def feed(self, chunk: bytes) -> list[Event]:
        """Take the next bytes and return the events that they complete."""
        events: list[Event] = []
        if not self._ended:
            try:
                for frame in self._sse.feed(chunk):
                    if not self._ended:
                        self._read(_decode(frame.data), events)
            except (ProviderError, InvalidJson, *UNREADABLE) as error:
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

    def _read(self, frame: _Frame, events: list[Event]) -> None:
        match frame.type:
            case "error":
                self._fail(frame, events)
            case "message_start":
                self._begin(frame)
            case "content_block_start":
                self._open(frame, events)
            case "content_block_delta":
                self._go_on(frame, events)
            case "content_block_stop":
                self._close(frame, events)
            case "message_delta":
                self._near_end(frame)
            case "message_stop":
                self._complete(events)

    def _begin(self, frame: _Frame) -> None:
        if self._has_begun or frame.message is None:
            raise ProviderError("the stream begins twice, or without its message")
        self._has_begun = True
        self._usage = frame.message.usage

    def _open(self, frame: _Frame, events: list[Event]) -> None:
        block = frame.content_block
        if not self._has_begun or self._block is not None or block is None:
            raise ProviderError("a block begins out of its place")
        if frame.index != self._blocks or self._blocks == MOST_BLOCKS or self._reason is not None:
            raise ProviderError("a block is not the next one, or there are too many")
        self._block, self._pieces = block, []
        if block.type == "text" and block.text:
            events.append(Text(block.text))

    def _go_on(self, frame: _Frame, events: list[Event]) -> None:
        block, piece = self._of_block(frame), frame.delta
        if piece is None or piece.type is None:
            raise ProviderError("a delta has nothing in it")
        if piece.type == "text_delta":
            if block.type != "text" or piece.text is None:
                raise ProviderError("text comes in a block that is none")
            if piece.text:
                events.append(Text(piece.text))
                self._pieces.append(piece.text)
        elif piece.type == "input_json_delta" and block.type == "tool_use":
            self._pieces.append(piece.partial_json or "")
        elif block.is_thought:
            self._pieces.append(piece.thinking or "")
            block.signature = piece.signature or block.signature

    def _close(self, frame: _Frame, events: list[Event]) -> None:
        block, whole = self._of_block(frame), "".join(self._pieces)
        if block.type == "tool_use":
            if not whole:
                whole = json.write_text(block.input) if block.input else _EMPTY
            events.append(tool_call(block, whole, self._calls))
            self._calls += 1
            self._echo.add(block, arguments=whole)
        else:
            self._echo.add(block, text=whole)
        self._block = None
        self._blocks += 1

    def _of_block(self, frame: _Frame) -> ContentBlock:
        block = self._block
        if block is None or frame.index != self._blocks:
            raise ProviderError("something belongs to a block that is not open")
        return block

    def _near_end(self, frame: _Frame) -> None:
        if not self._has_begun or self._block is not None or frame.delta is None:
            raise ProviderError("the end of the message comes out of its place")
        if frame.usage is not None:
            self._usage = frame.usage.after(self._usage)
        self._reason = frame.delta.stop_reason or self._reason

    def _fail(self, frame: _Frame, events: list[Event]) -> None:
        failure = read_failure(frame.error or {})
        self.words = failure.words
        self._end(events, Failed.of(failure))

    def _complete(self, events: list[Event]) -> None:
        if self._reason is None:
            raise ProviderError("the stream was cut off")
        echo = self._echo.event() if self._calls else None
        if echo is not None:
            events.append(echo)
        self._end(events, Done(reason_of(self._reason, has_calls=self._calls > 0)))

    def _break(self, events: list[Event], error: Exception) -> None:
        self.fault = error.detail if isinstance(error, ProviderError) else str(error)
        self._end(events, Failed(ProviderError.code))

    def _end(self, events: list[Event], terminal: End) -> None:
        self._ended = True
        if self._usage is not None:
            events.append(self._usage.usage())
        events.append(terminal)
