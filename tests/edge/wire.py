"""A connection on which anything can be said, and the answers that came back on it."""

import http.client
import io
import json
import select
import socket
import time
from contextlib import suppress
from typing import Any, cast

from msgspec import Struct

from tests.support.http import chat_body

PATIENCE_SECONDS = 30.0
HEAD = b"Host: a\r\n"
CHAT = b"POST /v1/chat/completions HTTP/1.1\r\nHost: a\r\ncontent-type: application/json\r\n"


class Answer(Struct, frozen=True):
    """One answer of the gateway."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def code(self) -> str:
        return str(json.loads(self.body)["code"])


class _Socket:
    """What was read, as the http.client wants it."""

    def __init__(self, data: bytes) -> None:
        self.file = io.BytesIO(data)
        self.file.close = lambda: None  # type: ignore[method-assign]  # the next answer follows

    def makefile(self, _: str) -> io.BytesIO:
        return self.file


def answers(data: bytes) -> list[Answer]:
    """Every answer in what was read, in order; the last may be cut short."""
    received, found = _Socket(data), []
    while received.file.tell() < len(data):
        response = http.client.HTTPResponse(cast(Any, received))
        response.begin()
        fields = {name.lower(): value for name, value in response.getheaders()}
        found.append(Answer(response.status, fields, response.read()))
    return found


class Wire:
    """One TCP connection to a gateway."""

    def __init__(
        self, port: int, *, receive_buffer: int | None = None, source: str = "127.0.0.1"
    ) -> None:
        self.socket = socket.socket()
        self.socket.bind((source, 0))
        if receive_buffer is not None:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(PATIENCE_SECONDS)
        self.opened = time.monotonic()  # before the gateway can know of it
        self.socket.connect(("127.0.0.1", port))

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    @property
    def age(self) -> float:
        return time.monotonic() - self.opened

    def send(self, data: bytes) -> None:
        """Send it, or as much of it as the other side takes before it hangs up."""
        with suppress(ConnectionError):
            self.socket.sendall(data)

    def shut(self) -> None:
        """Hang up, also on whoever reads in another thread."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)

    def read_to_end(self) -> bytes:
        """Everything until the other side closes; fails if it does not."""
        parts = []
        with suppress(ConnectionResetError):
            while part := self.socket.recv(65_536):
                parts.append(part)
        return b"".join(parts)

    def read_until(self, end: bytes) -> bytes:
        """Everything up to the first piece that ends so."""
        data = b""
        while not data.endswith(end):
            part = self.socket.recv(65_536)
            assert part, data
            data += part
        return data

    def drip(self, piece: bytes, *, every: float = 0.1) -> bytes:
        """Send a piece now and then until the other side says or does something; read that."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            if select.select([self.socket], [], [], every)[0]:
                return self.read_to_end()
            self.send(piece)
        raise AssertionError("nobody stopped it")

    def flood(self, piece: bytes, most_bytes: int) -> bytes:
        """Send as fast as it goes until the other side answers; read that."""
        sent = 0
        self.socket.setblocking(False)  # noqa: FBT003  the name of the method is the sentence
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline and sent < most_bytes:
            readable, writable, _ = select.select([self.socket], [self.socket], [], 1.0)
            if readable:
                self.socket.settimeout(PATIENCE_SECONDS)
                return self.read_to_end()
            if writable:
                with suppress(ConnectionError, BlockingIOError):
                    sent += self.socket.send(piece)
        raise AssertionError(f"it took {sent} bytes")


def say(port: int, data: bytes, *, source: str = "127.0.0.1") -> list[Answer]:
    """Send something on a new connection and read until it is closed."""
    with Wire(port, source=source) as wire:
        wire.send(data)
        return answers(wire.read_to_end())


def chat(token: str, body: bytes, *fields: bytes) -> bytes:
    """A well-formed chat request."""
    lines = [b"authorization: Bearer " + token.encode(), b"content-length: %d" % len(body)]
    return CHAT + b"\r\n".join([*lines, *fields, b"", body])


def ask(token: str, text: str, model: str = "echo", **more: Any) -> bytes:
    """A well-formed chat request that asks for a text."""
    return chat(token, chat_body(text, model, **more))
