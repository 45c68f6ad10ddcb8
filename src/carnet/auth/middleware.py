"""Auth on the path: whoever comes through is known, and what lies behind is told who it is.

Law 1. Every request is judged, whatever its path: there is no way around.
Law 2. What lies behind learns who acts and what that one may do, and nothing of how it was proved.
       The bearer of a turn alone is handed on: calls out of that turn are made with it.
Law 3. A refusal is told in the words of what lies behind, which it is given.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from msgspec import Struct

from carnet.auth.credential import read_credential, without_credentials, without_identity
from carnet.core.memo import Memo
from carnet.core.messages.interrupt import Resolution
from carnet.core.people.identity import Ceiling, Secret
from carnet.errors import (
    CarnetError,
    PermissionMissing,
    SessionInvalid,
    TokenInvalid,
    TokenMissing,
    TooManyFailures,
)
from carnet.guards.caller.authentication import authenticate, bearer
from carnet.guards.caller.failures import Failures
from carnet.guards.caller.session import SignedIn
from carnet.guards.caller.turn_bearer import TurnBearers
from carnet.http.cors import Application
from carnet.http.exchange import Exchange, Receive, Scope, Send
from carnet.http.refusal import Refuse
from carnet.ports.trust.people import People
from carnet.ports.trust.trust import Lender, Tokens
from carnet.ports.world.clock import Clock
from carnet.wire.dialects.engine_chat.actor import EngineActor, write_actor
from carnet.wire.dialects.engine_chat.bearer import (
    TurnBearer,
    is_bearer,
    write_resolved,
    write_shown,
)
from carnet.wire.grammar.headers import Headers

logger = logging.getLogger("carnet.auth")

ENGINE: Final = "admin:engine"  # what a token must hold to ask a loop directly
MOST_BEARERS: Final = 65_536  # that were used, and are remembered


class KnownActor(Struct, frozen=True):
    """Who acts, and what was answered in the turn that is asked for."""

    actor: EngineActor
    resolved: Mapping[str, Resolution] = {}
    bearer: Secret | None = None  # of the turn, where it was asked with one


class Verify(Protocol):
    """Finds who a credential stands for."""

    async def __call__(self, credential: Secret, /) -> KnownActor:
        """Who acts; TokenInvalid for a credential that is nobody's."""


class BearerVerifier:
    """Knows the bearers of turns by the keys of their gateway, and leaves the rest to another.

    Each is for one request: whoever has seen one cannot have done again what was approved in it.
    """

    def __init__(self, bearers: TurnBearers, *, others: Verify) -> None:
        """`others` knows all other credentials."""
        self._bearers = bearers
        self._others = others
        self._used: Memo[str, None] = Memo(MOST_BEARERS)  # the ids of bearers

    async def __call__(self, credential: Secret, /) -> KnownActor:
        """Whom a gateway acts for in one turn."""
        shown = bearer(credential)
        if shown is None or not is_bearer(shown.reveal()):
            return await self._others(credential)
        known = await self._bearers.verify(shown.reveal())
        self._use(known)
        return KnownActor(known.actor, known.resolved, shown)

    def _use(self, known: TurnBearer) -> None:
        """Take a bearer once; the oldest are forgotten when there are very many."""
        if known.id in self._used:
            raise TokenInvalid("the bearer of a turn was used before")
        if known.id:
            self._used.keep(known.id, None)


class TokenVerifier:
    """Knows the tokens of a store."""

    def __init__(
        self,
        tokens: Tokens,
        people: People,
        clock: Clock,
        look_again: Callable[[], Awaitable[bool]],
    ) -> None:
        """`look_again` reads tokens anew: one may have been made a moment ago."""
        self._tokens = tokens
        self._people = people
        self._clock = clock
        self._look_again = look_again

    async def __call__(self, credential: Secret, /) -> KnownActor:
        """Who holds a token, with its rights as the most that is used for it."""
        now = self._clock.wall_us()
        try:
            token = authenticate(credential, self._tokens, now)
        except TokenInvalid:
            if not await self._look_again():
                raise
            token = authenticate(credential, self._tokens, now)
        person = None if token.person is None else self._people.numbered(token.person)
        machine = f"peer:{token.peer}" if token.peer else f"service:{token.account}"
        # R25: a person by her bare name, which no name of a machine can be.
        id = machine if person is None else person.name
        actor = EngineActor(id, Ceiling(allow=token.scopes))
        if not actor.may(ENGINE):
            raise PermissionMissing(permission=ENGINE)
        return KnownActor(actor)


