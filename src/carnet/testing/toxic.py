"""A TCP proxy on loopback that does to a connection what networks do.

It runs on a thread of its own, before a port or a socket file of this machine, and knows nothing of
HTTP.

Law 1. A toxic works on the answers; it can be changed at any time, also under open connections.
Law 2. `at=0` is before the request is passed on: the far side never sees it.
Law 3. While a connection hangs or is half closed, its near side is still watched: `open` tells
       whether the one who called has let go of it.
"""

import asyncio
import socket
import struct
import threading
from asyncio import StreamReader, StreamWriter
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

Ending = Literal["close", "half_close", "reset", "garbage", "hang"]

GARBAGE: Final = b"\x16\x03\x01\xff\xfe not HTTP \x00\r\n\r\n"
_PIECE: Final = 65_536
_WAIT_SECONDS: Final = 10.0
_ABORT: Final = struct.pack("ii", 1, 0)  # SO_LINGER: closing sends a reset


@dataclass(frozen=True, slots=True, kw_only=True)
class Toxic:
    """What is done to answers; without arguments, nothing."""

    latency_seconds: float = 0.0  # before each piece
    slice_bytes: int = _PIECE  # how much is passed on at a time
    pause_seconds: float = 0.0  # after each slice
    at: int | bytes | None = None  # after so many bytes, or just behind this text ...
    then: Ending = "close"  # ... this happens
    garbage: bytes = GARBAGE
    after: threading.Event | None = None  # it does not happen before this is set

    def __post_init__(self) -> None:
        """Refuse what would do nothing, or never end."""
        if self.slice_bytes < 1 or (isinstance(self.at, int) and self.at < 0) or self.at == b"":
            raise ValueError("slices and limits are counted in whole bytes")

    def cut(self, received: bytes, fresh: int) -> int | None:
        """How many of the last `fresh` bytes are passed on before the end; None: all, no end."""
        if self.at is None:
            return None
        if isinstance(self.at, int):
            end = self.at
        else:
            found = received.find(self.at)
            end = len(received) + 1 if found < 0 else found + len(self.at)
        before = len(received) - fresh
        return max(0, end - before) if end <= len(received) else None


def latency(seconds: float) -> Toxic:
    """Every piece comes late."""
    return Toxic(latency_seconds=seconds)


def slicer(size: int, pause_seconds: float = 0.0) -> Toxic:
    """Answers come in pieces of `size` bytes, with a pause after each."""
    return Toxic(slice_bytes=size, pause_seconds=pause_seconds)


