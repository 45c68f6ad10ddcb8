"""The stream of a run elsewhere, read: its deltas, and its last frame.

Law 1. What deltas have told, the last frame does not tell again.
Law 2. A tool that its deltas tell of was run there, unless the last frame asks for its result.
Law 3. A stream has one last frame; who breaks off before it has failed.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from carnet.core.messages.events import Event, Failed, Text, ToolCall
from carnet.errors import InvalidJson, ProviderError, ProviderUnavailable
from carnet.wire.dialects.agents_api.client import member, read_count, read_frame
from carnet.wire.dialects.agents_api.parts import MOST_NAME
from carnet.wire.dialects.refusal import BY_PEER
from carnet.wire.grammar import json, sse

MOST_CALLS: Final = 1000  # of tools, that one stream tells of
MOST_FRAME_BYTES: Final = 8 * 1024 * 1024  # its last frame tells all that was said once more


class RunReader:
    """Reads one stream."""

    __slots__ = ("_calls", "_currency", "_has_ended", "_known", "_spoken", "_sse", "fault", "words")

    def __init__(self, *, currency: str) -> None:
        """Amounts are told in `currency`."""
        self._sse = sse.SseReader(max_event_bytes=MOST_FRAME_BYTES)
        self._currency = currency
        self._spoken = 0
        self._calls: dict[str, _Call] = {}  # of tools, by their ids; run there or to be run here
        self._known: set[str] = set()  # the ids of those that were run there
        self._has_ended = False
        self.fault = ""
        self.words: str | None = None

    def feed(self, data: bytes, /) -> Iterator[Event]:
        """The events that these bytes complete."""
        try:
            frames = self._sse.feed(data)
        except (sse.SseInvalid, sse.SseOverflow):
            raise ProviderError("the stream is not one of events") from None
        for frame in frames:
            if self._has_ended:
                return
            yield from self._frame(frame.data)

    def close(self) -> Iterator[Event]:
        """What is left to say when no more bytes come."""
        if not self._has_ended:
            yield Failed(ProviderUnavailable.code, {"by": BY_PEER})

    def _frame(self, text: str) -> Iterator[Event]:
        try:
            frame = json.read_object(text.encode())
        except InvalidJson:
            raise ProviderError("a frame of the stream is not JSON") from None
        if frame.get("method") == "message/delta":
            yield from self._delta(member(member(frame, "params"), "delta"))
            return
        self._has_ended = True
        events = [
            *read_frame(frame, currency=self._currency, spoken=self._spoken, called=self._known)
        ]
        for_us = {event.id for event in events if type(event) is ToolCall}
        yield from [call for call in self._own_calls() if call.id not in for_us]
        yield from events

    def _own_calls(self) -> list[ToolCall]:
        """The tools that were run there, as far as it has told of them."""
        found = [call.event() for call in self._calls.values()]
        self._known |= self._calls.keys()
        self._calls.clear()
        return found

    def _delta(self, delta: Mapping[str, Any]) -> Iterator[Event]:
        kind, content = delta.get("deltaType"), delta.get("content")
        if not isinstance(content, str):
            return
        if kind == "content":
            self._spoken += len(content)
            if self._calls:  # it goes on, so they were for itself
                yield from self._own_calls()
            if content:
                yield Text(content)
            return
        name = delta.get("toolCallId")
        if not isinstance(name, str) or not 0 < len(name) <= MOST_NAME:
            return
        if kind == "tool_name" and len(self._known) + len(self._calls) < MOST_CALLS:
            self._calls[name] = _Call(name, content, read_count(delta.get("toolCallIndex")))
        elif kind == "tool_argument" and name in self._calls:
            self._calls[name].arguments += content


class _Call:
    """A call of a tool, as it grows."""

    __slots__ = ("_id", "_index", "_name", "arguments")

    def __init__(self, id: str, name: str, index: int | None) -> None:
        self._id = id
        self._name = name[:MOST_NAME]
        self._index = index or 0
        self.arguments = ""

    def event(self) -> ToolCall:
        """The same as an event."""
        return ToolCall(self._id, self._name, self.arguments, self._index, is_own=True)
