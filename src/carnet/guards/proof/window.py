"""Was the request made just now?

Law. The time is the one that the request names, and it is judged by our wall clock: R11 says how
far the two may be apart. A signature that names its own end is not honoured beyond it.
"""

from carnet.core.people.proof import SECOND_US, WINDOWS
from carnet.errors import SignatureExpired, TimestampOutOfWindow
from carnet.guards.candidate import Candidate


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
