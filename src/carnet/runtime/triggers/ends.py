"""Whether the tokens have ended that schedules and hooks run with.

Law. What is known is at most a second old. A token that is not known yet is looked up; one that
     nobody knows then has ended.
"""

from collections.abc import Awaitable, Callable

from carnet.ports.calls.triggers import EndReason
from carnet.ports.trust.trust import NumberedTokens
from carnet.ports.world.clock import Clock


class TokensAtEnd:
    """Says why tokens have ended: `carnet.ports.calls.triggers.TokenEnds`."""

    def __init__(
        self, tokens: NumberedTokens, look_again: Callable[[], Awaitable[object]], clock: Clock
    ) -> None:
        """`look_again` has what is known of tokens read anew."""
        self._tokens = tokens
        self._look_again = look_again
        self._clock = clock

    def known(self, token: int, /) -> EndReason | None:
        """Why one has ended, as far as is known by now; None where it has not."""
        found = self._tokens.numbered(token)
        if found is None or found.revoked is not None:
            return "token_revoked"
        return None if found.is_live(self._clock.wall_us()) else "token_expired"

    async def __call__(self, token: int, /) -> EndReason | None:
        """The same, looked up where it is not known."""
        if self._tokens.numbered(token) is None:
            await self._look_again()
        return self.known(token)