class SessionVerifier:
    """Knows who has signed in: whoever holds the token that her session stands for."""

    def __init__(self, signed_in: SignedIn, tokens: Lender, others: Verify) -> None:
        """`others` knows the tokens, of which `tokens` lends one for a moment."""
        self._signed_in = signed_in
        self._tokens = tokens
        self._others = others

    def is_shown(self, headers: Headers) -> bool:
        """Whether a request shows a session, of whatever kind."""
        return self._signed_in.cookie.read(headers) is not None

    async def find(self, method: str, headers: Headers) -> KnownActor | None:
        """Who acts; None where no session is shown."""
        session = await self._signed_in.find(method, headers)
        if session is None:
            return None
        with self._tokens.lent(session.token, session.n) as lent:
            return await self._others(Secret(f"Bearer {lent.reveal()}"))


class LiveVerifier:
    """Refuses a person who has ended, whatever proved her (R25)."""

    def __init__(
        self, verify: Verify, people: People, look_again: Callable[[], Awaitable[bool]]
    ) -> None:
        """`verify` finds who it is; `look_again` reads people anew: one may have come just now."""
        self._verify = verify
        self._people = people
        self._look_again = look_again

    async def __call__(self, credential: Secret, /) -> KnownActor:
        """Who acts, and is known still."""
        known = await self._verify(credential)
        if not (self._is_live(known.actor.id) or await self._is_new(known.actor.id)):
            raise TokenInvalid("the person has ended, or was never known")
        return known

    def _is_live(self, name: str) -> bool:
        """Whether it is no person's name, since machines say their kind, or one of somebody."""
        return ":" in name or self._people.find(name) is not None

    async def _is_new(self, name: str) -> bool:
        return await self._look_again() and self._is_live(name)


class Auth:
    """Stands before an application."""

    def __init__(
        self,
        app: Application,
        verify: Verify,
        *,
        sessions: SessionVerifier,
        refusing: Refuse,
        failures: Failures,
        clock: Clock,
    ) -> None:
        """`sessions` knows who has signed in, `verify` all others.

        `refusing` has the words of refusals; `failures` counts wrong credentials.
        """
        self._sessions = sessions
        self._app = app
        self._verify = verify
        self._refusing = refusing
        self._failures = failures
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, if it is somebody's."""
        if scope["type"] != "http":
            raise RuntimeError("this application speaks HTTP only")
        fields = without_identity(scope["headers"])
        try:
            known = await self._identify(scope["method"], Headers(fields))
        except CarnetError as error:
            await self._refuse(Exchange(scope, receive, send), error)
            return
        fields_of = write_actor(known.actor) | write_resolved(known.resolved)
        fields_of |= write_shown(known.bearer)
        written = [(name.encode(), value.encode()) for name, value in fields_of.items()]
        scope["headers"] = [*without_credentials(fields), *written]
        await self._app(scope, receive, send)

    async def _identify(self, method: str, headers: Headers) -> KnownActor:
        credential = read_credential(headers, is_signed_in=self._sessions.is_shown(headers))
        if credential is not None:
            return await self._verify(credential)
        known = await self._sessions.find(method, headers)
        if known is None:
            raise TokenMissing
        return known

    async def _refuse(self, exchange: Exchange, error: CarnetError) -> None:
        address = exchange.client[0] if exchange.client is not None else "unknown"
        if isinstance(error, TokenInvalid | SessionInvalid):
            try:
                self._failures.note(address, self._clock.monotonic())
            except TooManyFailures as too_many:
                error = too_many
        logger.info(
            "refused",
            extra={
                "correlation_id": exchange.line.correlation,
                "code": error.code,
                "detail": str(error),
                "client": address,
            },
        )
        await exchange.reply(*self._refusing(error, exchange.path, []))
