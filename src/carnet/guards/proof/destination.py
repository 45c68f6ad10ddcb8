"""Is it meant for us?

The seed's signature covers neither the host nor the port, so the same signed bytes would do for any
agent that knows the sender. What the body or the travel document is addressed to is signed.

Law. A signed request names its recipient, and the recipient is the agent that it was sent to.
"""

from carnet.core.people.address import Identities
from carnet.errors import DestinationMismatch
from carnet.guards.candidate import Candidate


class Addressed:
    """Refuses a signed request that is addressed to somebody else."""

    def __init__(self, identities: Identities, domain: str) -> None:
        """`identities` are those of our agents, `domain` is ours."""
        self._identities = identities
        self._domain = domain

    def __call__(self, candidate: Candidate, /) -> None:
        """Compare what was signed with where it came."""
        proof = candidate.proof
        document, recipient = proof.document, proof.recipient
        if document is not None and document.audience != self._domain:
            raise DestinationMismatch
        if recipient is None:
            if document is None:
                raise DestinationMismatch
        elif recipient != self._identities.of(candidate.claim.agent):
            raise DestinationMismatch
