"""One HTTP request and its answer, over plain ASGI.

Here is also the table of routes: rooms offer rows, and one of them answers a request, for whoever
may ask.

Law 1. A body is read whole and bounded before anything is done with it.
Law 2. An answer starts once. After that a fault ends the connection; it never writes a second one.
Law 3. A token that is not known is looked for once more in the store: it may have been made a
       moment ago, by a command.
Law 4. Paths are matched as they were sent; an encoded slash is not a slash.
Law 5. A path without names is found by one look-up; patterns are tried for the others alone.
Law 6. A row that asks for a token is reached with one: the router has checked it, and hands over
       the caller before the names of the path.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from msgspec.structs import replace

from carnet.core.messages.events import PIECE_BYTES
from carnet.core.people.identity import Caller, Secret
from carnet.errors import (
    BodyTooLarge,
    EncodingUnsupported,
    InvalidRequest,
    MediaTypeUnsupported,
    MethodNotAllowed,
    PermissionMissing,
    RouteNotFound,
    TokenInvalid,
)
from carnet.guards.caller.authentication import authenticate, caller_of
from carnet.http.link import LINE, Line
from carnet.ports.trust.trust import Tokens
from carnet.ports.world.clock import Clock
from carnet.ports.world.records import READER
from carnet.wire.dialects.route import Route
from carnet.wire.grammar import json
from carnet.wire.grammar.headers import Headers

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
RawHeaders = list[tuple[bytes, bytes]]


NO_HEADERS: Final = Headers(())  # of a request that is being answered


Check = Callable[[], Awaitable[None]]  # raises what the head is refused with


class Disconnected(Exception):
    """The client went away."""


class Exchange:
    """What an endpoint is given."""

    __slots__ = (
        "_receive",
        "_send",
        "client",
        "has_cookie",
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
        self.has_cookie = False
        for name, _ in scope["headers"]:  # no call: few requests have one
            if name == b"cookie":
                self.has_cookie = True
        self.started = False
        self.status = 0
        self.line: Line = scope[LINE]
        self._receive = receive
        self._send = send

    async def read(self, max_bytes: int, check: Check | None = None) -> bytes:
        """The whole body.

        `check` judges the head before a body is waited for, and when it is large. Where it refuses,
        the answer leaves at once, and the server drops what is still to come.
        """
        body = self.line.take_body()
        if check is not None and (body is None or self.line.held):
            await check()
        if body is None:
            return await self._wait_for(max_bytes, check)
        if len(body) > max_bytes:
            raise BodyTooLarge(limit=max_bytes)
        return body

    async def _wait_for(self, max_bytes: int, check: Check | None) -> bytes:
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
            if check is not None and self.line.held:  # it has grown large on its way
                await check()
                check = None
            if not message.get("more_body"):
                return b"".join(parts)

    async def start(self, status: int, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Begin the answer; the head of the request has been read, and is held no longer."""
        self.started = True
        self.status = status
        self.headers = NO_HEADERS
        fields = list(headers)
        if not self.line.forget_head():  # the server says so, in a field of its own
            fields = [field for field in fields if field[0] != b"connection"]
        await self._send({"type": "http.response.start", "status": status, "headers": fields})

    async def write(self, data: bytes, *, more: bool = True) -> None:
        """Go on with the answer, or end it."""
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def reply(self, status: int, headers: RawHeaders, body: bytes) -> None:
        """Answer at once."""
        headers = [*headers, (b"content-length", b"%d" % len(body))]
        is_usual = self.method != "HEAD" and not body[PIECE_BYTES:]
        if is_usual and self.line.reply(status, headers, body):
            self.started = True
            self.status = status
            return
        await self.start(status, headers)
        if self.method != "HEAD":
            # What its reader has not taken is held here, where it is counted, not by the server.
            for at in range(0, len(body), PIECE_BYTES):
                await self.write(body[at : at + PIECE_BYTES])
        await self.write(b"", more=False)


