"""Where in its chain does the call stand?

Law. Every stamp counts: the deepest depth and the lowest limit hold, and contradictions are
refused. Malformed stamps never get here; the dialect refused them as it read them.
"""

from carnet.core.call import Claim
from carnet.core.chain.carnet import check_depth, merge
from carnet.guards.candidate import Candidate


def within_chain(candidate: Candidate, /) -> None:
    """Refuse a call that arrived deeper than its chain may go."""  # tangle:depth:refuse
    marks = candidate.claim.marks
    if marks:  # else it stands at the top
        candidate.position = merge(marks)
        check_depth(candidate.position)


def names_parent(claim: Claim) -> bool:
    """Whether a stamp that counts depth names the parent turn."""
    for mark in claim.marks:  # noqa: SIM110  `any` would be a call for each mark
        if mark.parent_turn is not None and mark.counts:
            return True
    return False
