"""The API of this gateway, asked in the process: what a page shows is what the API tells.

Law 1. A page asks as whoever looks at it: with the credential of its request and no other. So it
       shows what she may see, and a button does what she may do; there is no second set of rules.
Law 2. What the API refuses is raised here as it was refused there.
Law 3. An answer is taken whole and is no larger than the API makes one. A stream is asked for with
       a bound, and taken as far as that.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec
from msgspec import Struct

from carnet.errors import Internal
from carnet.http.exchange import Disconnected, Exchange, Message, RawHeaders, RouteTable
from carnet.http.link import LINE, Line
from carnet.wire.grammar import json

Query = Mapping[str, str | int]

# What says who asks, from where, and with what: an inner request carries these on.
CARRIED: Final = (b"authorization", b"host", b"origin", b"sec-fetch-site", b"user-agent")


class ApiAnswer(Struct, frozen=True):
    """What the API answered."""

    status: int
    headers: RawHeaders
    body: bytes

    @property
    def page(self) -> Any:
        """What it says, as data."""
        return msgspec.json.decode(self.body) if self.body else None


def segment(text: str) -> str:
    """A name as it stands in a path."""
    return quote(text, safe="")


class Api:
    """The routes of this gateway."""

    def __init__(self) -> None:
        self._routes: RouteTable | None = None

    def connect(self, routes: RouteTable) -> None:
        """Ask these; the pages are among them."""
        self._routes = routes

    def of(self, exchange: Exchange, headers: RawHeaders | None = None) -> "PageAsker":
        """Whoever asks for a page, until that is answered; `headers` in place of her own.

        To be taken before the answer begins: then the head of a request is held no longer.
        """
        if self._routes is None:
            raise Internal("the console asks an API that is not there yet")
        carried = [field for field in exchange.headers.raw if field[0] in CARRIED]
        return PageAsker(self._routes, exchange, carried if headers is None else headers)

    async def get(self, exchange: Exchange, path: str, query: Query | None = None) -> Any:
        """A page of the API, for whoever asks."""
        return await self.of(exchange).get(path, query)


class PageAsker:
    """Asks as somebody."""

    def __init__(self, routes: RouteTable, exchange: Exchange, headers: RawHeaders) -> None:
        """`exchange` says from where; what is known of her is in `headers`."""
        self._routes = routes
        self._client = exchange.client
        self._scheme = exchange.scheme
        self._correlation = exchange.line.correlation
        self._headers = headers

    async def get(self, path: str, query: Query | None = None) -> Any:
        """A page of the API."""
        return (await self.ask("GET", path, query=query)).page

    async def ask(
        self,
        method: str,
        path: str,
        page: object = None,
        *,
        query: Query | None = None,
        headers: Mapping[str, str] | None = None,
        most_bytes: int | None = None,
        is_to_fail: bool = False,
    ) -> ApiAnswer:
        """What a request is answered; `page` is sent as JSON, `headers` beside her own.

        An answer in pieces is taken until it has `most_bytes`, and then left. A call that
        `is_to_fail` does so in the place of its agent, and says that it was made to.
        """
        body = b"" if page is None else json.write(page)
        fields = list(self._headers)
        fields += [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
        if page is not None:
            fields.append((b"content-type", b"application/json"))
        inner, line = _Inner(body, most_bytes), Line(correlation=self._correlation)
        line.is_to_fail = is_to_fail
        scope = {
            "client": self._client,
            "method": method,
            "raw_path": path.encode("ascii"),
            "query_string": urlencode(query or {}).encode("ascii"),
            "scheme": self._scheme,
            "headers": fields,
            LINE: line,
        }
        with suppress(Disconnected):
            await self._routes(Exchange(scope, inner.receive, inner.send))
        return ApiAnswer(inner.status, inner.headers, b"".join(inner.parts))


class _Inner:
    """The two ends of a request that leaves no process."""

    def __init__(self, body: bytes, most_bytes: int | None) -> None:
        self._body = body
        self._left = most_bytes
        self.status = 0
        self.headers: RawHeaders = []
        self.parts: list[bytes] = []

    async def receive(self) -> Message:
        body, self._body = self._body, b""
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = list(message["headers"])
            return
        part: bytes = message["body"]
        if self._left is not None:
            part, self._left = part[: self._left], self._left - len(part)
        self.parts.append(part)
        if self._left is not None and self._left < 0:
            raise Disconnected
