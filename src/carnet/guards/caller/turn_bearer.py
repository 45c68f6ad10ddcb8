"""The bearer of a turn: is it one of ours, and is there time left?

Law 1. It holds under a key of this gateway that is not revoked, names this gateway as its issuer,
       and its time is not over; else it is nobody's.
Law 2. What it is good for is not said here: Auth lets it through to the loop, and the gateway takes
       it for calls out of its turn while that is open.
"""

from collections.abc import Awaitable, Callable

from carnet.errors import TokenInvalid
from carnet.ports.trust.keys import OwnKeys
from carnet.ports.world.clock import Clock
from carnet.wire.crypto.ed25519 import holds
from carnet.wire.dialects.engine_chat.bearer import TurnBearer, read_bearer


class TurnBearers:
    """Verifies the bearers of one gateway."""

    def __init__(
        self, keys: OwnKeys, clock: Clock, look_again: Callable[[], Awaitable[bool]], *, domain: str
    ) -> None:
        """`domain` is that of the gateway.

        `look_again` reads keys anew: one may have been made a moment ago.
        """
        self._keys = keys
        self._clock = clock
        self._look_again = look_again
        self._domain = domain

    async def verify(self, text: str) -> TurnBearer:
        """What a bearer says; TokenInvalid where it does not hold."""
        signed, now = read_bearer(text), self._clock.wall_us()
        key = self._key(signed.keyid, now)
        if key is None and await self._look_again():
            key = self._key(signed.keyid, now)
        if key is None or not holds(key, signed.signed, signed.signature):
            raise TokenInvalid("the bearer of a turn is not signed by a key of ours")
        issuer, until = signed.bearer.issuer, signed.bearer.expires
        if issuer != self._domain or until * 1_000_000 <= now:
            raise TokenInvalid("the bearer of a turn is another gateway's, or its time is over")
        return signed.bearer

    def _key(self, keyid: str, now: int) -> bytes | None:
        for key in self._keys.published(now):
            if key.kid == keyid and key.state != "revoked":
                return key.public
        return None
