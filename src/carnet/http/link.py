"""The line between an application and the connection of its request, beside ASGI.

Over ASGI, noticing that a client has gone takes a task that waits for it, a kilobyte for every open
stream, and an answer is two messages whose headers uvicorn checks one by one.

Here is also the head of a request, judged as bytes: within its sizes, and readable in one way only.

Law 1. A line does not keep its request: the request's scope holds the line.
Law 2. What is written here is what uvicorn would have written; what is not usual goes its way.
Law 3. A head that is refused here was refused by a look at the bytes alone; no field is believed
       yet.
"""

import asyncio
import re
import select
from collections.abc import Callable
from http import HTTPStatus
from itertools import chain
from typing import Any, Final, Protocol
from weakref import ref

from msgspec import Struct

from carnet.errors import BodyTooLarge, HeadersTooLarge, MalformedRequest, Overloaded, UriTooLong
from carnet.wire.dialects.dialect import Reply
from carnet.wire.stamps import STAMPS

Fields = list[tuple[bytes, bytes]]

SHARE: Final = 4  # one caller may have the fourth part of the room for large bodies, or one body
BODY_GRACE_SECONDS: Final = 5.0  # from then on a body has to come at a rate
BODY_BYTES_A_SECOND: Final = 1024
_AUTHORITY: Final = rb"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
_HOST: Final = re.compile(rb"[ \t]*%b[ \t]*" % _AUTHORITY)
_WHOLE: Final = re.compile(rb"https?://(%b)([/?].*)?" % _AUTHORITY, re.IGNORECASE | re.DOTALL)
_LENGTH: Final = re.compile(rb"[ \t]*[0-9]{1,19}[ \t]*")
_ONCE: Final = frozenset({b"host", b"content-length", b"transfer-encoding"})


class EdgeLimits(Struct, frozen=True, kw_only=True):
    """What a connection is held to."""

    header_bytes: int
    header_fields: int
    url_bytes: int
    header_seconds: float
    body_bytes: int  # the largest body that any route takes
    body_seconds: float
    write_stall_seconds: float
    connections: int
    requests: int
    bodies_bytes: int  # of all requests together
    # Fields that may hold anything: their readers refuse what is bad, and name the header.
    tolerated: tuple[bytes, ...] = STAMPS.tolerated


def body_seconds(size: int, most: float) -> float:
    """How long a body may have taken by the time that `size` bytes of it have come."""
    return min(most, BODY_GRACE_SECONDS + size / BODY_BYTES_A_SECOND)


def check_head(target: bytes, fields: Fields, limits: EdgeLimits) -> tuple[bool, bool]:
    """Refuse a head that is too large or can be read in two ways.

    Tells whether a body follows, and whether it waits to be asked for.
    """
    count, size = len(fields), len(target)
    if size > limits.url_bytes:
        raise UriTooLong(limit=limits.url_bytes)
    text = b"".join(chain(*fields))
    if (
        count > limits.header_fields
        or size + len(text) + 4 * count > limits.header_bytes  # 4: colon and so on
    ):
        raise HeadersTooLarge(limit=limits.header_bytes, fields=limits.header_fields)
    if target[:1] != b"/" or b"#" in target:
        raise MalformedRequest("its target is not a path")
    named = dict(fields)
    if len(named) != count:
        _refuse_repeated(fields)
    if not text.isascii():
        _refuse_beyond_ascii(fields, limits.tolerated)
    if b"host" not in named or not _HOST.fullmatch(named[b"host"]):
        raise MalformedRequest("it does not name one valid host")
    return _has_body(named, limits), b"expect" in named and _expects(fields)


def origin_form(method: bytes, target: bytes, fields: Fields) -> bytes:
    """The path in a target that is a whole address (RFC 9112, 3.2.2) of the host that is named."""
    match = _WHOLE.fullmatch(target)
    hosts = [value.strip(b" \t").lower() for name, value in fields if name == b"host"]
    if match is None or hosts != [match[1].lower()] or method == b"CONNECT":
        return target  # which `check_head` refuses
    path: bytes = match[2] or b"/"
    return path if path[:1] == b"/" else b"/" + path


