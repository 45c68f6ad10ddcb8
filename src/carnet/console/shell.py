"""What all pages share: their frame, their headers, and how one is answered.

Law 1. Every page has a twin with the same data: the path with `.json` at its end. The API answers
       both; a page adds the layout of what is drawn, which its twin has as well.
Law 2. A page runs no script but the files of this gateway, asks no other host for anything, stands
       in nobody's frame, and is kept in no cache.
Law 3. A page is shown under a name of this gateway: its `public_url`, its domain, a loopback name
       or a plain address. Any other name is somebody else's, who has it lead here (DNS rebinding).
Law 4. An answer that is long is held for its reader as the API holds one: within what the readers
       of its caller, and of all, may hold (A74).
"""

from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from carnet.console.api import Api
from carnet.console.templates import Templates
from carnet.core.messages.events import PIECE_BYTES
from carnet.core.people.identity import Caller
from carnet.errors import HostUnknown
from carnet.guards.readers import Readers
from carnet.http.exchange import Endpoint, Exchange, RawHeaders, Row
from carnet.wire.grammar import json
from carnet.wire.grammar.headers import Headers

TWIN: Final = b".json"
HTML: Final = (b"content-type", b"text/html; charset=utf-8")
POLICY: Final = (
    b"default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self';"
    b" frame-ancestors 'none'"
)
# Without `same-origin` a browser would say of a form that it comes from nowhere.
GUARDED: Final[RawHeaders] = [
    (b"cache-control", b"no-store"),
    (b"content-security-policy", POLICY),
    (b"x-frame-options", b"DENY"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=(), payment=()"),
]
# What is data is no page, no script and nobody's frame either.
TWIN_HEADERS: Final = [(b"content-type", b"application/json"), *GUARDED]


class MenuItem(Struct, frozen=True, kw_only=True):
    """A page in the list at its side."""

    title: str
    path: str
    permission: str | None = None  # without which it is not listed


class OwnHosts:
    """The names that this gateway's pages are asked for under."""

    def __init__(self, *names: str) -> None:
        """Each is a host, or the URL of one."""
        self._names = {_host(name) for name in names}

    def check(self, headers: Headers) -> None:
        """Refuse a request for somebody else's name."""
        host = _host(headers.get("host") or "")
        if host not in self._names and not _is_plain(host):
            raise HostUnknown(host=host[:255])


def _host(name: str) -> str:
    """The host of an authority or a URL, without its port."""
    try:
        found = urlsplit(name if "//" in name else f"//{name}").hostname
    except ValueError:
        return ""
    return (found or "").rstrip(".").lower()


def _is_plain(host: str) -> bool:
    """Whether no name server can have it lead elsewhere: a loopback name, or an address."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


class Shell:
    """Answers with pages."""

    def __init__(
        self,
        api: Api,
        templates: Templates,
        *,
        domain: str,
        places: Iterable[MenuItem],
        hosts: OwnHosts,
        readers: Readers,
    ) -> None:
        """`domain` is ours; `places` are listed beside every page; `readers` hold its answers."""
        self.api = api
        self.templates = templates
        self.domain = domain
        self._places = tuple(places)
        self._hosts = hosts
        self._readers = readers

    def offered(self, rows: Iterable[Row], part: object) -> list[Row]:
        """The rows of a part, each asked for under a name of ours alone."""
        bound = [(row, row.endpoint.__get__(part)) for row in rows]
        return [replace(row, endpoint=self._guarded(endpoint)) for row, endpoint in bound]

    def _guarded(self, endpoint: Endpoint) -> Endpoint:
        async def guarded(exchange: Exchange, *names: Any) -> None:
            self._hosts.check(exchange.headers)
            await endpoint(exchange, *names)

        return guarded

    async def show(
        self, exchange: Exchange, caller: Caller, template: str, page: Mapping[str, Any]
    ) -> None:
        """Answer with a page, or with its twin; `page` has a `title`."""
        if exchange.path.endswith(TWIN):
            body = json.write(page)
            async with self._room(caller, body):
                await exchange.reply(200, TWIN_HEADERS, body)
            return
        frame = await self._frame(exchange, caller)
        await self.write(exchange, caller, template, {**frame, **page})

    async def write(
        self,
        exchange: Exchange,
        caller: Caller,
        template: str,
        page: Mapping[str, Any],
        *,
        status: int = 200,
        headers: RawHeaders | None = None,
    ) -> None:
        """Answer with what a template makes of a page, or with a part of one."""
        fields = [HTML, *GUARDED, *(headers or [])]
        body = self.templates.write(template, page)
        async with self._room(caller, body):
            await exchange.reply(status, fields, body)

    def _room(self, caller: Caller, body: bytes) -> AbstractAsyncContextManager[None]:
        """Room for what is held until its reader has taken it; a short answer needs none."""
        if len(body) <= PIECE_BYTES:
            return nullcontext()
        return self._readers.room(caller.actor.name, len(body))

    async def _frame(self, exchange: Exchange, caller: Caller) -> dict[str, Any]:
        session = await self.api.get(exchange, "/session")
        at = exchange.path.decode("latin-1")
        listed = [
            one for one in self._places if one.permission is None or caller.may(one.permission)
        ]
        here = max((one.path for one in listed if at.startswith(one.path)), key=len, default="")
        return {
            "domain": self.domain,
            "who": session["person"] or caller.actor.name,
            "csrf": session["csrf"] or "",
            "twin": "/console/overview.json" if at == "/console/" else f"{at}.json",
            "query": exchange.query.decode("latin-1"),
            "places": [
                {"title": one.title, "path": one.path, "is_here": one.path == here}
                for one in listed
            ],
        }


def page_row(path: str, endpoint: Endpoint, summary: str, **more: Any) -> list[Row]:
    """The rows of a page and of its twin.

    A path that ends with a name has one row for both: the name takes the end of the twin.
    """
    row = Row(
        method="GET",
        path=path,
        endpoint=endpoint,
        summary=summary,
        media="text/html",
        is_page=True,
        **more,
    )
    if path.endswith("}"):
        return [row]
    twin = "/console/overview.json" if path == "/console/" else f"{path}.json"
    return [row, replace(row, path=twin, media=None, answer="Page")]


def action_row(method: str, path: str, endpoint: Endpoint, summary: str, **more: Any) -> Row:
    """The row of something that a page does, or of a part of one."""
    return Row(method=method, path=path, endpoint=endpoint, summary=summary, is_page=True, **more)


async def lead(exchange: Exchange, path: str) -> None:
    """Answer what a page has done by having the browser go to a page of ours."""
    await exchange.reply(204, [*GUARDED, (b"hx-redirect", path.encode())], b"")


def without_twin(exchange: Exchange, name: str) -> str:
    """The last name of a path, without what asks for the twin."""
    if exchange.path.endswith(TWIN):
        return name.removesuffix(TWIN.decode())
    return name
