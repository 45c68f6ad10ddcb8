"""A connection without a socket: bytes in, and what a reader gets out of them."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, NamedTuple

from carnet.runtime.egress.connection import Broken, Connection, Lost

loop = asyncio.new_event_loop()  # never runs: it only makes the futures of those who wait


class Wire(asyncio.Transport):
    """What a connection is given to write to."""

    def __init__(self) -> None:
        super().__init__()
        self.sent = b""
        self.unsent = 0
        self.is_closed = False
        self.is_paused = False

    def write(self, data: Any) -> None:
        self.sent += data

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def is_closing(self) -> bool:
        return self.is_closed

    def abort(self) -> None:
        self.is_closed = True

    def pause_reading(self) -> None:
        assert not self.is_paused
        self.is_paused = True

    def resume_reading(self) -> None:
        assert self.is_paused
        assert not self.is_closed
        self.is_paused = False


def asked() -> tuple[Connection, Wire]:
    """A connection that waits for an answer."""
    connection, wire = Connection(loop), Wire()
    connection.connection_made(wire)
    connection.ask(b"GET / HTTP/1.1\r\n\r\n", b"")
    return connection, wire


async def head(connection: Connection) -> None:
    """Wait for the answer's head, as whoever asked does."""
    while not connection.has_head:
        await connection.change()


async def more(connection: Connection) -> None:
    """Wait until something could be taken or the answer is complete, as whoever reads it does."""
    while not connection._pieces and not connection.complete:  # noqa: SLF001  takes nothing
        await connection.change()


def outcome(waiting: Coroutine[Any, Any, None]) -> str:
    """How a wait ends: now, with a failure, or not yet."""
    try:
        waiting.send(None)
    except StopIteration:
        return "done"
    except (Broken, Lost, TimeoutError) as error:
        return f"{type(error).__name__}: {error}"
    waiting.close()
    return "waits"


class Received(NamedTuple):
    """What a reader gets out of an answer."""

    status: int
    fields: dict[bytes, bytes]
    body: bytes
    end: str
    kept: bool


def receive(segments: Sequence[bytes], *, ends: bool = True) -> Received:
    """Read an answer that comes in these pieces; afterwards the peer closes, if it `ends`."""
    connection, wire = asked()
    body = b""
    for segment in segments:
        if wire.is_closed:
            break
        connection.data_received(segment)
        body += connection.take()
    if ends:
        connection.connection_lost(None)
    end = outcome(more(connection))
    fields = connection.fields if connection.has_head else {}
    return Received(connection.status, fields, body, end, connection.release())


def broken(*segments: bytes) -> str:
    """Why these bytes are no answer, as the reader is told."""
    received = receive(segments, ends=False)
    assert received.end.startswith("Broken: ")
    assert not received.kept
    return received.end.removeprefix("Broken: ")
