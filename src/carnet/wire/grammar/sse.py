"""Server-sent events: bytes into events as they arrive, and events into bytes.

It follows the parsing rules of the WHATWG standard with two differences: invalid UTF-8 is refused
instead of repaired, and an event has a greatest size. It does not reconnect, keeps no time and
knows nothing of what the data means.

Law 1. Where the chunks are cut makes no difference: not inside a character, not between CR and LF.
Law 2. CRLF, LF and CR end a line alike.
Law 3. An event is delivered with the blank line that ends it, not later.
Law 4. Never more than one event and one chunk is held; a larger event raises `SseOverflow`.
Law 5. What `write_event` returns is exactly one event to any reader: no text can add another.

A reader that raised is of no further use; the whole events of that last chunk go with it.
"""

from collections.abc import Callable
from typing import Final

import msgspec

MAX_EVENT_BYTES: Final = 256 * 1024

_RETRY_DIGITS: Final = 9  # eleven days of milliseconds; a longer number is no waiting time
_ONE_LINE: Final = "data: "
_DATA_BEGINS: Final = len(_ONE_LINE)


class SseInvalid(ValueError):
    """The stream is not UTF-8, or a text to be written does not fit on one line."""


class SseOverflow(ValueError):
    """One event is larger than the reader accepts."""


class SseEvent(msgspec.Struct, frozen=True, gc=False):
    """One event, with the fields of its own frame: `id` and `retry` are None if not given."""

    event: str
    data: str
    id: str | None = None
    retry: int | None = None


class SseReader:
    """Reads one stream. `last_event_id` is what a reconnecting client would send."""

    __slots__ = (
        "_after_cr",
        "_begun",
        "_deliver_trailing",
        "_max_bytes",
        "_on_comment",
        "_rest",
        "last_event_id",
    )

    def __init__(
        self,
        *,
        max_event_bytes: int = MAX_EVENT_BYTES,
        deliver_trailing: bool = False,
        on_comment: Callable[[str], None] | None = None,
    ) -> None:
        self.last_event_id = ""
        self._on_comment = on_comment
        self._max_bytes = max_event_bytes
        self._deliver_trailing = deliver_trailing
        self._rest = bytearray()  # the frame that has begun, its line ends already LF
        self._after_cr = False
        self._begun = False

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Take the next bytes and return the events that they complete."""
        if self._after_cr or b"\r" in chunk:
            chunk = self._unify_line_ends(chunk)
        rest = self._rest
        searched = max(len(rest) - 1, 0)
        rest += chunk
        end = rest.rfind(b"\n\n", searched)
        whole = rest[: end + 2] if end >= 0 else b""
        del rest[: len(whole)]
        # The line end that is still half of a blank line is not part of the event.
        if len(rest) - rest.startswith(b"\n") - rest.endswith(b"\n") > self._max_bytes:
            raise SseOverflow(f"an event is larger than {self._max_bytes} bytes")
        return self._read_frames(whole) if whole else []

    def close(self) -> list[SseEvent]:
        """The stream has ended: what lacks its blank line is dropped, unless asked for."""
        rest, self._rest = self._rest, bytearray()
        return self._read_frames(rest) if rest and self._deliver_trailing else []

    def _unify_line_ends(self, chunk: bytes) -> bytes:
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]  # the other half of a CRLF whose CR has ended the line
            self._after_cr = False
        if chunk:
            self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _read_frames(self, whole: bytes | bytearray) -> list[SseEvent]:
        if len(whole) > self._max_bytes:
            self._refuse_large(whole)
        try:
            text = whole.decode()
        except UnicodeDecodeError as error:
            raise SseInvalid(f"not UTF-8: {error.reason}") from None
        if not self._begun:
            self._begun = True
            text = text.removeprefix("\ufeff")
        events = []
        for frame in text.split("\n\n"):
            if frame.startswith(_ONE_LINE) and "\n" not in frame:
                events.append(SseEvent("message", frame[_DATA_BEGINS:]))
            elif frame:
                event = self._read_frame(frame)
                if event is not None:
                    events.append(event)
        return events

    def _refuse_large(self, whole: bytes | bytearray) -> None:
        largest = max(len(frame.strip(b"\n")) for frame in whole.split(b"\n\n"))
        if largest > self._max_bytes:
            raise SseOverflow(f"an event is larger than {self._max_bytes} bytes")

    def _read_frame(self, frame: str) -> SseEvent | None:
        data: list[str] = []
        event, own_id, retry = "", None, None
        for line in frame.split("\n"):
            field, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if field == "data":
                data.append(value)
            elif field == "event":
                event = value
            elif field == "id" and "\0" not in value:
                own_id = self.last_event_id = value
            elif field == "retry" and _is_wait(value):
                retry = int(value)
            elif not field and self._on_comment is not None:
                self._on_comment(value)
        return SseEvent(event or "message", "\n".join(data), own_id, retry) if data else None


def write_event(data: bytes, *, event: str | None = None, id: str | None = None) -> bytes:
    """Return one event. `data` is one line of UTF-8, as `wire.grammar.json.write` makes it."""
    if b"\n" in data or b"\r" in data:
        raise SseInvalid("the data of an event must be one line")
    frame = b"data: %b\n\n" % data
    if event is not None:
        frame = b"event: %b\n%b" % (_one_line(event), frame)
    if id is not None:
        frame = b"id: %b\n%b" % (_one_line(id), frame)
    return frame


def write_comment(text: str) -> bytes:
    """Return a comment, which keeps a connection alive and which every reader skips."""
    return b": %b\n\n" % _one_line(text)


def _one_line(text: str) -> bytes:
    # Besides CR, LF and NUL this refuses the line breaks of Unicode, at which some readers split.
    if not text.isprintable():
        raise SseInvalid("an event name, an id and a comment must be printable, on one line")
    return text.encode()


def _is_wait(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) <= _RETRY_DIGITS
