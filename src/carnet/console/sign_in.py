"""Signing in and out by the pages: what `POST /session` and `DELETE /session` do, for a form.

Law 1. Who has signed in goes on to the page that she had asked for, by its path alone and only
       below `/console/`: nobody is sent to another host.
Law 2. Signing in gives a new session, whatever cookie a browser brought.
"""

import re
from typing import Final
from urllib.parse import urlsplit

from carnet.console.shell import GUARDED, Shell, action_row
from carnet.core.people.identity import Caller
from carnet.errors import InvalidRequest, RouteNotFound
from carnet.http.exchange import Exchange, RawHeaders
from carnet.wire.grammar.headers import Headers
from carnet.wire.grammar.query import read_query

HOME: Final = "/console/"
MOST_BYTES: Final = 4096
_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,1024}", re.ASCII)
_PATH: Final = re.compile(r"/console/[A-Za-z0-9%._~!$&'()*+,;=:@/-]{0,512}", re.ASCII)
_OF_BROWSER: Final = frozenset({b"host", b"origin", b"sec-fetch-site", b"user-agent"})


class SignInPages:
    """The forms."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    async def root(self, exchange: Exchange) -> None:
        """GET /: a browser is led to the console; there is nothing else here."""
        if "text/html" not in (exchange.headers.get("accept") or ""):
            raise RouteNotFound
        await _lead(exchange, HOME)

    async def bare(self, exchange: Exchange) -> None:
        """GET /console."""
        await _lead(exchange, HOME)

    async def enter(self, exchange: Exchange) -> None:
        """POST /console/sign-in: by a token."""
        headers = exchange.headers
        to = _back(headers)
        browser = [field for field in headers.raw if field[0] in _OF_BROWSER]
        form = read_query((await exchange.read(MOST_BYTES)).decode("latin-1"))
        token = form.get("token", [""])[0].strip()
        if _TOKEN.fullmatch(token) is None:
            raise InvalidRequest("token", "is not in its form")
        shown = (b"authorization", f"Bearer {token}".encode())
        answer = await self._shell.api.of(exchange, [*browser, shown]).ask("POST", "/session")
        await _lead(exchange, to, _cookies(answer.headers))

    async def leave(self, exchange: Exchange, caller: Caller) -> None:
        """POST /console/sign-out."""
        del caller
        answer = await self._shell.api.of(exchange).ask("DELETE", "/session")
        headers = [*GUARDED, *_cookies(answer.headers), (b"hx-redirect", HOME.encode())]
        await exchange.reply(204, headers, b"")


async def _lead(exchange: Exchange, path: str, headers: RawHeaders | None = None) -> None:
    await exchange.reply(303, [*GUARDED, *(headers or []), (b"location", path.encode())], b"")


def _cookies(headers: RawHeaders) -> RawHeaders:
    return [field for field in headers if field[0] == b"set-cookie"]


def _back(headers: Headers) -> str:
    """The page that showed the form, as far as it is one of the console."""
    came = headers.get_all("referer")[:1]
    try:
        path = urlsplit(came[0]).path if came else HOME
    except ValueError:
        return HOME
    is_ours = _PATH.fullmatch(path) is not None and not path.startswith("/console/sign-")
    # A browser takes an encoded dot of a path for a dot.
    is_plain = "//" not in path and "/." not in path and "/%2e" not in path.lower()
    return path if is_ours and is_plain else HOME


ROUTES: Final = (
    action_row("GET", "/", SignInPages.root, "Leads a browser to the console", auth="open"),
    action_row("GET", "/console", SignInPages.bare, "Leads to the console", auth="open"),
    action_row("POST", "/console/sign-in", SignInPages.enter, "Sign in by a token", auth="open"),
    action_row("POST", "/console/sign-out", SignInPages.leave, "Sign out"),
)
