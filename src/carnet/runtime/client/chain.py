"""The chain that a request has arrived by, for the calls that are made while it is answered.

Law 1. A call out is one hop deeper in the same run, and names the turn that it is made in; where no
       hop is left, it is refused before anything is sent. So is one that names another run.
Law 2. The credential of whoever pays leaves to those whom the program has listed for it, and to
       nobody else. It is not left out so that somebody else pays, unless the program says so (R5).
Law 3. What is called has no more time than the request has.
Law 4. The ordinal of a call is fixed when it is made: a request that comes again under the same
       turn, and makes the same calls, makes them under the same ids.
"""

from contextvars import ContextVar
from hashlib import blake2b
from itertools import count
from typing import Final

from msgspec import Struct

from carnet.core.call import AGENT_OWNED, FORWARD_USER
from carnet.core.chain.carnet import Carnet
from carnet.core.people.identity import Secret
from carnet.errors import ChainMismatch, PeerNotListed, ProviderTimeout, UsageInvalid
from carnet.ports.world.clock import Clock
from carnet.runtime.peers.signing import span_id, trace_of
from carnet.wire.stamps import STAMPS
from carnet.wire.stamps.stamp import Leaving, write_trace

_SECOND_US: Final = 1_000_000


class ChainedCall(Struct, frozen=True, kw_only=True):
    """What one call out carries of its chain."""

    carnet: Carnet  # of the callee
    headers: dict[str, str]
    secrets: dict[str, Secret]


class InboundChain:
    """Where the request stands that is being answered."""

    __slots__ = ("_clock", "_credential", "_key", "_last_depth", "_ordinals", "carnet")

    def __init__(
        self, carnet: Carnet, credential: Secret | None, *, last_depth: int, clock: Clock
    ) -> None:
        """`credential` is that of whoever pays; `last_depth` bounds a chain that names no bound."""
        self.carnet = carnet
        self._credential = credential
        self._last_depth = last_depth
        self._clock = clock
        place = f"{carnet.run}\0{carnet.parent_turn or ''}\0{carnet.turn}"
        self._key = blake2b(place.encode(), digest_size=16).digest()
        self._ordinals = count()

    def next_call(self, speaker: str, *, auth: str | None, run: str | None = None) -> ChainedCall:
        """What the next call carries; refused where it may not be made.

        Args:
            speaker: The name of whom it is for.
            auth: Who pays: "forward-user", "agent-owned", or None where the program has not said.
            run: The one that the program has named itself.
        """
        if run is not None and run != self.carnet.run:
            raise ChainMismatch("a call out of a request names another run")
        carnet = self.carnet.next_hop(
            index=next(self._ordinals), speaker=speaker, key=self._key, default=self._last_depth
        )
        written = STAMPS.write(carnet, Leaving(forwarded=self._forwarded(auth)))
        trace = trace_of(carnet)
        return ChainedCall(
            carnet=carnet,
            headers=written.headers | write_trace(trace, span_id(trace, carnet.turn)),
            secrets=written.secrets,
        )

    def _forwarded(self, auth: str | None) -> Secret | None:
        if auth == AGENT_OWNED or self._credential is None:
            return None
        if auth != FORWARD_USER:  # R5
            raise PeerNotListed
        return self._credential

    def seconds_left(self) -> float | None:
        """How long a call may take that is made now; None where nothing bounds it."""
        if self.carnet.deadline is None:
            return None
        left = self.carnet.deadline - self._clock.steady_us() / _SECOND_US
        if left <= 0:
            raise ProviderTimeout("the time of the request is over")
        return left


CHAIN: Final[ContextVar[InboundChain | None]] = ContextVar("carnet_chain", default=None)


def check_auth(auth: str | None) -> None:
    """Refuse a word for who pays that means nothing."""
    if auth not in {None, FORWARD_USER, AGENT_OWNED}:
        raise UsageInvalid(
            reason=f"'{auth}' does not say who pays.",
            fix="Give auth='forward-user' or auth='agent-owned'.",
        )
