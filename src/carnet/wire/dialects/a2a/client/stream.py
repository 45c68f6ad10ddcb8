"""The updates of a stream, from bytes.

Law 1. An event is one answer, in the binding and the version of the interface; an error among them
       is raised.
Law 2. A stream may end anywhere: whether the task has ended, the updates say.
"""

from collections.abc import Iterator
from typing import Final

from carnet.errors import ProviderError
from carnet.wire.dialects.a2a.client.answer import read_result
from carnet.wire.dialects.a2a.client.interface import Interface
from carnet.wire.dialects.a2a.client.task import Update, read_update
from carnet.wire.grammar.sse import SseEvent, SseInvalid, SseOverflow, SseReader

MOST_EVENT_BYTES: Final = 4 * 1024 * 1024  # a file may come in one


class UpdateReader:
    """Reads one stream."""

    __slots__ = ("_interface", "_sse", "held")

    def __init__(self, interface: Interface) -> None:
        """`interface` says how its events are written."""
        self._interface = interface
        self.held = 0  # bytes of an event that has begun, about
        self._sse = SseReader(max_event_bytes=MOST_EVENT_BYTES, deliver_trailing=True)

    def feed(self, data: bytes) -> Iterator[Update]:
        """The updates that these bytes complete."""
        try:
            events = self._sse.feed(data)
        except (SseInvalid, SseOverflow) as error:
            raise ProviderError(f"the stream is broken: {error}") from None
        self.held = 0 if events else self.held + len(data)
        return map(self._read, events)

    def close(self) -> Iterator[Update]:
        """What is left when no more bytes come; half of an event says nothing."""
        try:
            events = self._sse.close()
            yield from [self._read(event) for event in events]
        except (SseInvalid, SseOverflow, ProviderError):
            return

    def _read(self, event: SseEvent) -> Update:
        return read_update(read_result(self._interface, "SubscribeToTask", event.data.encode()))
