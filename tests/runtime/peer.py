"""A server on loopback that does, byte for byte, what its script says.

It is not an HTTP server: it hands over what arrived and sends what it is told, so that a test can
assert every byte of a request and answer with any nonsense.
"""

import asyncio
import os
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Self

from carnet.ports.world.http_client import Outbound
from carnet.runtime.egress.client import EgressClient
from carnet.runtime.egress.dialler import Lookup

LONG = 30.0  # seconds that nothing takes unless it hangs
JSON = {"content-type": "application/json"}
SSE = {"content-type": "text/event-stream"}


def reply(body: bytes = b"", *, status: int = 200, headers: dict[str, str] | None = None) -> bytes:
    """A whole answer with its length."""
    fields = {"content-length": str(len(body)), **(JSON if headers is None else headers)}
    return head(status, fields) + body


def head(status: int, headers: dict[str, str]) -> bytes:
    """The beginning of an answer."""
    lines = [f"HTTP/1.1 {status} Word", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()


def chunk(data: bytes) -> bytes:
    """One piece of a chunked body; an empty one ends it."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def stream_head() -> bytes:
    """The beginning of an event stream of unknown length."""
    return head(200, {**SSE, "transfer-encoding": "chunked"})


class Request:
    """One request as it arrived."""

    def __init__(self, raw_head: bytes, body: bytes) -> None:
        self.head = raw_head
        self.body = body

    @property
    def lines(self) -> list[str]:
        """The request line and the header lines, as they were sent."""
        return self.head.decode("latin-1").rstrip("\r\n").split("\r\n")

    @property
    def headers(self) -> dict[str, str]:
        """The header lines; a name that stands twice is an error."""
        pairs = [line.partition(": ") for line in self.lines[1:]]
        assert len({name.lower() for name, _, _ in pairs}) == len(pairs)
        return {name: value for name, _, value in pairs}


class Line:
    """One connection, as the script sees it."""

    def __init__(
        self, peer: "Peer", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._peer = peer
        self._reader = reader
        self._writer = writer
        self.number = peer.connections

    async def request(self) -> Request:
        """Wait for a whole request."""
        raw = await self._reader.readuntil(b"\r\n\r\n")
        request = Request(raw, b"")
        length = {name.lower(): value for name, value in request.headers.items()}
        request.body = await self._reader.readexactly(int(length.get("content-length", "0")))
        self._peer.requests.append(request)
        self._peer.asked.set()
        return request

    async def say(self, data: bytes) -> None:
        """Send these bytes."""
        self._writer.write(data)
        await self._writer.drain()

    async def until_gone(self) -> None:
        """Wait until the other side has left, and note it."""
        with suppress(ConnectionError):
            while data := await self._reader.read(65536):
                self._peer.unread += len(data)
        self._peer.gone.set()

    def reset(self) -> None:
        """End the connection with a reset instead of a farewell."""
        sock = self._writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()


Script = Callable[[Line], Awaitable[None]]


class Peer:
    """Serves every connection by its script; the connection ends with it."""

    def __init__(self, script: Script, *, tls: ssl.SSLContext | None = None) -> None:
        self._script = script
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()
        self.connections = 0
        self.requests: list[Request] = []
        self.asked = asyncio.Event()
        self.gone = asyncio.Event()
        self.unread = 0  # bytes that came while nobody asked for them
        self.port = 0

    @property
    def url(self) -> str:
        """Where chat completions are served."""
        return f"http://127.0.0.1:{self.port}/v1/chat/completions"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def stop_listening(self) -> None:
        """Refuse every further connection."""
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            await self._script(Line(self, reader, writer))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the other side has left
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            writer.close()
            with suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()


def answering(*answers: bytes) -> Script:
    """Answer every request of a connection; the last answer is given for ever."""

    async def script(line: Line) -> None:
        served = 0
        while True:
            await line.request()
            await line.say(answers[min(served, len(answers) - 1)])
            served += 1

    return script


# ---------------------------------------------------------------------- this side

TURN = {"x-tangle-turnid": "run_1.t0.critic"}


@asynccontextmanager
async def opened(**parts: Any) -> AsyncIterator[EgressClient]:
    """A client, closed in the end."""
    http = EgressClient(**parts)
    try:
        yield http
    finally:
        await http.close()


def post(url: str, body: bytes = b"{}", **more: Any) -> Outbound:
    """A request of a turn."""
    return Outbound(url=url, body=body, **{"headers": TURN, **more})


async def read(http: EgressClient, request: Outbound) -> bytes:
    """The whole answer."""
    async with http.send(request) as answer:
        return await answer.read()


def leading_to(*addresses: str) -> tuple[Lookup, list[str]]:
    """A name lookup, and the names it was asked for."""
    asked: list[str] = []

    async def lookup(host: str, port: int) -> Sequence[str]:  # noqa: ARG001
        asked.append(host)
        return addresses

    return lookup, asked


def sockets() -> int:
    """How many sockets this process has."""
    found = 0
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208
        try:
            found += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")  # noqa: PTH115
        except FileNotFoundError:
            continue  # that of the listing itself
    return found