class DisconnectWatch:
    """While it is entered, a client that disconnects cancels the task that entered it."""

    __slots__ = ("_has_gone", "_line", "_task")

    def __init__(self, line: Line) -> None:
        """Of the request that the task answers."""
        self._line = line
        self._has_gone = False
        self._task: asyncio.Task[object] | None = None

    def __enter__(self) -> "DisconnectWatch":
        self._task = self._line.task or asyncio.current_task()
        self._line.listen(self._leave)
        return self

    def _leave(self) -> None:
        self._has_gone = True
        if self._task is not None:
            self._task.cancel()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Stop listening; a cancellation that came from here becomes Disconnected."""
        self._line.tell = None
        if self._has_gone:  # the cancellation has come, or is on its way
            if self._task is not None:
                self._task.uncancel()
            if kind is None or kind is asyncio.CancelledError:
                raise Disconnected from None


def check_json_body(headers: Headers, other: str = "application/json") -> None:
    """Refuse a body that is not plain JSON in UTF-8; `other` is a further name for that."""
    encoding = headers.get("content-encoding")
    if encoding is not None and encoding.lower() != "identity":
        raise EncodingUnsupported
    kind = headers.get("content-type")
    if kind == "application/json":  # what nearly every client sends
        return
    media, _, parameters = (kind or "").partition(";")
    charset = parameters.replace(" ", "").replace('"', "").lower()
    if media.strip().lower() not in {"application/json", other} or charset not in {
        "",
        "charset=utf-8",
    }:
        raise MediaTypeUnsupported


# What somebody wrote stands in it: a browser that is led there takes it for nothing but data.
_OF_JSON: Final[RawHeaders] = [
    (b"content-type", b"application/json"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
]


async def reply_json(exchange: Exchange, page: object, status: int = 200) -> None:
    """Answer with a JSON page."""
    await exchange.reply(status, _OF_JSON, json.write(page))


SEES_ALL = "admin:runs"


def read_authorization(headers: Headers) -> Secret | None:
    """The Authorization value, byte for byte."""
    value = headers.get("authorization")
    return None if value is None else Secret(value)


class Access:
    """Finds the caller of a request by its token."""

    def __init__(
        self, tokens: Tokens, clock: Clock, look_again: Callable[[], Awaitable[bool]]
    ) -> None:
        """Look tokens up here; `look_again` reads them anew and tells whether they changed."""
        self._tokens = tokens
        self.clock = clock
        self._look_again = look_again
        # Whether others have issued a credential: then whoever it is for judges it.
        self.is_foreign: Callable[[Secret], bool] = lambda _: False

    async def check_at_once(self, exchange: Exchange) -> None:
        """Refuse a token that is not known, before anything else is read."""
        authorization = read_authorization(exchange.headers)
        if authorization is not None and not self.is_foreign(authorization):
            await self.check(exchange, None)

    async def check(self, exchange: Exchange, permission: str | None) -> Caller:
        """The caller, if its token is live and holds the permission that is asked for."""
        authorization = read_authorization(exchange.headers)
        now = self.clock.wall_us()
        try:
            token = authenticate(authorization, self._tokens, now)
        except TokenInvalid:
            if not await self._look_again():
                raise
            token = authenticate(authorization, self._tokens, now)
        caller = caller_of(token)
        if permission is not None and not caller.may(permission):
            raise PermissionMissing(permission=permission)
        return caller


def reader_of(caller: Caller) -> str | None:
    """Whose records are shown: None is everybody's."""
    return None if caller.may(SEES_ALL) else caller.actor.name


Endpoint = Callable[..., Awaitable[None]]  # an exchange, then each segment that the path names

_SEGMENT: Final = rb"([A-Za-z0-9%._~!$&'()*+,;=:@-]{1,384})"
_NAME: Final = re.compile(r"\{[a-z]+\}")


class Row(Route, frozen=True, kw_only=True, eq=False):
    """A route and what answers it."""

    endpoint: Callable[..., Awaitable[None]]  # of the part that offers it: bound by `offered`


def offered(rows: Iterable[Row], part: object) -> list[Row]:
    """The rows that a part offers, each with its own endpoint."""
    return [replace(row, endpoint=row.endpoint.__get__(part)) for row in rows]


class RouteTable:
    """Finds what answers a request."""

    def __init__(self, rows: Sequence[Row], access: Access) -> None:
        """`access` checks the tokens of rows that ask for one."""
        self.routes: tuple[Route, ...] = tuple(rows)
        self._plain: dict[bytes, dict[str, Endpoint]] = {}
        named: dict[str, dict[str, Endpoint]] = {}
        for row in rows:
            endpoint = _checked(row, access) if row.auth == "token" else row.endpoint
            if "{" in row.path:
                methods = named.setdefault(row.path, {})
            else:
                methods = self._plain.setdefault(row.path.encode(), {})
            if row.method in methods:
                raise ValueError(f"two rows answer {row.method} {row.path}")
            methods[row.method] = endpoint
        # By the number of their slashes: a name holds none.
        self._named: dict[int, list[tuple[re.Pattern[bytes], dict[str, Endpoint]]]] = {}
        for path, methods in named.items():
            alike = self._named.setdefault(path.count("/"), [])
            alike.append((pattern_of(path), methods))

    def __call__(self, exchange: Exchange) -> Awaitable[None]:
        """What answers a request."""
        path = exchange.path
        if path in self._plain:
            return _choose(self._plain[path], exchange.method)(exchange)
        for pattern, methods in self._named.get(path.count(b"/"), ()):
            match = pattern.fullmatch(path)
            if match is not None:
                names = [_decode(segment) for segment in match.groups()]
                return _choose(methods, exchange.method)(exchange, *names)
        raise RouteNotFound


def pattern_of(path: str) -> re.Pattern[bytes]:
    """What matches a path; each of its names is a group."""
    return re.compile(_SEGMENT.join([re.escape(part.encode()) for part in _NAME.split(path)]))


def _checked(row: Row, access: Access) -> Endpoint:
    async def checked(exchange: Exchange, *names: str) -> None:
        caller = await access.check(exchange, row.permission)
        READER.set(caller.actor.name)
        await row.endpoint(exchange, caller, *names)

    return checked


def _choose(methods: dict[str, Endpoint], method: str) -> Endpoint:
    if method in methods:
        return methods[method]
    if "GET" not in methods:
        raise MethodNotAllowed(allow=", ".join(methods))
    if method != "HEAD":
        raise MethodNotAllowed(allow=", ".join([*methods, "HEAD"]))
    return methods["GET"]


def _decode(segment: bytes) -> str:
    try:
        text = unquote_to_bytes(segment).decode("ascii")
    except UnicodeDecodeError:
        raise InvalidRequest("path", "is not ASCII") from None
    if not text.isprintable():
        raise InvalidRequest("path", "holds control characters")
    return text
