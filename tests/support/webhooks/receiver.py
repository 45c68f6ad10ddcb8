"""Receivers of webhooks, in a process of their own: well, slow, broken, gone, and worse.

    python -m tests.support.webhooks.receiver FILE NAME[=PORT]...

Each name is a behaviour and gets a port of its own, which is printed as one line of JSON. What is
received is written to FILE, one JSON object a line. This is bytes on sockets: it shares no code
with what it receives from.
"""

import asyncio
import gzip
import json
import socket
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

Reply = Callable[["Received"], Awaitable[None]]
OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"


def empty(status: int, *fields: str) -> bytes:
    """An answer without a body."""
    lines = [f"HTTP/1.1 {status} Word", "content-length: 0", "connection: close", *fields]
    return "\r\n".join([*lines, "", ""]).encode()


class Received:
    """One request, and the way back."""

    def __init__(self, receiver: "Receiver", writer: asyncio.StreamWriter, number: int) -> None:
        self.receiver = receiver
        self.number = number  # of those that this receiver received, from one
        self._writer = writer

    async def say(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


async def well(received: Received) -> None:
    await received.say(OK)


async def slow(received: Received) -> None:
    await asyncio.sleep(1.0)
    await received.say(OK)


async def hanging(received: Received) -> None:
    """Takes the first one and never answers it."""
    if received.number == 1:
        await asyncio.sleep(3600)
    await received.say(OK)


async def broken(received: Received) -> None:
    await received.say(empty(500) if received.number <= 2 else OK)


async def failing(received: Received) -> None:
    await received.say(empty(500))


async def busy(received: Received) -> None:
    await received.say(empty(429, "retry-after: 2") if received.number == 1 else OK)


async def gone(received: Received) -> None:
    await received.say(empty(410))


async def moved(received: Received) -> None:
    port = received.receiver.ports["well"]
    await received.say(empty(302, f"location: http://127.0.0.1:{port}/moved"))


async def endless(received: Received) -> None:
    await received.say(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    while True:
        await received.say(b"10000\r\n" + bytes(65536) + b"\r\n")


async def zipped(received: Received) -> None:
    """Answers as a server behind a proxy does that compresses whatever it sends."""
    body = gzip.compress(b"ok")
    head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\ncontent-encoding: gzip\r\n\r\n"
    await received.say(head.encode() + body)


async def dripping(received: Received) -> None:
    await received.say(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n")
    while True:
        await received.say(b"x")
        await asyncio.sleep(0.2)


BEHAVIOURS: dict[str, Reply] = {
    "well": well,
    "late": well,  # the same, at a port that nobody listens on before
    "notified": well,
    "slow": slow,
    "hanging": hanging,
    "broken": broken,
    "failing": failing,
    "busy": busy,
    "gone": gone,
    "moved": moved,
    "endless": endless,
    "dripping": dripping,
    "zipped": zipped,
}


class Receiver:
    """One behaviour at one port."""

    def __init__(self, name: str, ports: dict[str, int], file: Path) -> None:
        self._name = name
        self._behave = BEHAVIOURS[name]
        self._file = file
        self._count = 0
        self.ports = ports

    def _write(self, **what: Any) -> None:
        line = {"name": self._name, "at": time.monotonic(), **what}
        with self._file.open("a") as out:
            out.write(json.dumps(line) + "\n")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._write(event="connected")
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            fields = dict(line.split(": ", 1) for line in head[1:] if line)
            body = await reader.readexactly(int(fields["content-length"]))
            method, path, _ = head[0].split(" ")
            self._count += 1
            number = self._count
            self._write(
                event="request",
                method=method,
                path=path,
                headers=fields,
                body=body.decode(),
                number=number,
            )
            answering = asyncio.ensure_future(self._behave(Received(self, writer, number)))
            leaving = asyncio.ensure_future(reader.read())
            await asyncio.wait([answering, leaving], return_when=asyncio.FIRST_COMPLETED)
            for one in (answering, leaving):
                one.cancel()
            await asyncio.gather(answering, leaving, return_exceptions=True)
            self._write(event="over", number=number)
        writer.close()


async def main() -> None:
    file, *names = sys.argv[1:]
    ports: dict[str, int] = {}
    for given in names:
        name, _, fd = given.partition("=")
        at = socket.socket(fileno=int(fd)) if fd else socket.create_server(("127.0.0.1", 0))
        receiver = Receiver(name, ports, Path(file))
        server = await asyncio.start_server(receiver.serve, sock=at)
        ports[name] = server.sockets[0].getsockname()[1]
        await server.start_serving()
    sys.stdout.write(json.dumps(ports) + "\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
