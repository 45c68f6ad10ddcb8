"""Whom we know: tokens and peers."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from msgspec import Struct

from carnet.core.money.budget import Ceilings
from carnet.core.people.identity import Secret, Token

Whose = Literal["name", "agent", "client", "person"]
SignatureForm = Literal["auto", "samvad", "rfc9421", "carnet"]  # auto: found out (R8)


class NewToken(Struct, frozen=True, kw_only=True):
    """What `tokens create` asks for."""

    name: str
    scopes: frozenset[str]
    peer: str | None = None
    forwardable: bool = False
    may_forward: bool = False
    rate_calls: int | None = None
    rate_seconds: int = 60
    spending_limit: int | None = None
    expires: int | None = None
    person: int | None = None  # whose it is
    payer: str | None = None  # the account it bills; None: that of its name
    agent: str | None = None  # the only one that it may call; it stands for that agent
    client: str | None = None  # the program that holds it
    workspace: str | None = None
    allow: frozenset[str] | None = None  # the most that may be used with it
    deny: frozenset[str] | None = None  # and what may not, whatever else says
    chain_depth: int | None = None  # the first depth at which its chains are refused
    budgets: Ceilings = ()  # by their names, for each loop that answers it


class Tokens(Protocol):
    """Bearer tokens."""

    def find(self, credential: Secret) -> Token | None:
        """The live-or-not record of a credential; from memory, at most a second old."""

    def fingerprint(self, credential: Secret) -> str:
        """A keyed, stable name for a credential of somebody else's."""

    def used(self, token: Token, now: int) -> None:
        """Note that a token was used; written later, in bulk."""

    async def create(self, new: NewToken, now: int) -> tuple[Token, Secret]:
        """Make one. The secret is shown once and kept nowhere."""

    async def revoke(self, name: str, now: int) -> bool:
        """Revoke one by name; False if there is none."""

    async def revoke_all(self, whose: Whose, value: str | int, now: int) -> Sequence[str]:
        """Revoke all of an agent, a client or a person (by her number) at once; their names."""

    async def list(self) -> Sequence[Token]:
        """All of them, newest first."""


class Lender(Protocol):
    """Lends credentials to what runs for people while they are away."""

    def lent(self, n: int, session: int | None = None) -> AbstractContextManager[Secret]:
        """A credential that stands for a token, by its number, in this process and for a while.

        It has the rights of that token and ends with it; it is never forwarded to anybody.
        `session` is the one that it is lent to.
        """


class CertifiedPeers(Protocol):
    """Peers that are known by their client certificates, and what stands for them."""

    def certified(self, certificate: str, /) -> "Peer | None":
        """The one that a certificate is of; from memory."""


class CertificateLender(Protocol):
    """Lends credentials to peers that show a certificate."""

    def lent_to(self, token: Token, /) -> AbstractContextManager[Secret]:
        """A credential that is that token, in this process and for a while."""


class NumberedTokens(Protocol):
    """Tokens that are found by their numbers."""

    def numbered(self, n: int) -> Token | None:
        """One, live or not; from memory, at most a second old."""


class LendingTokens(Tokens, Lender, Protocol):
    """Tokens, some of which are lent."""


class Peer(Struct, frozen=True, kw_only=True):
    """An organisation whose gateway we know."""

    domain: str
    url: str
    may_forward: bool = False
    token: Secret | None = None  # how we authenticate to it
    dialect: str = "tangle"
    signature_form: SignatureForm = "auto"  # of calls in a signed dialect
    # By what it knows us: a credential of ours, or a token that it gives for one; auto: its card.
    auth: Literal["auto", "jwt", "federation"] = "auto"
    credit: int = 0  # what it may owe us, micro-units
    most_cost: int = 1_000_000  # the most it may charge for one call
    from_file: bool = False  # written in carnet.toml, so read-only to the program
    log_names: tuple[str, ...] = ()  # of products whose logs find our calls by them
    certificate: str | None = None  # of its calls, as a trusted proxy tells it (R33)


class Peers(Protocol):
    """The organisations we know."""

    def find(self, domain: str) -> Peer | None:
        """A peer by domain; from memory, at most a second old."""

    async def put(self, peer: Peer) -> None:
        """Add or replace one; its token is sealed before it is stored."""

    async def remove(self, domain: str) -> bool:
        """Forget one; False if there is none."""

    async def list(self) -> Sequence[Peer]:
        """All of them, by domain."""
