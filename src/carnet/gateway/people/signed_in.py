"""Requests of browsers: the cookie of whoever has signed in becomes a credential like any other.

Law 1. What lies behind sees a token, lent for the length of the request: it need not know that
       there are sessions. The cookie itself goes no further.
Law 2. A cookie that is no good is nobody's, and so matters only where somebody has to be known.
"""

from collections.abc import Awaitable, Callable

from carnet.core.people.session import PersonSession
from carnet.errors import CarnetError, TokenMissing
from carnet.guards.caller.session import SignedIn
from carnet.http.exchange import Exchange
from carnet.ports.trust.sessions import PersonSessions
from carnet.ports.trust.trust import Lender
from carnet.wire.grammar.headers import Headers

Dispatch = Callable[[Exchange], Awaitable[None]]


class CookieRequests:
    """Has requests with a cookie answered."""

    def __init__(self, signed_in: SignedIn, sessions: PersonSessions, tokens: Lender) -> None:
        """`tokens` lends what stands for those of the sessions."""
        self._signed_in = signed_in
        self._sessions = sessions
        self._tokens = tokens

    async def __call__(self, exchange: Exchange, dispatch: Dispatch) -> None:
        """Answer one, as whoever has signed in."""
        headers = exchange.headers
        if headers.has(b"authorization") or headers.has(b"signature-input"):
            await dispatch(exchange)
            return
        try:
            session = await self._signed_in.find(exchange.method, headers)
        except CarnetError as refusal:
            await _as_nobody(exchange, dispatch, refusal)
            return
        if session is None:
            await dispatch(exchange)
        else:
            await self._as_her(exchange, dispatch, session)

    async def _as_her(self, exchange: Exchange, dispatch: Dispatch, session: PersonSession) -> None:
        watched = self._sessions.watched(session.n)
        with watched, self._tokens.lent(session.token, session.n) as lent:
            others = [field for field in exchange.headers.raw if field[0] != b"cookie"]
            shown = f"Bearer {lent.reveal()}".encode()
            exchange.headers = Headers([*others, (b"authorization", shown)])
            await dispatch(exchange)


async def _as_nobody(exchange: Exchange, dispatch: Dispatch, refusal: CarnetError) -> None:
    try:
        await dispatch(exchange)
    except TokenMissing:
        raise refusal from None
