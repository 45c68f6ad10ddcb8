"""Does the signature hold?

Law. It must hold for the literal bytes that were received, under the key that is registered for the
sender. The algorithm is the key's: what the request says about it chooses nothing.
"""

from carnet.errors import SignatureInvalid
from carnet.guards.candidate import Candidate
from carnet.wire.crypto import ed25519


def signed(candidate: Candidate, /) -> None:
    """Refuse a request whose signature holds for none of the texts it may cover."""
    proof, key = candidate.proof, candidate.key
    for base in proof.bases:
        if ed25519.holds(key, base, proof.signature):
            return
    raise SignatureInvalid
