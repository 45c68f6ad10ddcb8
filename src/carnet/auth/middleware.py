"""Auth on the path: whoever comes through is known, and what lies behind is told who it is.

Law 1. Every request is judged, whatever its path: there is no way around.
Law 2. What lies behind learns who acts and what that one may do, and nothing of how it was proved.
Law 3. A refusal is told in the words of what lies behind, which it is given.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Protocol

from msgspec import Struct

from carnet.auth.credential import read_credential, without_credentials, without_identity
from carnet.core.messages.interrupt import Resolution
from carnet.core.people.identity import Ceiling, Secret
from carnet.errors import (
    CarnetError,
    PermissionMissing,
    TokenInvalid,
    TokenMissing,
    TooManyFailures,
)
from carnet.guards.caller.authentication import authenticate, bearer
from carnet.guards.caller.failures import Failures
from carnet.http.cors import Application
from carnet.http.exchange import Exchange, Receive, Scope, Send
from carnet.http.refusal import Refuse
from carnet.ports.trust.keys import OwnKeys
from carnet.ports.trust.people import People
from carnet.ports.trust.trust import Tokens
from carnet.ports.world.clock import Clock
from carnet.wire.crypto.ed25519 import holds
from carnet.wire.dialects.engine_chat.actor import EngineActor, write_actor
from carnet.wire.dialects.engine_chat.bearer import is_bearer, read_bearer, write_resolved
from carnet.wire.grammar.headers import Headers

logger = logging.getLogger("carnet.auth")

ENGINE: Final = "admin:engine"  # what a token must hold to ask a loop directly


class KnownActor(Struct, frozen=True):
    """Who acts, and what was answered in the turn that is asked for."""

    actor: EngineActor
    resolved: Mapping[str, Resolution] = {}


class Verify(Protocol):
    """Finds who a credential stands for."""

    async def __call__(self, credential: Secret, /) -> KnownActor:
        """Who acts; TokenInvalid for a credential that is nobody's."""


class BearerVerifier:
    """Knows the bearers of turns by the keys of their gateway, and leaves the rest to another."""

    def __init__(
        self,
        keys: OwnKeys,
        clock: Clock,
        look_again: Callable[[], Awaitable[bool]],
        *,
        domain: str,
        others: Verify,
    ) -> None:
        """`domain` is that of the gateway; `others` knows all other credentials.

        `look_again` reads keys anew: one may have been made a moment ago.
        """
        self._keys = keys
        self._clock = clock
        self._look_again = look_again
        self._domain = domain
        self._others = others

    async def __call__(self, credential: Secret, /) -> KnownActor:
        """Whom a gateway acts for in one turn."""
        shown = bearer(credential)
        if shown is None or not is_bearer(shown.reveal()):
            return await self._others(credential)
        signed, now = read_bearer(shown.reveal()), self._clock.wall_us()
        key = self._key(signed.keyid, now)
        if key is None and await self._look_again():
            key = self._key(signed.keyid, now)
        if key is None or not holds(key, signed.signed, signed.signature):
            raise TokenInvalid("the bearer of a turn is not signed by a key of ours")
        issuer, until = signed.bearer.issuer, signed.bearer.expires
        if issuer != self._domain or until * 1_000_000 <= now:
            raise TokenInvalid("the bearer of a turn is another gateway's, or its time is over")
        return KnownActor(signed.bearer.actor, signed.bearer.resolved)

    def _key(self, keyid: str, now: int) -> bytes | None:
        for key in self._keys.published(now):
            if key.kid == keyid and key.state != "revoked":
                return key.public
        return None


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
        refusing: Refuse,
        failures: Failures,
        clock: Clock,
    ) -> None:
        """`refusing` has the words of refusals; `failures` counts wrong credentials."""
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
            known = await self._identify(Headers(fields))
        except CarnetError as error:
            await self._refuse(Exchange(scope, receive, send), error)
            return
        fields_of = write_actor(known.actor) | write_resolved(known.resolved)
        written = [(name.encode(), value.encode()) for name, value in fields_of.items()]
        scope["headers"] = [*without_credentials(fields), *written]
        await self._app(scope, receive, send)

    async def _identify(self, headers: Headers) -> KnownActor:
        credential = read_credential(headers)
        if credential is None:
            raise TokenMissing
        return await self._verify(credential)

    async def _refuse(self, exchange: Exchange, error: CarnetError) -> None:
        address = exchange.client[0] if exchange.client is not None else "unknown"
        if isinstance(error, TokenInvalid):
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
