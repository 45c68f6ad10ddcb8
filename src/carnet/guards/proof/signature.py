"""Was the request made just now, does its signature hold, and is it meant for us?

The seed's signature covers neither the host nor the port, so the same signed bytes would do for any
agent that knows the sender. What the body or the travel document is addressed to is signed.

Law 1. The time is the one that the request names, and it is judged by our wall clock: R11 says how
       far the two may be apart. A signature that names its own end is not honoured beyond it.
Law 2. The signature must hold for the literal bytes that were received, under the key that is
       registered for the sender. The algorithm is the key's: what the request says about it chooses
       nothing.
Law 3. A signed request names its recipient, and the recipient is the agent that it was sent to. A
       credential names us: the agent, or the gateway that it is behind.
"""

from carnet.core.people.address import Identities
from carnet.core.people.proof import SECOND_US, WINDOWS
from carnet.errors import (
    DestinationMismatch,
    SignatureExpired,
    SignatureInvalid,
    TimestampOutOfWindow,
)
from carnet.guards.candidate import Candidate
from carnet.wire.crypto import ed25519
from carnet.wire.travel.signed_text import hide


def in_time(candidate: Candidate, /) -> None:
    """Refuse a request that is too old, too far ahead, or expired."""
    proof, now = candidate.proof, candidate.now
    window = WINDOWS[proof.profile]
    if not -window.future * SECOND_US <= now - proof.at <= window.past * SECOND_US:
        raise TimestampOutOfWindow
    if proof.expires is None:
        return
    ends = proof.expires * SECOND_US
    if ends <= now or ends < proof.at:
        raise SignatureExpired


def signed(candidate: Candidate, /) -> None:
    """Refuse a request whose signature holds for none of the texts it may cover."""
    proof, key = candidate.proof, candidate.key
    for base in proof.bases:
        if ed25519.holds(key, base, proof.signature):
            if proof.profile != "jwt":  # what that covers is the credential itself
                candidate.base = base if proof.is_plain else hide(base)
            return
    raise SignatureInvalid


class Addressed:
    """Refuses a signed request that is addressed to somebody else."""

    def __init__(self, identities: Identities, domain: str, url: str = "") -> None:
        """`identities` are those of our agents; `domain` and `url` are ours."""
        self._identities = identities
        self._domain = domain
        self._url = url

    def __call__(self, candidate: Candidate, /) -> None:
        """Compare what was signed with where it came."""
        proof = candidate.proof
        document, recipient = proof.document, proof.recipient
        if proof.profile == "jwt":
            ours = self._identities.names(candidate.claim.agent, self._url)
            if ours.isdisjoint(proof.audiences):
                raise DestinationMismatch
            return
        if document is not None and document.audience != self._domain:
            raise DestinationMismatch
        if recipient is None:
            if document is None:
                raise DestinationMismatch
        elif recipient != self._identities.of(candidate.claim.agent):
            raise DestinationMismatch
