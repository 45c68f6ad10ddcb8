"""The line between an application and the connection of its request, beside ASGI.

Over ASGI, noticing that a client has gone takes a task that waits for it, a kilobyte for every open
stream, and an answer is two messages whose headers uvicorn checks one by one.

Law 1. A line does not keep its request: the request's scope holds the line.
Law 2. What is written here is what uvicorn would have written; what is not usual goes its way.
"""

import asyncio
import select
from collections.abc import Callable
from http import HTTPStatus
from itertools import chain
from typing import Any, Final, Protocol
from weakref import ref

from carnet.http.head import Fields
from carnet.wire.dialects.dialect import Reply

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


class Held:
    """The bytes of large bodies that all connections hold together."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        """None so far."""
        self.size = 0


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

    __slots__ = ("_cycle", "_is_gone", "held", "task", "tell")

    def __init__(self, cycle: Cycle | None = None) -> None:
        """The client is there, and nobody listens. `cycle` is the request, of which we are part."""
        self._cycle: Callable[[], Cycle | None] = _nothing if cycle is None else ref(cycle)
        self._is_gone = False
        self.tell: Callable[[], None] | None = None  # whom it is told that the client goes away
        self.task: asyncio.Task[object] | None = None  # that answers the request
        self.held = 0  # bytes of its body that count among the large ones

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

    def forget_head(self) -> None:
        """Hold no more of the head than the server needs to write the answer."""
        cycle = self._cycle()
        if cycle is not None:
            scope = cycle.scope
            method = scope["method"]
            scope.clear()
            scope["method"], scope[LINE] = method, self

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
