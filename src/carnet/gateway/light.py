"""Small stand-ins for parts that uvicorn makes for each connection or request.

An `asyncio.Event` and a `deque` take 760 bytes each before anything is in them, and a task that
waits for a client to go away takes a kilobyte: thousands of open streams are mostly such things.
"""

import asyncio
import select
from collections.abc import Callable
from http import HTTPStatus
from typing import Final, Protocol, TypeVar
from weakref import ref

from carnet.gateway.head import Fields

_ENDED: Final = select.POLLHUP | select.POLLERR | getattr(select, "POLLRDHUP", 0)
_STATUS_LINES: Final = {
    status.value: b"HTTP/1.1 %d %b\r\n" % (status.value, status.phrase.encode())
    for status in HTTPStatus
}

T = TypeVar("T")


class Signal:
    """The part of `asyncio.Event` that a connection needs."""

    __slots__ = ("_is_set", "_waiters")

    def __init__(self, *, is_set: bool = False) -> None:
        """`is_set` as it begins."""
        self._is_set = is_set
        self._waiters: list[asyncio.Future[None]] | None = None

    def set(self) -> None:
        """Wake whoever waits."""
        self._is_set = True
        waiters, self._waiters = self._waiters, None
        for waiter in waiters or ():
            if not waiter.done():
                waiter.set_result(None)

    def clear(self) -> None:
        """Make the next one wait."""
        self._is_set = False

    async def wait(self) -> None:
        """Until it is set."""
        while not self._is_set:
            waiter = asyncio.get_running_loop().create_future()
            if self._waiters is None:
                self._waiters = []
            self._waiters.append(waiter)
            await waiter


class Few(list[T]):
    """The part of `deque` that the requests waiting on a connection need; there are seldom any."""

    __slots__ = ()

    def appendleft(self, item: T) -> None:
        """Put one at the front."""
        self.insert(0, item)

    def popleft(self) -> T:
        """Take the one at the front."""
        return self.pop(0)


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
    """What an application may do with a connection beside ASGI.

    It can hear that its client has gone without a task that waits for it, and give a whole answer
    without the messages of one that comes in pieces.
    """

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
