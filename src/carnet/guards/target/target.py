"""Whom is the call for, and may this caller reach it?

Law. The permission asked for is the target's, held by the caller; the gateway's own rights are
never used. What a signed caller may do follows from the trust it has earned
(`guards.caller.trust`).
"""

import msgspec

from carnet.core.chain.carnet import check_depth
from carnet.core.people.identity import Caller
from carnet.errors import PermissionMissing
from carnet.guards.candidate import Candidate
from carnet.ports.work.agent import Router, Target


def permit(caller: Caller, target: Target) -> None:
    """Refuse a caller that may not call this target."""
    if not caller.may(target.needs):
        raise PermissionMissing(permission=target.needs)


class KnownAgent:
    """Refuses a claim for an agent that is not there."""

    def __init__(self, router: Router) -> None:
        """`router` finds the target of a name."""
        self._router = router

    def __call__(self, candidate: Candidate, /) -> None:
        """Prove the target; its own depth limit may be lower than the gateway's."""
        target = self._router.find(candidate.claim.agent)
        candidate.target = target
        position = candidate.position
        if target.last_depth is None or position.last_depth is None:
            return
        lowest = min(target.last_depth, position.last_depth)
        candidate.position = msgspec.structs.replace(position, last_depth=lowest)
        check_depth(candidate.position)


def permitted(candidate: Candidate, /) -> None:
    """Refuse a caller without the target's permission."""
    needs = candidate.target.needs
    if not candidate.caller.may(needs):
        raise PermissionMissing(permission=needs)
