"""One HTTP request and its answer, over plain ASGI.

Law 1. A body is read whole and bounded before anything is done with it.
Law 2. An answer starts once. After that a fault ends the connection; it never writes a second one.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from types import TracebackType
from typing import Any, Final

from carnet.errors import BodyTooLarge, EncodingUnsupported, MediaTypeUnsupported
from carnet.http.link import LINE, Line
from carnet.wire.grammar import json
from carnet.wire.grammar.headers import Headers

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
RawHeaders = list[tuple[bytes, bytes]]


NO_HEADERS: Final = Headers(())  # of a request that is being answered


class Disconnected(Exception):
    """The client went away."""


class Exchange:
    """What an endpoint is given."""

    __slots__ = (
        "_receive",
        "_send",
        "client",
        "headers",
        "line",
        "method",
        "path",
        "query",
        "scheme",
        "started",
        "status",
    )

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Wrap what the server hands over; nothing is read yet."""
        self.client: tuple[str, int] | None = scope["client"]
        self.method: str = scope["method"]
        self.path: bytes = scope["raw_path"]
        self.query: bytes = scope["query_string"]
        self.scheme: str = scope["scheme"]
        self.headers = Headers(scope["headers"])
        self.started = False
        self.status = 0
        self.line: Line = scope[LINE]
        self._receive = receive
        self._send = send

    async def read(self, max_bytes: int) -> bytes:
        """The whole body."""
        body = self.line.take_body()
        if body is None:
            return await self._wait_for(max_bytes)
        if len(body) > max_bytes:
            raise BodyTooLarge(limit=max_bytes)
        return body

    async def _wait_for(self, max_bytes: int) -> bytes:
        length = self.headers.read_count("content-length")
        if length is not None and length > max_bytes:
            raise BodyTooLarge(limit=max_bytes)
        parts: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > max_bytes:
                raise BodyTooLarge(limit=max_bytes)
            if not message.get("more_body"):
                return b"".join(parts)

    async def start(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Begin the answer; the head of the request has been read, and is held no longer."""
        self.started = True
        self.status = status
        self.headers = NO_HEADERS
        self.line.forget_head()
        await self._send(
            {"type": "http.response.start", "status": status, "headers": list(headers)}
        )

    async def write(self, data: bytes, *, more: bool = True) -> None:
        """Go on with the answer, or end it."""
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def reply(self, status: int, headers: RawHeaders, body: bytes) -> None:
        """Answer at once."""
        headers = [*headers, (b"content-length", b"%d" % len(body))]
        if self.method != "HEAD" and self.line.reply(status, headers, body):
            self.started = True
            self.status = status
            return
        await self.start(status, headers)
        await self.write(b"" if self.method == "HEAD" else body, more=False)


class DisconnectWatch:
    """While it is entered, a client that disconnects cancels the task that entered it."""

    __slots__ = ("_has_gone", "_line", "_task")

    def __init__(self, line: Line) -> None:
        """Of the request that the task answers."""
        self._line = line
        self._has_gone = False
        self._task: asyncio.Task[object] | None = None

    def __enter__(self) -> "DisconnectWatch":
        """Listen for it."""
        self._task = self._line.task or asyncio.current_task()
        self._line.listen(self._leave)
        return self

    def _leave(self) -> None:
        self._has_gone = True
        if self._task is not None:
            self._task.cancel()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Stop listening; a cancellation that came from here becomes Disconnected."""
        self._line.tell = None
        if self._has_gone:  # the cancellation has come, or is on its way
            if self._task is not None:
                self._task.uncancel()
            if kind is None or kind is asyncio.CancelledError:
                raise Disconnected from None


def check_json_body(headers: Headers) -> None:
    """Refuse a body that is not plain JSON in UTF-8."""
    encoding = headers.get("content-encoding")
    if encoding is not None and encoding.lower() != "identity":
        raise EncodingUnsupported
    kind = headers.get("content-type")
    if kind == "application/json":  # what nearly every client sends
        return
    media, _, parameters = (kind or "").partition(";")
    charset = parameters.replace(" ", "").replace('"', "").lower()
    if media.strip().lower() != "application/json" or charset not in {"", "charset=utf-8"}:
        raise MediaTypeUnsupported


async def reply_json(exchange: Exchange, page: object, status: int = 200) -> None:
    """Answer with a JSON page."""
    headers = [(b"content-type", b"application/json"), (b"cache-control", b"no-store")]
    await exchange.reply(status, headers, json.write(page))
