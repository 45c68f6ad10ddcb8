"""The load generator: raw HTTP/1.1 connections that stay open, one request at a time on each.

Law 1. Anything but the expected answer ends the measurement with what was answered instead.
Law 2. Latency is from the moment a request was due or sent to the last byte of its answer.
"""

import asyncio
import time
from array import array
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import httptools

from bench.bodies import WORD

RIGHT = frozenset({200, 202})
EXCERPT = 300  # bytes of a wrong answer that are shown
CONNECT_SECONDS = 10.0


class Wrong(Exception):
    """The process under test did not answer as it must, so there is no figure."""


class Latencies:
    """Every latency of a measurement, in seconds."""

    def __init__(self) -> None:
        self._values = array("d")

    def __len__(self) -> int:
        return len(self._values)

    def add(self, seconds: float) -> None:
        self._values.append(seconds)

    def clear(self) -> None:
        """Forget the warm-up."""
        del self._values[:]

    def quantile(self, share: float) -> float:
        """The value that this share of all values does not exceed; 0 of none."""
        if not self._values:
            return 0.0
        ordered = sorted(self._values)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Answer(Protocol):
    """What reads the body of an answer."""

    def feed(self, piece: bytes) -> None: ...

    def is_right(self) -> bool:
        """Asked at the end of the body; then the next one begins."""
        ...

    def excerpt(self) -> str: ...


class Whole:
    """An answer read as a whole, which must contain a mark."""

    def __init__(self, mark: bytes) -> None:
        self._mark = mark
        self._body = b""

    def feed(self, piece: bytes) -> None:
        self._body += piece

    def is_right(self) -> bool:
        right = self._mark in self._body
        if right:
            self._body = b""
        return right

    def excerpt(self) -> str:
        return self._body[:EXCERPT].decode(errors="replace")


class Events:
    """An answer read as a stream, whose events are counted; it must end with the end mark."""

    MARK = b'"%b' % WORD.encode()  # opening and ending events have no text
    END = b"data: [DONE]"

    def __init__(self, count: Callable[[int], None]) -> None:
        self._count = count
        self._tail = b""
        self._first = b""

    def feed(self, piece: bytes) -> None:
        seen = self._tail + piece
        # An event may be cut anywhere; what the tail holds whole was counted before.
        self._count(seen.count(self.MARK) - self._tail.count(self.MARK))
        self._tail = seen[-len(self.END) - len(b"\n\n") :]
        self._first = self._first or piece

    def is_right(self) -> bool:
        right = self.END in self._tail
        if right:
            self._tail = self._first = b""
        return right

    def excerpt(self) -> str:
        return (self._first[:EXCERPT] + b" ... " + self._tail).decode(errors="replace")


class Connection(asyncio.Protocol):
    """One connection with at most one request on its way."""

    def __init__(self, clients: "Clients", answer: Answer) -> None:
        self._clients = clients
        self._answer = answer
        self._parser: Any = httptools.HttpResponseParser(self)
        self._transport: Any = None
        self._since = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self._clients.fail(f"a connection was closed by the other side ({exc or 'end of file'})")

    def close(self) -> None:
        self._transport.abort()

    def send(self, request: bytes, since: float) -> None:
        self._since = since
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._clients.fail(f"the answer is not HTTP/1.1: {error}")

    def on_body(self, piece: bytes) -> None:
        self._answer.feed(piece)

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if status not in RIGHT or not self._answer.is_right():
            self._clients.fail(f"answered {status}: {self._answer.excerpt()}")
            return
        self._clients.latencies.add(time.perf_counter() - self._since)
        self._clients.answered += 1
        self._clients.free(self)


class Clients:
    """All connections to one process, and what they have seen."""

    def __init__(self, requests: Iterator[bytes]) -> None:
        self.answered = 0
        self.events = 0
        self.latencies = Latencies()
        self._requests = requests
        self._connections: list[Connection] = []
        self._idle: deque[Connection] = deque()
        self._waiting: deque[tuple[bytes, float]] = deque()
        self._closed_loop = False
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def connect(self, port: int, number: int, answer: Callable[["Clients"], Answer]) -> None:
        loop = asyncio.get_running_loop()
        for _ in range(number):
            _, connection = await loop.create_connection(
                lambda: Connection(self, answer(self)), "127.0.0.1", port
            )
            self._connections.append(connection)
            self._idle.append(connection)

    def start(self) -> None:
        """Closed loop: each connection sends its next request when it has its answer."""
        self._closed_loop = True
        for _ in range(len(self._idle)):
            self.free(self._idle.popleft())

    def free(self, connection: Connection) -> None:
        """A connection has nothing on its way."""
        if self._waiting:
            connection.send(*self._waiting.popleft())
            return
        request = next(self._requests, None) if self._closed_loop else None
        if request is not None:
            connection.send(request, time.perf_counter())
            return
        self._idle.append(connection)
        if self._closed_loop and len(self._idle) == len(self._connections):
            self._end()

    def send_now(self) -> None:
        """Open loop: send, or wait for a connection with the clock already running."""
        request, now = next(self._requests), time.perf_counter()
        if self._idle:
            self._idle.popleft().send(request, now)
        else:
            self._waiting.append((request, now))

    def count(self, events: int) -> None:
        self.events += events

    def fail(self, why: str) -> None:
        if not self._ended.done():
            self._ended.set_exception(Wrong(why))

    def _end(self) -> None:
        if not self._ended.done():
            self._ended.set_result(None)

    async def keep_going(self, seconds: float) -> bool:
        """Let the load run this long; True if it ended by itself, because all is answered."""
        done, _ = await asyncio.wait([self._ended], timeout=seconds)
        if done:
            self._ended.result()
        return bool(done)

    def close(self) -> None:
        self._end()  # what the connections see from now on is our doing
        self._ended.exception()
        for connection in self._connections:
            connection.close()


def whole(mark: bytes) -> Callable[[Clients], Answer]:
    """Answers that contain the mark."""
    return lambda _: Whole(mark)


def events(clients: Clients) -> Answer:
    """Streams whose events the clients count."""
    return Events(clients.count)


@asynccontextmanager
async def clients_at(
    port: int, requests: Iterator[bytes], *, connections: int, answer: Callable[[Clients], Answer]
) -> AsyncIterator[Clients]:
    """Connections to a port, closed at the end whatever happens."""
    clients = Clients(requests)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await clients.connect(port, connections, answer)
        yield clients
    finally:
        clients.close()


async def open_loop(clients: Clients, *, per_second: int, seconds: float) -> None:
    """Send at a fixed rate, whatever is still unanswered."""
    start = time.perf_counter()
    for number in range(int(per_second * seconds)):
        due = start + number / per_second
        if await clients.keep_going(max(0.0, due - time.perf_counter())):
            return
        clients.send_now()
