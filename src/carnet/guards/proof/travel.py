"""May the travel document be believed, and what does it leave us?

Law 1. It is signed with the key of the sender, by the domain that the sender belongs to, and made
       a moment ago. What it says of this call must be what the other stamps say.
Law 2. It only narrows: what is left of depth, time and budget can be less than ours, never more.
Law 3. Nobody comes back to an agent that the chain has passed, unless the agent allows it.
"""

from collections.abc import Sequence
from typing import Final

from carnet.core.chain.carnet import Mark
from carnet.core.people.address import AGENT, handle_of
from carnet.core.people.proof import SECOND_US, WINDOWS, Document
from carnet.errors import (
    ChainMismatch,
    LoopDetected,
    ProviderTimeout,
    SignatureExpired,
    SignatureInvalid,
    TimestampOutOfWindow,
)
from carnet.guards.candidate import Candidate
from carnet.ports.calls.agent import Target
from carnet.ports.world.clock import Clock
from carnet.wire.crypto import ed25519

BY_CALLER: Final = "caller"
_MILLISECONDS: Final = 1000
_MICROSECONDS: Final = SECOND_US // _MILLISECONDS  # in a millisecond


class Travelled:
    """Refuses a travel document that is not the sender's, and takes over what it says."""

    def __init__(self, clock: Clock) -> None:
        """`clock` tells how much of the caller's time is left."""
        self._clock = clock

    def __call__(self, candidate: Candidate, /) -> None:
        """Judge the document of a signed claim, where it has one."""
        document = candidate.proof.document
        if document is None:
            if candidate.proof.subject is not None:  # who speaks is the last that it has passed
                candidate.path = (candidate.proof.subject,)
            return
        check_document(candidate, document)
        check_stamps(document, candidate.claim.marks)
        candidate.path = document.path
        candidate.on_behalf_of = document.on_behalf_of
        candidate.budget = document.budget
        if document.deadline_ms is not None:
            candidate.deadline = self._deadline(document.deadline_ms)

    def _deadline(self, wall_ms: int) -> float:
        """The same moment by the monotonic clock."""
        left_us = wall_ms * _MICROSECONDS - self._clock.wall_us()
        if left_us <= 0:
            raise ProviderTimeout("the caller's deadline has passed", by=BY_CALLER)
        return (self._clock.steady_us() + left_us) / SECOND_US


def travels(candidate: Candidate, /) -> None:
    """Judge the document by itself, before what came with it is read."""
    if candidate.proof.document is not None:
        check_document(candidate, candidate.proof.document)


def check_document(candidate: Candidate, document: Document) -> None:
    """Refuse a document that somebody else signed, or at another time."""
    proof = candidate.proof
    if document.keyid != proof.keyid or proof.sender != AGENT + document.issuer:
        raise SignatureInvalid("the travel document is not the sender's")
    if not ed25519.holds(candidate.key, document.signed, document.signature):
        raise SignatureInvalid("the signature of the travel document does not hold")
    if document.issued * SECOND_US > candidate.now + WINDOWS["carnet"].future * SECOND_US:
        raise TimestampOutOfWindow
    if document.expires * SECOND_US <= candidate.now:
        raise SignatureExpired


def check_stamps(document: Document, marks: Sequence[Mark]) -> None:
    """Refuse a request whose other stamps tell another chain than its document."""
    wanted = (document.run, document.turn, document.parent_turn, document.depth)
    for mark in marks:
        found = (mark.run, mark.turn, mark.parent_turn, mark.depth)
        if any(one is not None and one != other for one, other in zip(found, wanted, strict=True)):
            raise ChainMismatch("the travel document and another stamp disagree")


def check_reentry(target: Target, path: Sequence[str], domain: str) -> None:
    """Refuse a call to an agent that its chain has passed, unless it may be called again."""
    if not target.reentry and handle_of(target.name, domain) in path:
        raise LoopDetected


class Unlooped:
    """Refuses a call that comes back to an agent which its chain has passed."""

    def __init__(self, domain: str) -> None:
        """`domain` is ours: an agent's address is its name at it."""
        self._domain = domain

    def __call__(self, candidate: Candidate, /) -> None:
        """Look for the target on the path of the document."""  # A31
        if candidate.path:
            check_reentry(candidate.target, candidate.path, self._domain)
