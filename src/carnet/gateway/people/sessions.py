"""Signing in and out: the endpoints about sessions.

Law 1. Who signs in has a token of hers, or a link that the operator had made. A link that is
       opened shows a page, and signs in when its button is pressed: what looks a link up for
       somebody does not use it up.
Law 2. Whoever fails too often from one address is told nothing more for a while; who has a good
       token or code comes in from everywhere (B53).
Law 3. Everybody sees and ends her own sessions, and nobody's else.
"""

import re
from collections.abc import Awaitable, Collection
from typing import Any, Final

from carnet.core.people.identity import Caller, Secret
from carnet.core.people.session import PersonSession
from carnet.errors import (
    CrossSite,
    InvalidRequest,
    Malformed,
    PersonRequired,
    SessionInvalid,
    SessionNotFound,
    SignInCodeInvalid,
    TokenInvalid,
    TokenMissing,
    TooManyFailures,
)
from carnet.gateway.people.forms import Page, session_page
from carnet.guards.caller.failures import Failures
from carnet.guards.caller.session import SessionCookie
from carnet.http.exchange import Access, Exchange, Row, check_json_body, reply_json
from carnet.ports.trust.people import People
from carnet.ports.trust.sessions import PersonSessions
from carnet.ports.trust.trust import NumberedTokens
from carnet.ports.world.clock import Clock
from carnet.wire.grammar import json
from carnet.wire.grammar.query import is_number, read_query, read_word

MOST_BYTES: Final = 4096  # of what signs in
MOST_DEVICE: Final = 120  # characters of what a browser calls itself
AFTER: Final = b"/console/"  # where a browser goes that has signed in

_CODE: Final = re.compile(r"[A-Za-z0-9_.=-]{1,200}", re.ASCII)
_FORM: Final = "application/x-www-form-urlencoded"
_PAGE: Final = """<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Sign in</title></head>
<body>
<h1>Sign in</h1>
<p>This link is good once. Press the button only if you asked for it.</p>
<form method="post" action="/sign-in">
<input type="hidden" name="code" value="{code}">
<button autofocus>Sign in</button>
</form>
</body>
</html>
"""
# Without `same-origin` a browser would say of the form that it comes from nowhere.
_OF_PAGE: Final = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (
        b"content-security-policy",
        b"default-src 'none'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    ),
)


