"""What is good once: who uses it, and within which time.

Law. A use is durable before it counts, on all replicas together. The same message of the same
     sender is no second use; a store that cannot tell leaves it unused.
"""

from hashlib import sha256
from typing import Final

from carnet.core.people.evidence import SKEW_SECONDS, EvidenceInvalid
from carnet.core.people.proof import SECOND_US
from carnet.errors import CarnetError
from carnet.guards.candidate import Candidate
from carnet.ports.calls.turns import Nonce
from carnet.ports.trust.nonces import SingleUses

CLOCKS_SECONDS: Final = 5  # how far the clocks of replicas may be apart
_SKEW: Final = SKEW_SECONDS * SECOND_US


async def use_once(
    uses: SingleUses | None, whose: str, name: str, ends: int, candidate: Candidate
) -> None:
    """Use something of an issuer for a claim; `ends` in microseconds. Else it is set aside."""
    nonce = Nonce(whose, name, ends + _SKEW + CLOCKS_SECONDS * SECOND_US)
    try:
        is_unused = uses is not None and await uses.use(nonce, _user(candidate), candidate.now)
    except CarnetError:
        raise EvidenceInvalid("replay_store_failed") from None
    if not is_unused:
        raise EvidenceInvalid("replayed")


def _user(candidate: Candidate) -> str:
    """Who uses it for what."""
    claim = candidate.claim
    name = claim.proof.principal if claim.proof is not None else candidate.caller.actor.name
    return sha256(name.encode() + b"\0" + claim.digest).hexdigest()[:32]


def check_time(begins: int, ends: int, now: int) -> None:
    """Set aside what has not begun, or has ended; all in microseconds."""
    if begins > now + _SKEW:
        raise EvidenceInvalid("not_yet_valid")
    if ends + _SKEW <= now:
        raise EvidenceInvalid("expired")
