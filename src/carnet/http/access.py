"""Who asks over HTTP, and for what they may ask.

Law. A token that is not known is looked for once more in the store: it may have been made a moment
ago, by a command.
"""

from collections.abc import Awaitable, Callable

from carnet.core.people.identity import Caller, Secret
from carnet.errors import PermissionMissing, TokenInvalid
from carnet.guards.caller.authentication import authenticate, caller_of
from carnet.http.exchange import Exchange
from carnet.ports.trust.trust import Tokens
from carnet.ports.world.clock import Clock
from carnet.wire.grammar.headers import Headers

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
        self._clock = clock
        self._look_again = look_again

    async def check_at_once(self, exchange: Exchange) -> None:
        """Refuse a token that is not known, before anything else is read."""
        if read_authorization(exchange.headers) is not None:
            await self.check(exchange, None)

    async def check(self, exchange: Exchange, permission: str | None) -> Caller:
        """The caller, if its token is live and holds the permission that is asked for."""
        authorization = read_authorization(exchange.headers)
        now = self._clock.wall_us()
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