class SessionPages:
    """Signing in and out of one gateway."""

    def __init__(
        self,
        sessions: PersonSessions,
        tokens: NumberedTokens,
        people: People,
        *,
        access: Access,
        cookie: SessionCookie,
        failures: Failures,
        clock: Clock,
    ) -> None:
        """`access` knows who shows a token; `failures` counts attempts that fail, by address."""
        self._sessions = sessions
        self._tokens = tokens
        self._people = people
        self._access = access
        self._cookie = cookie
        self._failures = failures
        self._clock = clock

    # ------------------------------------------------------------------ in

    async def open(self, exchange: Exchange) -> None:
        """GET /sign-in?code=...: the page that a link leads to; it looks at nothing."""
        query = read_query(exchange.query.decode("latin-1"))
        code = read_word(query, "code")
        if code is None or _CODE.fullmatch(code) is None:
            raise SignInCodeInvalid("it is not in its form")
        await exchange.reply(200, list(_OF_PAGE), _PAGE.format(code=code).encode())

    async def send(self, exchange: Exchange) -> None:
        """POST /sign-in: what that page sends. A browser goes on signed in."""
        device = _device(exchange)
        session, secret = await self._counted(exchange, self._by_form(exchange, device))
        fields = [self._given(session, secret), (b"location", AFTER), _OF_PAGE[1]]
        await exchange.reply(303, fields, b"")

    async def begin(self, exchange: Exchange) -> None:
        """POST /session: by the token that is shown, or by a code."""
        device = _device(exchange)
        session, secret = await self._counted(exchange, self._by_any(exchange, device))
        page = self._page(session, session.n)
        fields = [(b"content-type", b"application/json"), _OF_PAGE[1]]
        await exchange.reply(201, [*fields, self._given(session, secret)], json.write(page))

    async def _counted(
        self, exchange: Exchange, attempt: Awaitable[tuple[PersonSession, Secret]]
    ) -> tuple[PersonSession, Secret]:
        address = exchange.client[0] if exchange.client is not None else "unknown"
        try:
            return await attempt
        except (Malformed, CrossSite, SignInCodeInvalid, TokenInvalid, TokenMissing) as error:
            try:
                self._failures.note(address, self._clock.monotonic())
            except TooManyFailures as too_many:
                raise too_many from None
            raise error from None

    async def _by_form(self, exchange: Exchange, device: str) -> tuple[PersonSession, Secret]:
        self._check_page(exchange)
        kind = (exchange.headers.get("content-type") or "").partition(";")[0].strip().lower()
        if kind != _FORM:
            raise InvalidRequest("content-type", f"must be {_FORM}")
        form = read_query((await exchange.read(MOST_BYTES)).decode("latin-1"))
        return await self._by_code(read_word(form, "code"), device)

    async def _by_any(self, exchange: Exchange, device: str) -> tuple[PersonSession, Secret]:
        self._check_page(exchange)
        headers, body = exchange.headers, await exchange.read(MOST_BYTES)
        if not body:
            return await self._by_token(await self._access.check(exchange, None), device)
        check_json_body(headers)
        asked = json.read_object(body)
        if asked.keys() != {"code"}:
            raise InvalidRequest("code", "must be there, alone")
        return await self._by_code(asked["code"], device)

    def _check_page(self, exchange: Exchange) -> None:
        """Refuse what the page of another site sends: it would sign somebody in as another."""
        if not self._cookie.is_own_page(exchange.headers):
            raise CrossSite("another site's page would sign somebody in")

    async def _by_code(self, code: object, device: str) -> tuple[PersonSession, Secret]:
        if not isinstance(code, str) or _CODE.fullmatch(code) is None:
            raise InvalidRequest("code", "is not in its form")
        return await self._sessions.redeem(Secret(code), device, self._clock.wall_us())

    async def _by_token(self, caller: Caller, device: str) -> tuple[PersonSession, Secret]:
        if caller.session is not None:
            raise TokenMissing("a session makes no other, which would outlast it")
        token = None if caller.token is None else self._tokens.numbered(int(caller.token))
        if caller.person is None or token is None:
            raise PersonRequired
        return await self._sessions.begin(token, device, self._clock.wall_us())

    def _given(self, session: PersonSession, secret: Secret) -> tuple[bytes, bytes]:
        seconds = (session.last - self._clock.wall_us()) // 1_000_000
        return self._cookie.write(secret, max(0, seconds))

    # ------------------------------------------------------------------ within

    async def show(self, exchange: Exchange, caller: Caller) -> None:
        """GET /session: who asks, and what a page of ours has to show with a change."""
        page = {"person": self._name(caller.person), "session": None, "csrf": None}
        if caller.session is not None:
            found = await self._sessions.list(_person(caller), self._clock.wall_us())
            page = next((self._page(one, one.n) for one in found if one.n == caller.session), page)
        await reply_json(exchange, page | {"may": sorted(caller.scopes)})

    async def list(self, exchange: Exchange, caller: Caller) -> None:
        """GET /sessions: those of whoever asks."""
        found = await self._sessions.list(_person(caller), self._clock.wall_us())
        shown = [session_page(one, self._token(one), caller.session) for one in found]
        await reply_json(exchange, {"sessions": shown})

    # ------------------------------------------------------------------ out

    async def leave(self, exchange: Exchange, caller: Caller) -> None:
        """DELETE /session: sign out."""
        if caller.session is None:
            raise SessionInvalid("a token is shown, and no session")
        await self._sessions.end(caller.session, self._clock.wall_us())
        await self._left(exchange, [caller.session], caller)

    async def end(self, exchange: Exchange, caller: Caller, name: str) -> None:
        """DELETE /sessions/{session}: end one of one's own."""
        person, now = _person(caller), self._clock.wall_us()
        if not is_number(name) or not await self._sessions.end(int(name), now, person=person):
            raise SessionNotFound
        await self._left(exchange, [int(name)], caller)

    async def end_all(self, exchange: Exchange, caller: Caller) -> None:
        """DELETE /sessions: all of one's own, the one that asks too, and unused links."""
        person, now = _person(caller), self._clock.wall_us()
        found = await self._sessions.list(person, now)
        await self._sessions.end_all(person, now)
        await self._left(exchange, [one.n for one in found], caller)

    async def _left(self, exchange: Exchange, ended: Collection[int], caller: Caller) -> None:
        fields = [(b"content-type", b"application/json"), _OF_PAGE[1]]
        if caller.session in ended:
            fields.append(self._cookie.write(None))
        await exchange.reply(200, fields, json.write({"ended": sorted(ended)}))

    # ------------------------------------------------------------------ pages

    def _page(self, session: PersonSession, current: int) -> Page:
        return {
            "person": self._name(session.person),
            "session": session_page(session, self._token(session), current),
            "csrf": self._sessions.csrf(session),
        }

    def _name(self, person: int | None) -> str | None:
        found = None if person is None else self._people.numbered(person)
        return None if found is None else found.name

    def _token(self, session: PersonSession) -> str | None:
        token = self._tokens.numbered(session.token)
        return None if token is None else token.name


def _person(caller: Caller) -> int:
    if caller.person is None:
        raise PersonRequired
    return caller.person


def _device(exchange: Exchange) -> str:
    """What a browser calls itself, as far as it can be shown."""
    named = exchange.headers.get_all("user-agent")[:1]
    return "".join(each for each in "".join(named) if " " <= each <= "~")[:MOST_DEVICE]


# What `POST /session` takes, as /openapi.json shows it.
SCHEMAS: Final[dict[str, Any]] = {
    "SignIn": {
        "type": "object",
        "additionalProperties": False,
        "properties": {"code": {"type": "string", "description": "Of a link; else show a token"}},
    },
}

ROUTES: Final = (
    Row(
        method="GET",
        path="/sign-in",
        endpoint=SessionPages.open,
        auth="open",
        summary="The page that a link to sign in with leads to",
        query=("code",),
        media="text/html",
    ),
    Row(
        method="POST",
        path="/sign-in",
        endpoint=SessionPages.send,
        auth="open",
        summary="What that page sends; a browser goes on signed in",
        status=303,
    ),
    Row(
        method="POST",
        path="/session",
        endpoint=SessionPages.begin,
        auth="open",
        summary="Sign in, by the token that is shown or by the code of a link",
        body="SignIn",
        answer="Page",
        status=201,
    ),
    Row(
        method="GET",
        path="/session",
        endpoint=SessionPages.show,
        summary="Who asks, and the csrf token of the session",
        answer="Page",
    ),
    Row(
        method="DELETE",
        path="/session",
        endpoint=SessionPages.leave,
        summary="Sign out",
        answer="Page",
    ),
    Row(
        method="GET",
        path="/sessions",
        endpoint=SessionPages.list,
        summary="One's own sessions",
        answer="Page",
    ),
    Row(
        method="DELETE",
        path="/sessions",
        endpoint=SessionPages.end_all,
        summary="End all of one's own sessions, and unused links",
        answer="Page",
    ),
    Row(
        method="DELETE",
        path="/sessions/{session}",
        endpoint=SessionPages.end,
        summary="End one of one's own sessions",
        answer="Page",
    ),
)
