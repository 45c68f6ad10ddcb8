"""The line between an application and the connection of its request, beside ASGI.

Over ASGI, hearing that a client has gone takes a task that waits for it, a kilobyte for every open
stream, and an answer is two messages whose headers uvicorn checks one by one.

Law 1. A line does not keep its request: the request's scope holds the line.
Law 2. What is written here is what uvicorn would have written; what is not usual goes its way.
"""

import asyncio
import select
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, Protocol
from weakref import ref

from carnet.http.head import Fields
from carnet.http.light import Signal

LINE = "carnet.line"  # where a scope has it

_ENDED: Final = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)
_STATUS_LINES: Final = {
    status.value: b"HTTP/1.1 %d %b\r\n" % (status.value, status.phrase.encode())
    for status in HTTPStatus
}


class Flow(Protocol):
    """The part of uvicorn's flow control that an answer looks at."""

    write_paused: bool


class Cycle(Protocol):
    """The part of uvicorn's request that an answer needs."""

    transport: asyncio.Transport
    default_headers: Fields
    on_response: Callable[..., None]
    keep_alive: bool
    more_body: bool
    disconnected: bool
    waiting_for_100_continue: bool
    response_started: bool
    response_complete: bool

    @property
    def flow(self) -> Flow: ...
    @property
    def message_event(self) -> "asyncio.Event | Signal": ...


class Held:
    """The bytes of large bodies that all connections hold together."""

    __slots__ = ("size",)

    def __init__(self) -> None:
        """None so far."""
        self.size = 0


def has_ended(transport: asyncio.Transport) -> bool:
    """Whether the other side has gone, for who does not read and so does not hear it."""
    kernel = transport.get_extra_info("socket")
    if kernel is None or kernel.fileno() < 0:
        return False
    poll = select.poll()
    poll.register(kernel.fileno(), _ENDED)
    return bool(poll.poll(0))


class Line:
    """What an application may do with the connection of a request."""

    __slots__ = ("_cycle", "_is_gone", "_tell", "held")

    def __init__(self) -> None:
        """The client is there, and nobody listens."""
        self._cycle: Callable[[], Cycle | None] = lambda: None
        self._is_gone = False
        self._tell: Callable[[], None] | None = None
        self.held = 0  # bytes of its body that count among the large ones

    def belong_to(self, cycle: Cycle) -> None:
        """Be the line of a request, once uvicorn has made it."""
        self._cycle = ref(cycle)  # its scope holds us

    def listen(self, tell: Callable[[], None] | None) -> None:
        """Call this when the client goes away, at once if it has; None: nobody listens any more."""
        self._tell = tell
        if self._is_gone and tell is not None:
            tell()

    def go(self) -> None:
        """The client has gone."""
        self._is_gone = True
        if self._tell is not None:
            self._tell()

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
        lines = [b"%b: %b\r\n" % field for field in (*cycle.default_headers, *fields)]
        head = b"".join((_STATUS_LINES[status], *lines))
        ends = len(lines) + 1
        if head.count(b"\n") != ends or head.count(b"\r") != ends:
            raise ValueError("a header holds a character that would end its line")
        cycle.transport.write(b"%b\r\n%b" % (head, body))
        cycle.response_started = cycle.response_complete = True
        cycle.message_event.set()
        cycle.on_response()
        return True
