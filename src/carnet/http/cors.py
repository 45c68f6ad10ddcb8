"""Pages of other origins: what a browser has to be told before it lets them read our answers.

It stands before the application, and only where the operator has named origins. It lets nobody in:
a page needs a token as any caller does, which it sends by itself, so that no cookie or other
credential of the browser is ever asked for.

Law 1. An origin is compared as a whole, byte by byte; one that is not named is told nothing.
Law 2. What the edge refuses, before there is a request that the application could see, is told as
       well, as far as its head has come.
Law 3. A preflight of a named origin is answered here, and changes nothing.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from carnet.errors import CarnetError
from carnet.http.exchange import Exchange, RawHeaders, Receive, Scope, Send
from carnet.http.link import LINE
from carnet.http.refusal import Refuse
from carnet.wire.dialects.dialect import Fields, Reply

Application = Callable[[Scope, Receive, Send], Awaitable[None]]

ANY: Final = "*"
PREFLIGHT_SECONDS: Final = 600  # that a browser may remember what it was told
_METHOD_ASKED: Final = b"access-control-request-method"
_FIELDS_ASKED: Final = b"access-control-request-headers"
_NAMES: Final = re.compile(rb"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,2048}")
_USUAL: Final = b"authorization, content-type"


class PageOrigins:
    """The pages that may read answers."""

    def __init__(self, origins: Sequence[str]) -> None:
        """`origins` are those of the pages; `*` is every page."""
        self._is_open = ANY in origins
        self._origins = frozenset(origin.encode() for origin in origins)

    def fields(self, origin: bytes | None) -> RawHeaders:
        """What an answer tells the page that asks; the first says by what caches tell it apart."""
        fields: RawHeaders = [(b"vary", b"origin")]
        if origin is not None and (self._is_open or origin in self._origins):
            allowed = ANY.encode() if self._is_open else origin
            fields.append((b"access-control-allow-origin", allowed))
            fields.append((b"access-control-expose-headers", ANY.encode()))
        return fields


class CrossOrigin:
    """Tells browsers which pages may read the answers of an application."""

    def __init__(self, app: Application, pages: PageOrigins) -> None:
        """`pages` are those that may."""
        self._app = app
        self._pages = pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or have it answered."""
        named = dict(scope["headers"])
        fields = self._pages.fields(named.get(b"origin"))
        scope[LINE].add(fields)
        if len(fields) > 1 and scope["method"] == "OPTIONS" and _METHOD_ASKED in named:
            await Exchange(scope, receive, send).reply(200, _preflight(named), b"")
        else:
            await self._app(scope, receive, send)


def _preflight(named: dict[bytes, bytes]) -> RawHeaders:
    asked = named.get(_FIELDS_ASKED, b"")
    return [
        (b"access-control-allow-methods", b"GET, HEAD, POST, PATCH, DELETE"),
        (b"access-control-allow-headers", asked if _NAMES.fullmatch(asked) else _USUAL),
        (b"access-control-max-age", b"%d" % PREFLIGHT_SECONDS),
    ]


def allowing(app: Application, origins: Sequence[str]) -> Application:
    """The application for pages of these origins; as it is, where there are none."""
    return CrossOrigin(app, PageOrigins(origins)) if origins else app


def allowing_refusals(refusing: Refuse, origins: Sequence[str]) -> Refuse:
    """The refusals of the edge for pages of these origins; as they are, where there are none."""
    if not origins:
        return refusing
    pages = PageOrigins(origins)

    def refuse(error: CarnetError, path: bytes, head: Fields) -> Reply:
        reply = refusing(error, path, head)
        return Reply(
            reply.status, [*reply.headers, *pages.fields(dict(head).get(b"origin"))], reply.body
        )

    return refuse
