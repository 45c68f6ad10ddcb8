"""A connection to a gateway in as few steps as can be, so that the load is the gateway's.

Requests are bytes that were made before. An answer is read to its end, or never.
"""

import asyncio
import json
import socket
from typing import Any, NamedTuple, Self

HOST = "127.0.0.1"
REFUSED = 400
SMALL_BUFFER = 4096  # of one that does not read: what the kernel takes for it


class Answer(NamedTuple):
    """What came back."""

    status: int
    fields: dict[bytes, bytes]
    body: bytes

    @property
    def code(self) -> str:
        """The status, with the code of a refusal."""
        if self.status < REFUSED:
            return str(self.status)
        return f"{self.status} {self.json.get('code')}"

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def request(
    method: str, path: str, token: str, body: bytes = b"", fields: dict[str, str] | None = None
) -> bytes:
    """The bytes of a request."""
    lines = [
        f"{method} {path} HTTP/1.1",
        "host: a",
        f"authorization: Bearer {token}",
        *(f"{name}: {value}" for name, value in (fields or {}).items()),
    ]
    if method == "POST":
        lines += ["content-type: application/json", f"content-length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


def chat(text: str, model: str, **more: Any) -> bytes:
    """The body of a chat completion, or of a task."""
    return json.dumps(
        {"model": model, "messages": [{"role": "user", "content": text}], **more}
    ).encode()


class Line:
    """One connection; several requests after one another."""

    def __init__(self, port: int, *, deaf: bool = False) -> None:
        """One that is `deaf` never reads, and has little room for what is said to it."""
        self._port = port
        self._deaf = deaf

    async def __aenter__(self) -> Self:
        line = socket.socket()
        if self._deaf:
            line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
        line.setblocking(False)  # noqa: FBT003  the name of the method is the sentence
        try:
            await asyncio.get_running_loop().sock_connect(line, (HOST, self._port))
        except BaseException:
            line.close()
            raise
        limit = SMALL_BUFFER if self._deaf else 1 << 20
        self._reader, self._writer = await asyncio.open_connection(sock=line, limit=limit)
        if self._deaf:
            self._writer.transport.pause_reading()  # type: ignore[attr-defined]  # of a socket
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.transport.abort()

    async def send(self, data: bytes) -> None:
        """Send it all, as fast as it is taken."""
        self._writer.write(data)
        await self._writer.drain()

    async def ask(self, data: bytes) -> Answer:
        """Send it, and read the whole answer."""
        await self.send(data)
        head = (await self._reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        fields = dict(line.split(b": ", 1) for line in head[1:] if line)
        status = int(head[0].split(b" ")[1])
        if b"content-length" in fields:
            body = await self._reader.readexactly(int(fields[b"content-length"]))
        else:
            body = await self._chunks()
        return Answer(status, fields, body)

    async def _chunks(self) -> bytes:
        parts = []
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            parts.append((await self._reader.readexactly(size + 2))[:-2])
        await self._reader.readexactly(2)
        return b"".join(parts)
