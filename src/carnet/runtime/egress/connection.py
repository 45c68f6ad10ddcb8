"""One connection to a peer: requests out, answers in, one after the other.

It knows HTTP/1.1 and nothing of destinations: whom it may be made to is decided by
`runtime.egress.client`, and so is how long anybody waits.

Law 1. An answer has one reading: a length beside a coding, two lengths, an unknown coding and a
       head beyond its bounds are refused, partly by the parser and partly here.
Law 2. What a peer sends that was not asked for ends the connection: it is never anybody's answer.
Law 3. Only so much is read ahead of whoever reads the answer, and only so much that is no body.
Law 4. No failure carries a word of the peer's.
"""

import asyncio
import select
from typing import Final

import httptools

MOST_HEAD_BYTES: Final = 16 * 1024  # of heads, or of trailers and the framing between two pieces
MOST_FIELDS: Final = 256
MOST_AHEAD: Final = 256 * 1024  # bytes of an answer that nobody has taken
MOST_INTERIM: Final = 8  # answers such as "100 Continue" before the real one

_SWITCHING: Final = 101
_INTERIM: Final = range(100, 200)  # announces another answer
_BODYLESS: Final = frozenset({204, 304})
_ONCE: Final = frozenset({b"content-length", b"transfer-encoding", b"content-encoding"})


class Broken(Exception):
    """What came is not an answer."""


class Lost(Exception):
    """The connection ended before the answer did."""