def _has_body(named: dict[bytes, bytes], limits: EdgeLimits) -> bool:
    if b"transfer-encoding" in named:
        if b"content-length" in named:
            raise MalformedRequest("it has a length beside a transfer coding")
        if named[b"transfer-encoding"].strip(b" \t").lower() != b"chunked":
            raise MalformedRequest("its transfer coding is not 'chunked'")
        return True
    if b"content-length" not in named:
        return False
    length = named[b"content-length"]
    if not _LENGTH.fullmatch(length):
        raise MalformedRequest("its length is not a number")
    size = int(length)
    if size > limits.body_bytes:
        raise BodyTooLarge(limit=limits.body_bytes)
    return size > 0


def _expects(fields: Fields) -> bool:
    return any(name == b"expect" and value.lower() == b"100-continue" for name, value in fields)


def _refuse_repeated(fields: Fields) -> None:
    framing = [name for name, _ in fields if name in _ONCE]
    if len(framing) != len(set(framing)):
        raise MalformedRequest("a field that may stand once stands twice")


def _refuse_beyond_ascii(fields: Fields, tolerated: tuple[bytes, ...]) -> None:
    for name, value in fields:
        if not (name.isascii() and value.isascii()) and not name.startswith(tolerated):
            raise MalformedRequest("a header field holds a character beyond ASCII")


LINE = "carnet.line"  # where a scope has it

_ENDED: Final = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)
_STATUS_LINES: Final = {
    status.value: b"HTTP/1.1 %d %b\r\n" % (status.value, status.phrase.encode())
    for status in HTTPStatus
}


class Flow(Protocol):
    """The part of uvicorn's flow control that a line looks at."""

    read_paused: bool
    write_paused: bool

    def resume_reading(self) -> None: ...


class Cycle(Protocol):
    """The part of uvicorn's request that a line needs."""

    scope: Any  # a mapping; uvicorn types it by its keys
    transport: asyncio.Transport
    default_headers: Fields
    on_response: Callable[..., None]
    body: bytearray
    keep_alive: bool
    more_body: bool
    disconnected: bool
    waiting_for_100_continue: bool
    response_started: bool
    response_complete: bool

    @property
    def flow(self) -> Flow: ...


Sender = tuple[bytes, bytes]  # a credential, empty where none is shown, and an address


