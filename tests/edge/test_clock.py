"""What a connection is told when the clock moves on; the clock is moved by hand."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from carnet.errors import BodyTimeout, CarnetError
from carnet.http.arrival import RequestIds
from carnet.http.exchange import Receive, Scope, Send
from carnet.http.link import EdgeLimits
from carnet.http.protocol import HardProtocol
from carnet.http.proxies import Proxies
from carnet.http.refusal import Refusing
from carnet.http.server import Server, make_server, sweep
from carnet.runtime.system import SystemClock
from carnet.wire.dialects import DIALECTS

LIMITS = EdgeLimits(
    header_bytes=1024,
    header_fields=10,
    url_bytes=100,
    header_seconds=10,
    body_bytes=1_000_000,
    body_seconds=30,
    write_stall_seconds=30,
    connections=100,
    requests=100,
    bodies_bytes=1_000_000,
)
POST = b"POST /x HTTP/1.1\r\nhost: a\r\ncontent-length: "
LONG = b"a" * 300_000


class Patient:
    """An application that waits for a word, reads the whole body, and answers."""

    def __init__(self) -> None:
        self.may_read = asyncio.Event()
        self.reads = True
        self.begun: list[str] = []  # the paths of its requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.begun.append(scope["path"])
        await self.may_read.wait()
        while self.reads and (message := await receive())["type"] == "http.request":
            if not message["more_body"]:
                break
        fields = [(b"content-length", b"2")]
        await send({"type": "http.response.start", "status": 200, "headers": fields})
        await send({"type": "http.response.body", "body": b"ok"})


class Place:
    """A server in this process and one client of it."""

    def __init__(self, app: Patient) -> None:
        self.app = app
        self.refused: list[CarnetError] = []
        self.up = asyncio.Event()
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.server: Server = make_server(
            app,
            sockets=[self.socket],
            limits=LIMITS,
            note=self.refused.append,
            proxies=Proxies(),
            refusing=Refusing(DIALECTS),
            request_ids=RequestIds(b"seed", SystemClock().wall_us),
            drain=self.drain,
            on_listening=self.up.set,
        )

    async def drain(self) -> None:
        """There is nothing to drain."""

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        await asyncio.wait_for(self.up.wait(), 30)
        port = self.socket.getsockname()[1]
        return await asyncio.open_connection("127.0.0.1", port)

    async def connection(self, target: bytes = b"") -> HardProtocol:
        """The one connection, once the target of its request has been read."""
        async with asyncio.timeout(30):
            while True:
                for connection in self.server.server_state.connections:
                    assert isinstance(connection, HardProtocol)
                    if connection.url == target:
                        return connection
                await asyncio.sleep(0)


@asynccontextmanager
async def served(app: Patient | None = None) -> AsyncIterator[Place]:
    place = Place(app or Patient())
    serving = asyncio.create_task(place.server.serve())
    try:
        yield place
    finally:
        place.app.may_read.set()
        place.server.should_exit = True
        await serving


def later(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


@pytest.mark.parametrize(
    ("sent", "in_time", "late", "answer"),
    [
        (b"", 9.5, 10.5, b""),
        (b"GET /x HTTP/1.1\r\n", 9.5, 10.5, b"HTTP/1.1 408 "),
        (POST + b"9\r\n\r\n", 4.5, 5.5, b"HTTP/1.1 408 "),
        (b"GET /x HTTP/1.1\r\nhost: a\r\n\r\n", 29.5, 30.5, b"HTTP/1.1 200 "),
    ],
    ids=["silent", "head", "body", "kept alive"],
)
async def test_each_state_has_its_deadline(
    sent: bytes, in_time: float, late: float, answer: bytes
) -> None:
    async with served() as place:
        place.app.may_read.set()
        reader, writer = await place.connect()
        writer.write(sent)
        connection = await place.connection(b"/x" if sent else b"")
        answered = answer.endswith(b"200 ")
        got = await asyncio.wait_for(reader.readuntil(b"ok"), 5) if answered else b""
        sweep([connection], later(in_time))
        assert not connection.transport.is_closing()
        assert place.refused == []
        sweep([connection], later(late))
        got += await asyncio.wait_for(reader.read(), 5)
        assert got.startswith(answer)
        assert bool(got) is bool(answer)
        writer.close()
        await writer.wait_closed()


async def test_a_body_that_we_do_not_read_is_not_late() -> None:
    async with served() as place:
        reader, writer = await place.connect()
        writer.write(POST + b"300000\r\n\r\n" + LONG)
        connection = await place.connection(b"/x")
        async with asyncio.timeout(30):
            while not connection.flow.read_paused:  # noqa: ASYNC110  uvicorn has no event for it
                await asyncio.sleep(0)
        sweep([connection], later(60))
        assert place.refused == []
        place.app.may_read.set()
        assert (await asyncio.wait_for(reader.readuntil(b"ok"), 5)).startswith(b"HTTP/1.1 200 ")
        writer.close()
        await writer.wait_closed()


async def test_nothing_is_said_after_a_refusal_and_nobody_waits_for_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with served() as place:
        place.app.reads = False
        reader, writer = await place.connect()
        writer.write(POST + b"9\r\n\r\n")
        connection = await place.connection(b"/x")
        sweep([connection], later(6))
        assert [type(error) for error in place.refused] == [BodyTimeout]
        place.app.may_read.set()  # the application, which knows nothing of it, answers now
        got = await asyncio.wait_for(reader.read(), 5)
        assert got.count(b"HTTP/1.1 ") == 1
        assert got.startswith(b"HTTP/1.1 408 ")
    writer.close()  # only now: the server has stopped without it
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_refused_client_may_finish_its_sentence_and_is_then_cut_off() -> None:
    async with served() as place:
        reader, writer = await place.connect()
        writer.write(POST + b"1073741824\r\n\r\n")
        connection = await place.connection(b"/x")
        got = await asyncio.wait_for(reader.read(), 5)
        assert got.startswith(b"HTTP/1.1 413 ")
        for _ in range(20):
            writer.write(LONG[:8192])
            await writer.drain()
        sweep([connection], later(0.5))
        assert not connection.transport.is_closing()
        sweep([connection], later(1.5))
        assert connection.transport.is_closing()
        writer.close()