def bandwidth(bytes_per_second: int) -> Toxic:
    """A narrow line: twenty pieces a second."""
    size = max(1, bytes_per_second // 20)
    return Toxic(slice_bytes=size, pause_seconds=size / bytes_per_second)


def limit_data(at: int | bytes) -> Toxic:
    """The connection is closed there."""
    return Toxic(at=at, then="close")


def half_close(at: int | bytes) -> Toxic:
    """The answering side is closed there, the asking side stays open."""
    return Toxic(at=at, then="half_close")


def reset(at: int | bytes = 0) -> Toxic:
    """The connection is reset there."""
    return Toxic(at=at, then="reset")


def garbage(at: int | bytes = 0, data: bytes = GARBAGE) -> Toxic:
    """From there on something else comes, and the end."""
    return Toxic(at=at, then="garbage", garbage=data)


def hang(at: int | bytes = 0) -> Toxic:
    """From there on nothing comes, and no end."""
    return Toxic(at=at, then="hang")


class ToxicProxy:
    """Stands before a port: `with ToxicProxy(port) as proxy: proxy.toxic = reset()`."""

    def __init__(self, far: int | str) -> None:
        """`far` is what it stands before: a port, or the path of a socket file."""
        self._far = far
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._server: asyncio.Server | None = None
        self._lines: set[asyncio.Task[None]] = set()
        self.port = 0
        self.accepted = 0  # connections so far
        self.toxic = Toxic()

    def __enter__(self) -> Self:
        self._thread.start()
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_WAIT_SECONDS)
        self._loop.close()

    @property
    def url(self) -> str:
        """Where it is reached, as a base URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def open(self) -> int:
        """How many connections the near side has not let go of."""
        return len(self._lines)

    def up(self) -> None:
        """Listen, always on the same port."""
        self._do(self._up())

    def down(self) -> None:
        """Refuse new connections and cut those there are."""
        self._do(self._down())

    def _do(self, act: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(act, self._loop).result(_WAIT_SECONDS)

    # From here on the proxy's own thread.

    async def _up(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _down(self) -> None:
        if self._server is not None:
            self._server.close()
        lines = list(self._lines)
        for line in lines:
            line.cancel()
        if lines:
            await asyncio.wait(lines)

    def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        self.accepted += 1
        task = self._loop.create_task(_Line(self, reader, writer).serve(self._far))
        self._lines.add(task)
        task.add_done_callback(self._lines.discard)


async def _connect(far: int | str) -> tuple[StreamReader, StreamWriter]:
    if isinstance(far, str):
        return await asyncio.open_unix_connection(far)
    return await asyncio.open_connection("127.0.0.1", far)


class _Line:
    """One connection through the proxy."""

    def __init__(self, proxy: ToxicProxy, reader: StreamReader, writer: StreamWriter) -> None:
        self._proxy = proxy
        self._reader = reader
        self._writer = writer

    async def serve(self, far: int | str) -> None:
        """Pass both directions on until one side has ended, or the toxic ends it."""
        far_writer: StreamWriter | None = None
        try:
            with suppress(OSError):
                request = await self._reader.read(_PIECE)
                if not request or self._proxy.toxic.at == 0:
                    await self._end(self._proxy.toxic)
                    return
                far_reader, far_writer = await _connect(far)
                far_writer.write(request)
                await self._pass_both(far_reader, far_writer)
        finally:
            for writer in (self._writer, far_writer):
                if writer is not None:
                    writer.transport.abort()

    async def _pass_both(self, far_reader: StreamReader, far_writer: StreamWriter) -> None:
        ways = {
            asyncio.ensure_future(self._ask(far_writer)),
            asyncio.ensure_future(self._answer(far_reader)),
        }
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _ask(self, far: StreamWriter) -> None:
        """Pass on what is asked until the near side has let go."""
        while data := await self._reader.read(_PIECE):
            if self._proxy.toxic.at == 0:
                return await self._end(self._proxy.toxic)
            far.write(data)
            await far.drain()
        return None

    async def _answer(self, far: StreamReader) -> None:
        toxic, received = self._proxy.toxic, bytearray()
        while data := await far.read(_PIECE):
            if toxic is not self._proxy.toxic:
                toxic, received = self._proxy.toxic, bytearray()
            received += data
            cut = toxic.cut(bytes(received), len(data))
            await self._say(data[:cut], toxic)
            if cut is not None:
                if toxic.after is not None:
                    await asyncio.to_thread(toxic.after.wait, _WAIT_SECONDS)
                # `_ask` reads the near side; it notices when that has let go.
                return await self._end(toxic, is_watched=True)
        self._writer.close()
        return None

    async def _say(self, data: bytes, toxic: Toxic) -> None:
        await asyncio.sleep(toxic.latency_seconds)
        for start in range(0, len(data), toxic.slice_bytes):
            self._writer.write(data[start : start + toxic.slice_bytes])
            await self._writer.drain()
            await asyncio.sleep(toxic.pause_seconds)

    async def _end(self, toxic: Toxic, *, is_watched: bool = False) -> None:
        if toxic.then == "reset":
            near: socket.socket = self._writer.get_extra_info("socket")
            near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
            return
        if toxic.then == "garbage":
            self._writer.write(toxic.garbage)
        if toxic.then == "half_close":
            self._writer.write_eof()
        await self._writer.drain()
        if toxic.then in {"hang", "half_close"}:
            if is_watched:
                await asyncio.get_running_loop().create_future()
            while await self._reader.read(_PIECE):
                pass
        else:
            self._writer.close()
            await self._writer.wait_closed()
