"""A claim on its way through the guards, and what they have proved of it so far.

Internal and mutable: each guard writes what it proved, the next one reads it. What leaves the
gate is an immutable Call.
"""

from collections.abc import Awaitable
from typing import TYPE_CHECKING, Never, Protocol

from carnet.core.call import Claim
from carnet.core.chain.carnet import TOP, Position
from carnet.core.people.caller_host import CallerHost
from carnet.core.people.delegation import Delegation
from carnet.core.people.evidence import Evidence, Fault
from carnet.core.people.grant import Grant
from carnet.core.people.identity import Caller, Context, Payer, Secret, Skill, Token
from carnet.core.people.proof import Proof, Spending
from carnet.errors import Internal, SignatureMissing
from carnet.ports.calls.agent import Target
from carnet.ports.calls.turns import Nonce
from carnet.ports.trust.trust import Peer


class Candidate:
    """One claim under examination.

    What a guard proves has a slot that is empty until then. Reading it costs no call; reading it
    while it is empty is an error of ours, which is told as one.
    """

    __slots__ = (
        "base",
        "budget",
        "caller",
        "claim",
        "context",
        "credential",
        "deadline",
        "delegation",
        "evidence",
        "faults",
        "grant",
        "host",
        "key",
        "now",
        "on_behalf_of",
        "once",
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
        self.base = b""  # that the signature was found to hold for, without credentials
        self.speaks = ""  # who of its organisation: those share no turns (M50)
        self.grant: Grant | None = None  # of an access token that was verified
        self.once: Nonce | None = None  # of a payment that is good for one call
        self.context: Context | None = None  # what the caller says of itself, judged
        self.host: CallerHost | None = None  # whose it is, where that is listed and verified
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
