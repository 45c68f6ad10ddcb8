"""The table of routes: rooms offer rows, and one of them answers a request.

Law 1. Paths are matched as they were sent; an encoded slash is not a slash.
Law 2. A path without names is found by one look-up; patterns are tried for the others alone.
Law 3. A row that asks for a token is reached with one: the router has checked it, and hands over
       the caller before the names of the path.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final
from urllib.parse import unquote_to_bytes

from carnet.errors import InvalidRequest, MethodNotAllowed, RouteNotFound
from carnet.http.access import Access
from carnet.http.exchange import Exchange
from carnet.wire.dialects.route import Route

Endpoint = Callable[..., Awaitable[None]]  # an exchange, then each segment that the path names

_SEGMENT: Final = rb"([A-Za-z0-9%._~!$&'()*+,;=:@-]{1,384})"
_NAME: Final = re.compile(r"\{[a-z]+\}")


class Row(Route, frozen=True, kw_only=True, eq=False):
    """A route and what answers it."""

    endpoint: Callable[..., Awaitable[None]]  # of the part that offers it: bound by `offered`


def offered(rows: Iterable[Row], part: object) -> list[Row]:
    """The rows that a part offers, each with its own endpoint."""
    return [_bound(row, row.endpoint.__get__(part)) for row in rows]


def _bound(row: Row, endpoint: Endpoint) -> Row:
    fields: dict[str, Any] = {name: getattr(row, name) for name in row.__struct_fields__}
    return Row(**{**fields, "endpoint": endpoint})


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
