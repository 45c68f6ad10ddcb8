"""A claim on its way through the guards, and what they have proved of it so far.

Internal and mutable: each guard writes what it proved, the next one reads it. What leaves the
gate is an immutable Call.
"""

import re
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Final, Never, Protocol

from msgspec.structs import replace

from carnet.core.call import Claim
from carnet.core.chain.carnet import TOP, Position
from carnet.core.people.delegation import Delegation
from carnet.core.people.evidence import Evidence, Fault
from carnet.core.people.grant import Grant
from carnet.core.people.identity import Caller, Context, Payer, Secret, Skill, Token
from carnet.core.people.proof import Proof, Spending
from carnet.errors import Internal, SignatureMissing
from carnet.ports.calls.agent import Target
from carnet.ports.trust.trust import Peer

_URL: Final = re.compile(r"https?://([A-Za-z0-9.-]+)(?=[:/?#]|\Z)", re.ASCII)


class Candidate:
    """One claim under examination.

    What a guard proves has a slot that is empty until then. Reading it costs no call; reading it
    while it is empty is an error of ours, which is told as one.
    """

    __slots__ = (
        "budget",
        "caller",
        "claim",
        "credential",
        "deadline",
        "delegation",
        "evidence",
        "faults",
        "grant",
        "key",
        "now",
        "on_behalf_of",
        "path",
        "payer",
        "peer",
        "position",
        "principal",
        "proof",
        "shown",
        "skill",
        "speaks",
        "target",
        "token",
    )

    caller: Caller  # who calls, with which rights
    key: bytes  # the public key of whoever signed
    payer: Payer
    proof: Proof  # the signature that the claim was sent with
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
        self.shown: Token | None = None  # the caller's own token, or the one beside a signature
        self.path: tuple[str, ...] = ()
        self.on_behalf_of: tuple[str, ...] = ()
        self.deadline: float | None = None  # seconds, by the monotonic clock
        self.budget: Spending | None = None
        self.delegation: Delegation | None = None  # verified, every link of it
        self.evidence: tuple[Evidence, ...] = ()  # verified
        self.faults: tuple[Fault, ...] = ()  # why other evidence was set aside
        self.speaks = ""  # who of its organisation: those share no turns (M50)
        self.grant: Grant | None = None  # of an access token that was verified
        if claim.proof is not None:
            self.proof = claim.proof

    if not TYPE_CHECKING:  # for a checker of types it would be an answer to any name

        def __getattr__(self, name: str) -> Never:
            """Refuse to give what nobody has proved: Python asks here for empty slots alone."""
            if name == "proof":
                raise SignatureMissing
            raise Internal("a guard asked for what no guard before it has proved")


class Guard(Protocol):
    """Looks at one thing and returns or raises. What must wait for something says so."""

    def __call__(self, candidate: Candidate, /) -> Awaitable[None] | None:
        """Judge the candidate, now or when what is returned has been waited for."""


def in_context(caller: Caller, context: Context, proof: Proof | None) -> Caller:
    """The caller with what it says of itself, and whether that is proved."""
    context = replace(context, verified=_is_of(context.host, proof))
    return replace(caller, context=context)


def _is_of(host: str, proof: Proof | None) -> bool:
    """Whether the host that a caller names is the one whose signature covers what it says."""
    if proof is None or proof.document is None:
        return False
    named = _URL.match(host)
    return named is not None and named[1].lower() == proof.document.issuer
