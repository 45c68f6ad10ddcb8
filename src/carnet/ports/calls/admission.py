"""The gate, as those behind it see it."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from msgspec import Struct

from carnet.core.call import Admitted, Ask, Call, Claim
from carnet.core.messages.events import Event
from carnet.core.people.grant import AccessToken
from carnet.core.people.identity import Caller, Secret
from carnet.core.people.proof import Proof


class HasEnded(Protocol):
    """Whether something has ended that a call was admitted by: a token, a peer, a delegation."""

    def __call__(self, call: Admitted, /) -> bool:
        """Judge by what is known now."""


class CameBack(Struct, frozen=True, kw_only=True):
    """A call of a peer that was refused because its chain has passed here, or is too deep."""

    run: str
    parent_turn: str  # the turn it was made in: perhaps a call of ours
    turn: str
    depth: int
    peer: str  # the domain of who sent it, which is proved
    to: str  # as it was written
    code: str


def never(_: Admitted, /) -> bool:
    """Where nothing is revoked."""
    return False


class ClientCallee(Struct, frozen=True, kw_only=True):
    """Whom the code of an agent calls by itself, past the gateway: with `carnet.connect`."""

    url: str  # where its pages are
    identities: frozenset[str] = frozenset()  # who is expected there


class ClientLeave(Struct, frozen=True, kw_only=True):
    """What a call past the gateway may carry."""

    via: str | None = None  # the address of the agent that makes it, for the path of its chain
    is_listed: bool = False  # a payer's credential may leave to the callee
    listing: str | None = None  # how a program lists it; None: the operator does


class CredentialAskers(Protocol):
    """Knows who asks with a credential that is no token of ours."""

    async def who(self, shown: Proof | AccessToken, agent: str, *, uses: bool = True) -> Caller:
        """The caller that it proves; with `uses` what is good once is used up."""


class Admission(Protocol):
    """Turns claims into calls, or refuses them."""

    async def admit(self, claim: Claim) -> Call:
        """Show a claim from the wire to every guard; the last step records it."""

    async def vouch(self, authorization: Secret | None, proof: Proof | None) -> str:
        """The name of a caller; refuse who cannot be admitted by its token or its signature."""

    @property
    def askers(self) -> CredentialAskers:
        """Who know those that ask with credentials of others."""

    async def admit_child(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> Call:
        """Admit a call that an agent makes in process, on behalf of the call it answers."""

    def check(self, call: Call) -> None:
        """Raise Cancelled if what let the call in has ended meanwhile (R54)."""

    def let_out(self, parent: Call, callee: ClientCallee) -> ClientLeave:
        """Let a call pass the gateway that an agent makes; refused where it would come back."""


class Dispatch(Protocol):
    """How an agent calls another agent, here or elsewhere."""

    def __call__(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> AsyncIterator[Event]:
        """Admit the child and give its events as they come."""

    async def whole(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> Sequence[Event]:
        """Admit the child and wait for all of its events."""

    def check(self, call: Call) -> None:
        """Raise Cancelled if nothing may be done for the call any more."""

    def most_cost(self, name: str, ask: Ask) -> int:
        """The most that such a call may cost, in micro-units."""

    def let_out(self, parent: Call, callee: ClientCallee, *, auth: str | None) -> ClientLeave:
        """What a call past the gateway may carry; refused where it may not be made.

        `auth` says who pays, where the program says it.
        """
