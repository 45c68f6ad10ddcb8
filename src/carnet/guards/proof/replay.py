"""Has this nonce been accepted a moment ago?

The store decides: there a nonce is consumed once, in the transaction of the claim. What stands here
is a memory of what it decided. It keeps replays away from the store, and lets them be told as such
before anything else is.

Law 1. It may only refuse. What it does not remember is nobody's permission.
Law 2. It holds nothing but nonces that were consumed under a signature that held; so nobody can
       burn a nonce of somebody else's.
Law 3. It is bounded: the nonce that came first is forgotten first.
"""

from typing import Final

from carnet.core.memo import Memo
from carnet.core.people.proof import SECOND_US, WINDOWS
from carnet.errors import NonceReplayed
from carnet.guards.candidate import Candidate
from carnet.ports.calls.turns import Nonce

MOST_REMEMBERED: Final = 65_536
LIFE_SECONDS: Final = 300  # after arrival, whatever the request says about its time
SKEW_SECONDS: Final = 5  # between the clocks of replicas


def nonce_of(candidate: Candidate) -> Nonce:
    """The nonce of a signed claim, and how long it must be refused after this (R11)."""
    proof = candidate.proof
    leaves_window = proof.at + WINDOWS[proof.profile].past * SECOND_US
    expires = max(candidate.now + LIFE_SECONDS * SECOND_US, leaves_window)
    return Nonce(proof.sender, proof.nonce, expires + SKEW_SECONDS * SECOND_US)


class Unrepeated:
    """Refuses a nonce that is known to be consumed."""

    def __init__(self, most: int = MOST_REMEMBERED) -> None:
        self._seen: Memo[tuple[str, str], int] = Memo(most)

    def __call__(self, candidate: Candidate, /) -> None:
        """Judge by what is remembered."""
        key = (candidate.proof.sender, candidate.proof.nonce)
        if key not in self._seen:
            return
        if candidate.now < self._seen[key]:
            raise NonceReplayed
        del self._seen[key]

    def remember(self, nonce: Nonce) -> None:
        """The store has consumed it, for us or for another process."""
        self._seen.keep((nonce.sender, nonce.nonce), nonce.expires)

    def __len__(self) -> int:
        return len(self._seen)
