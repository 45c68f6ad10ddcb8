"""A claim on its way through the guards, and what they have proved of it so far.

Internal and mutable: each guard writes what it proved, the next one reads it. What leaves the
gate is an immutable Call.
"""

import re
from collections.abc import Awaitable
from typing import Final, Never, Protocol

from msgspec.structs import replace

from carnet.core.call import Claim
from carnet.core.carnet import TOP, Position
from carnet.core.delegation import Delegation
from carnet.core.identity import Caller, Payer
from carnet.core.proof import Proof, Spending
from carnet.core.secret import Secret
from carnet.core.skill import Skill
from carnet.errors import Internal, SignatureMissing
from carnet.ports.agent import Target
from carnet.ports.trust import Peer, Token

_URL: Final = re.compile(r"https?://([A-Za-z0-9.-]+)(?=[:/?#]|\Z)", re.ASCII)


class Candidate:
    """One claim under examination."""

    __slots__ = (
        "budget",
        "caller",
        "claim",
        "credential",
        "deadline",
        "delegation",
        "key",
        "now",
        "on_behalf_of",
        "path",
        "payer",
        "peer",
        "position",
        "principal",
        "skill",
        "target",
        "token",
    )

    # Each is there once a guard has proved it; who asks before that is told so.
    caller: Caller  # who calls, with which rights
    key: bytes  # the public key of whoever signed
    payer: Payer
    target: Target  # whom the call is for
    token: Token  # that authenticated the caller; a signed claim has none

    def __init__(self, claim: Claim, now: int) -> None:
        """Start with the claim and the time it is judged at (microseconds since the epoch)."""
        self.claim = claim
        self.now = now
        self.position: Position = TOP
        self.credential: Secret | None = None
        self.skill: Skill | None = None
        self.peer: Peer | None = None  # the organisation that signed, if it is listed
        self.principal: Token | None = None  # whose token a signed claim brought along
        self.path: tuple[str, ...] = ()
        self.on_behalf_of: tuple[str, ...] = ()
        self.deadline: float | None = None  # seconds, by the clock that is never set
        self.budget: Spending | None = None
        self.delegation: Delegation | None = None  # verified, every link of it

    @property
    def proof(self) -> Proof:
        """The signature that the claim was sent with."""
        if self.claim.proof is None:
            raise SignatureMissing
        return self.claim.proof

    @property
    def shown(self) -> Token | None:
        """The token that was shown: the caller's own, or the one beside a signature."""
        return self.token if self.claim.proof is None else self.principal

    def prove_caller(self, caller: Caller) -> None:
        """Note who calls, with what it says of itself beside that."""
        told = self.claim.context
        if told is not None:
            told = replace(told, verified=_is_of(told.host, self.claim.proof))
            caller = replace(caller, context=told)
        self.caller = caller

    def __getattr__(self, name: str) -> Never:
        """Refuse what is not there; what is there never comes by here."""
        raise Internal(f"a guard asked for the {name}, which no guard before it has proved")


class Guard(Protocol):
    """Looks at one thing and returns or raises. What must wait for something says so."""

    def __call__(self, candidate: Candidate, /) -> Awaitable[None] | None:
        """Judge the candidate, now or when what is returned has been waited for."""
        ...


def _is_of(host: str, proof: Proof | None) -> bool:
    """Whether the host that a caller names is the one whose signature covers what it says."""
    if proof is None or proof.document is None:
        return False
    named = _URL.match(host)
    return named is not None and named[1].lower() == proof.document.issuer
