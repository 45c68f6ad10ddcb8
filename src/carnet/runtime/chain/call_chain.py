"""The chain that calls go on with which a program makes while it answers: of a request, or a turn.

Law 1. A call out is one hop deeper in the same run, and names the turn that it is made in; where no
       hop is left, it is refused before anything is sent. So is one that names another run.
Law 2. The credential of whoever pays leaves to those who are listed for it, and to nobody else. It
       is not left out so that somebody else pays, unless the program says so (R5).
Law 3. What is called has no more time than what is answered has.
Law 4. The ordinal of a call is fixed when it is made: a request that comes again under the same
       turn, and makes the same calls, makes them under the same ids.
Law 5. The chain goes where the context of the program goes: into its tasks, and into threads that
       are given that context, as `asyncio.to_thread` does.
"""

from contextvars import ContextVar
from hashlib import blake2b
from itertools import count
from typing import Final, Protocol

from msgspec import Struct

from carnet.core.call import AGENT_OWNED, FORWARD_USER
from carnet.core.chain.carnet import Carnet
from carnet.core.people.identity import Secret
from carnet.errors import (
    CarnetError,
    ChainMismatch,
    PeerNotListed,
    ProviderTimeout,
    UsageInvalid,
)
from carnet.ports.calls.admission import ClientCallee, ClientLeave
from carnet.ports.world.clock import Clock
from carnet.runtime.peers.signing import span_id, trace_of
from carnet.wire.stamps import STAMPS
from carnet.wire.stamps.stamp import Leaving, write_trace

_SECOND_US: Final = 1_000_000
_LISTING: Final = (
    "auth='forward-user' lists the agent, and the credential is sent to it; "
    "with auth='agent-owned' you pay yourself."
)


class ChainedCall(Struct, frozen=True, kw_only=True):
    """What one call out carries of its chain."""

    carnet: Carnet  # of the callee
    headers: dict[str, str]
    secrets: dict[str, Secret]


class CallChain:
    """Where in its chain a program stands while it answers."""

    __slots__ = ("_clock", "_key", "caller", "carnet", "credential", "last_depth")

    is_named = True  # whoever began the run has named it: the program names no other

    def __init__(
        self,
        carnet: Carnet,
        credential: Secret | None,
        *,
        key: bytes,
        caller: str | None,
        last_depth: int,
        clock: Clock,
    ) -> None:
        """`credential` is that of whoever pays; `last_depth` bounds a chain that names no bound.

        `key` tells the calls out of this place from those out of another one, `caller` whoever is
        answered from others, as a digest; None where it has shown nothing.
        """
        self.caller = caller
        self.carnet = carnet
        self.credential = credential
        self.last_depth = last_depth
        self._key = key
        self._clock = clock

    def next_call(
        self, callee: ClientCallee, *, speaker: str, auth: str | None, run: str | None = None
    ) -> ChainedCall:
        """What the next call carries; refused where it may not be made.

        Args:
            callee: Whom it is for.
            speaker: The name of that one.
            auth: Who pays: "forward-user", "agent-owned", or None where the program has not said.
            run: The one that the program has named itself.
        """
        ordinal = self.take(callee)
        try:
            return self._made(ordinal, callee, speaker=speaker, auth=auth, run=run)
        except CarnetError as error:
            turn = self.carnet.child_turn(ordinal, speaker, self._key)
            self.note(turn, callee, error)
            raise

    def _made(
        self, ordinal: int, callee: ClientCallee, *, speaker: str, auth: str | None, run: str | None
    ) -> ChainedCall:
        if run is not None and run != self.carnet.run:
            raise ChainMismatch("a call out of a request names another run")
        self.carnet.refuse_if_final(self.last_depth)
        leave = self.let_out(callee, auth)
        carnet = self.carnet.next_hop(
            index=ordinal, speaker=speaker, key=self._key, default=self.last_depth, via=leave.via
        )
        forwarded = None if auth == AGENT_OWNED else self.credential
        if forwarded is not None and not leave.is_listed:  # R5
            raise PeerNotListed(fix=leave.listing)
        written = STAMPS.write(carnet, Leaving(forwarded=forwarded))
        trace = trace_of(carnet)
        return ChainedCall(
            carnet=carnet,
            headers=written.headers | write_trace(trace, span_id(trace, carnet.turn)),
            secrets=written.secrets,
        )

    def call_chain(self) -> "CallChain":
        """Itself."""
        return self

    def take(self, callee: ClientCallee) -> int:
        """The place of the next call."""
        raise NotImplementedError

    def take_conversation(self) -> int:
        """The place of the next conversation."""
        raise NotImplementedError

    def let_out(self, callee: ClientCallee, auth: str | None) -> ClientLeave:
        """What a call may carry, as far as whoever is called decides it; refused where none may."""
        raise NotImplementedError

    def note(self, turn: str, callee: ClientCallee, error: BaseException | None) -> None:
        """Take note of how a call has ended, where there is a record."""

    def scoped(self, part: str) -> "CallChain":
        """The same for a part of the program whose calls are counted by themselves."""
        del part
        return self

    def seconds_left(self) -> float | None:
        """How long a call may take that is made now; None where nothing bounds it."""
        if self.carnet.deadline is None:
            return None
        left = self.carnet.deadline - self._clock.steady_us() / _SECOND_US
        if left <= 0:
            raise ProviderTimeout("the time of the request is over")
        return left


class InboundChain(CallChain):
    """That of a request, whose application lists those it trusts by saying so at the call."""

    __slots__ = ("_conversations", "_ordinals", "is_named")

    def __init__(
        self,
        carnet: Carnet,
        credential: Secret | None,
        *,
        caller: str | None = None,
        last_depth: int,
        clock: Clock,
    ) -> None:
        """Of a request with this travel document, from whoever has shown what `caller` tells."""
        place = f"{carnet.run}\0{carnet.parent_turn or ''}\0{carnet.turn}\0{caller or ''}"  # R6
        key = blake2b(place.encode(), digest_size=16).digest()
        super().__init__(
            carnet, credential, key=key, caller=caller, last_depth=last_depth, clock=clock
        )
        self.is_named = not carnet.run_is_ours
        self._ordinals = count()
        self._conversations = count()

    def take(self, callee: ClientCallee) -> int:
        """The place of the next call."""
        del callee
        return next(self._ordinals)

    def take_conversation(self) -> int:
        """The place of the next conversation, from 0."""
        return next(self._conversations)

    def let_out(self, callee: ClientCallee, auth: str | None) -> ClientLeave:
        """It may go anywhere; who is listed says the program."""
        del callee
        return ClientLeave(is_listed=auth == FORWARD_USER, listing=_LISTING)


class HasChain(Protocol):
    """What runs: a turn makes its chain when somebody asks for it, which is seldom."""

    def call_chain(self) -> CallChain:
        """Where it stands."""


CHAIN: Final[ContextVar[HasChain | None]] = ContextVar("carnet_chain", default=None)


def current_chain() -> CallChain | None:
    """The chain of what runs here, if there is one."""
    found = CHAIN.get()
    return None if found is None else found.call_chain()


def check_auth(auth: str | None) -> None:
    """Refuse a word for who pays that means nothing."""
    if auth not in {None, FORWARD_USER, AGENT_OWNED}:
        raise UsageInvalid(
            reason=f"'{auth}' does not say who pays.",
            fix="Give auth='forward-user' or auth='agent-owned'.",
        )