class Held:
    """The bytes of large bodies that all connections hold together, and whose they are."""

    __slots__ = ("_of", "size")

    def __init__(self) -> None:
        self.size = 0
        self._of: dict[bytes, int] = {}  # by credential and by address; none of who has none

    @staticmethod
    def sender(scope: Any) -> Sender:
        """Who sends a request, as far as it says so: nobody has judged its credential yet."""
        named = dict(scope.get("headers", ()))
        client = scope.get("client") or ("",)
        # However its scheme is written, it is the same one.
        credential = named.get(b"authorization", b"").rpartition(b" ")[2]
        return credential, b"from " + client[0].encode()

    def take(self, sender: Sender, size: int, limits: EdgeLimits) -> None:
        """Count more of somebody's; refused where those of one, or all, are too many."""
        credential, address = sender
        share = max(limits.bodies_bytes // SHARE, limits.body_bytes)
        if self._of.get(credential or address, 0) + size > share:
            raise Overloaded("large bodies of one caller", retry_after=1)
        if self._of.get(address, 0) + size > 2 * share:  # of however many credentials
            raise Overloaded("large bodies of one address", retry_after=1)
        if self.size + size > limits.bodies_bytes:
            raise Overloaded("large bodies", retry_after=1)
        self._add(sender, size)

    def give(self, sender: Sender, size: int) -> None:
        """Count them no more."""
        self._add(sender, -size)

    def _add(self, sender: Sender, size: int) -> None:
        self.size += size
        for whose in sender:
            left = self._of.pop(whose, 0) + size
            if whose and left > 0:
                self._of[whose] = left


def has_ended(transport: asyncio.Transport) -> bool:
    """Whether the other side has gone, for who does not read and so does not notice."""
    kernel = transport.get_extra_info("socket")
    if kernel is None or kernel.fileno() < 0:
        return False
    poll = select.poll()
    poll.register(kernel.fileno(), _ENDED)
    return bool(poll.poll(0))


def last_words(reply: Reply, default_headers: Fields) -> bytes:
    """An answer after which the connection is closed."""
    ends = [(b"content-length", b"%d" % len(reply.body)), (b"connection", b"close")]
    lines = [b"%b: %b\r\n" % field for field in (*default_headers, *reply.headers, *ends)]
    return b"".join([_STATUS_LINES[reply.status], *lines, b"\r\n", reply.body])


def _nothing() -> None:
    """The request of a line that has none."""


class Line:
    """What an application may do with the connection of a request."""

    __slots__ = (
        *("_cycle", "_is_gone", "correlation", "held", "is_proxied", "is_to_fail", "task", "tell"),
    )

    def __init__(self, cycle: Cycle | None = None, correlation: str | None = None) -> None:
        """The client is there, and nobody listens. `cycle` is the request, of which we are part.

        `correlation` is what its answer calls it.
        """
        self.correlation = correlation
        self._cycle: Callable[[], Cycle | None] = _nothing if cycle is None else ref(cycle)
        self._is_gone = False
        self.tell: Callable[[], None] | None = None  # whom it is told that the client goes away
        self.task: asyncio.Task[object] | None = None  # that answers the request
        self.held = 0  # bytes of its body that count among the large ones
        self.is_proxied = False  # it came through a proxy that is trusted
        self.is_to_fail = False  # never of a request that came by a connection

    def listen(self, tell: Callable[[], None]) -> None:
        """Call this when the client goes away, at once if it has."""
        self.tell = tell
        if self._is_gone:
            tell()

    def go(self) -> None:
        """The client has gone."""
        self._is_gone = True
        if self.tell is not None:
            self.tell()

    def has_unsent(self) -> bool:
        """Whether the client has not taken all that was written for it."""
        cycle = self._cycle()
        return cycle is not None and cycle.transport.get_write_buffer_size() > 0

    def close_after(self) -> None:
        """Have the connection closed after this answer."""
        cycle = self._cycle()
        if cycle is not None:
            cycle.keep_alive = False

    def cut(self) -> None:
        """Hang up at once, whatever is on its way."""
        cycle = self._cycle()
        if cycle is not None:
            cycle.transport.abort()

    def add(self, fields: Fields) -> None:
        """Have the answer begin with these as well, whatever it is."""
        cycle = self._cycle()
        if cycle is not None:
            cycle.default_headers += fields  # a list of this request alone

    def take_body(self) -> bytes | None:
        """The whole body if it has come; None if it has to be waited for."""
        cycle = self._cycle()
        if (
            cycle is None
            or cycle.more_body
            or cycle.disconnected
            or cycle.response_complete
            or cycle.waiting_for_100_continue
        ):
            return None
        body, cycle.body = bytes(cycle.body), bytearray()
        if cycle.flow.read_paused:
            cycle.flow.resume_reading()
        return body

    def forget_head(self) -> bool:
        """Hold no more of the head than the server needs to write the answer.

        Tells whether the connection may be used again after it.
        """
        cycle = self._cycle()
        if cycle is None:
            return False
        scope = cycle.scope
        method = scope["method"]
        scope.clear()
        scope["method"], scope[LINE] = method, self
        return cycle.keep_alive

    def reply(self, status: int, fields: Fields, body: bytes) -> bool:
        """Give a usual answer whole; False if it has to go the long way."""
        cycle = self._cycle()
        if cycle is not None and cycle.waiting_for_100_continue and cycle.more_body:
            cycle.keep_alive = False  # nobody can know whether its body will come after all
        if (
            cycle is None
            or cycle.response_started
            or cycle.disconnected
            or cycle.waiting_for_100_continue
            or cycle.flow.write_paused
            or not cycle.keep_alive
        ):
            return False
        words = (*chain(*cycle.default_headers, *fields),)  # names and values by turns
        text = b"".join(words)
        if b"\r" in text or b"\n" in text:
            raise ValueError("a header holds a character that would end its line")
        head = b"%b: %b\r\n" * (len(words) // 2) % words
        cycle.transport.write(b"%b%b\r\n%b" % (_STATUS_LINES[status], head, body))
        cycle.response_started = cycle.response_complete = True
        cycle.on_response()
        return True