class Connection(asyncio.Protocol):
    """The client's side of one connection."""

    __slots__ = (
        *("_ahead", "_asked", "_barren", "_failure", "_interim", "_is_paused", "_keeps", "_lines"),
        *("_parser", "_pieces", "_poll", "_transport", "_until_closed", "_waiter"),
        *("complete", "fields", "has_head", "has_received", "idle_since", "loop", "status"),
    )

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._poll: select.poll | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._pieces: list[bytes] = []
        self._is_paused = self._asked = False
        self.idle_since = 0.0
        self._forget()

    def _forget(self) -> None:
        """Be ready for the next answer."""
        self._failure: tuple[type[Exception], str] | None = None
        self._ahead = self._barren = self._interim = self._lines = self.status = 0
        self._keeps = self._until_closed = self.has_head = self.complete = False
        self.has_received = False  # whether any byte of the answer came
        self.fields: dict[bytes, bytes] = {}  # by their names in lower case, the first of each

    # ------------------------------------------------------------------ for whoever asks

    def ask(self, head: bytes, body: bytes) -> None:
        """Send a request."""
        transport = self._transport
        if transport is None:
            raise Lost("closed")
        self._forget()
        self._asked = True
        if len(body) <= MOST_AHEAD:
            transport.write(head + body)
        else:
            transport.writelines((head, body))

    def take(self) -> bytes:
        """What has come since the last time; nothing is nothing yet, or nothing more."""
        match self._pieces:
            case []:
                return b""
            case [data]:
                pass
            case pieces:
                data = b"".join(pieces)
        self._pieces = []
        self._ahead = 0
        if self._is_paused:
            self._is_paused = False
            if self._transport is not None and not self._transport.is_closing():
                self._transport.resume_reading()
        return data

    def change(self) -> "asyncio.Future[None]":
        """What to wait for: the next change, such as that it has a head. Raises what has failed."""
        if self._failure is not None:
            kind, words = self._failure
            raise kind(words)  # made anew: one that is kept would hold the frames that hold us
        self._waiter = waiter = self.loop.create_future()
        return waiter

    def release(self) -> bool:
        """The answer has been read; whether the connection can serve another request."""
        transport = self._transport
        self._asked = False
        return (
            self.complete
            and self._keeps
            and not self._pieces
            and transport is not None
            and not transport.is_closing()
            and not transport.get_write_buffer_size()
        )

    @property
    def is_open(self) -> bool:
        """Whether it can be written to, as far as anybody knows."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def is_quiet(self) -> bool:
        """Whether nothing waits to be read, neither bytes nor their end.

        What lies there before a request is sent cannot be its answer.
        """
        return self._poll is None or not self._poll.poll(0)

    def abort(self) -> None:
        """End it now; what has not left stays here."""
        self._asked = False
        if self._transport is not None:
            self._transport.abort()

    def fail(self, kind: type[Exception], words: str = "") -> None:
        """Tell whoever waits, and end it."""
        if self._failure is None:
            self._failure = kind, words
        self._wake()
        self.abort()

    # ------------------------------------------------------------------ what the transport says

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # of TCP
        self._transport = transport
        sock = transport.get_extra_info("socket")
        if sock is not None:
            self._poll = select.poll()
            self._poll.register(sock.fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        if not self._asked:
            self.abort()
            return
        self.has_received = True
        self._barren += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.fail(Broken, _reason(error))
            return
        if self._barren > MOST_HEAD_BYTES and not self.complete:
            self.fail(Broken, "its head or its framing is too large")

    def connection_lost(self, error: Exception | None) -> None:
        self._transport = self._poll = None
        del self._parser  # it holds us
        if not self._asked or self.complete:
            return
        if self._until_closed and error is None:
            self.complete = True
        elif self._failure is None:
            self._failure = Lost, type(error).__name__ if error else "closed"
        self._wake()

    # ------------------------------------------------------------------ what the parser says

    def on_message_begin(self) -> None:
        if self.complete:
            raise Broken("more came than was asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.has_head:
            return  # a trailer, which means nothing here
        name = name.lower()
        fields = self.fields
        if name not in fields:
            fields[name] = value
        elif name in _ONCE:
            raise Broken("its length or its coding is given twice")
        self._lines += 1
        if self._lines > MOST_FIELDS:
            raise Broken("its head has too many fields")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        fields = self.fields
        length = fields.get(b"content-length")
        coding = fields.get(b"transfer-encoding")
        if self._barren > MOST_HEAD_BYTES:  # of which some may be body
            _check_size(fields)
        if coding is not None:
            self._check_coding(coding)
        if status < _INTERIM.stop:
            self._pass_over(status)
            return
        self.status = status
        self._until_closed = length is None and coding is None
        # A length without a body leaves open whether the next bytes are one.
        self._keeps = status not in _BODYLESS or (coding is None and length in {None, b"0"})
        self.has_head = True
        if self._waiter is not None:
            self._wake()

    def _check_coding(self, coding: bytes) -> None:
        if coding.rstrip(b" \t").lower() != b"chunked":
            raise Broken("its transfer coding is not 'chunked'")
        if self._parser.get_http_version() != "1.1":
            raise Broken("its transfer coding is not of its version of HTTP")

    def _pass_over(self, status: int) -> None:
        if status not in _INTERIM or status == _SWITCHING:
            raise Broken("its status was not asked for")
        if not self.fields.keys().isdisjoint(_ONCE):
            raise Broken("an answer that announces another has a body")
        self._interim += 1
        if self._interim > MOST_INTERIM:
            raise Broken("it has too many heads")
        self._lines -= len(self.fields)
        self.fields = {}

    def on_body(self, data: bytes) -> None:
        self._pieces += (data,)
        self._barren = 0
        self._ahead += len(data)
        if self._ahead > MOST_AHEAD and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()
        if self._waiter is not None:
            self._wake()

    def on_message_complete(self) -> None:
        if self.has_head:
            self.complete = True
            self._keeps = self._keeps and self._parser.should_keep_alive()
            if self._waiter is not None:
                self._wake()

    def _wake(self) -> None:
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            if not waiter.done():
                waiter.set_result(None)


def _check_size(fields: dict[bytes, bytes]) -> None:
    if sum(len(name) + len(value) + 4 for name, value in fields.items()) > MOST_HEAD_BYTES:
        raise Broken("its head is too large")


def _reason(error: Exception) -> str:
    """Why it cannot be read; the words of the parser may quote the peer."""
    cause = error.__context__
    return str(cause) if isinstance(cause, Broken) else type(error).__name__
