"""What makes a task of a claim: one that runs later, or one that is answered at once."""

from carnet.core.call import CallbackWish, Claim
from carnet.core.sealed_call import Later
from carnet.guards.candidate import Candidate
from carnet.guards.limits import counted_as
from carnet.ports.calls.tasks import ListedTask
from carnet.ports.calls.turns import TASKS
from carnet.ports.world.clock import Ids


def make_later(candidate: Candidate, ids: Ids) -> Later:
    """What makes a task of a claim.

    The sender is the identity that signed, or whoever's token it is.
    """
    claim, sender, target = candidate.claim, candidate.caller.actor.name, candidate.target
    # Addresses at a peer cost nothing to make up: they are counted together.
    agent = target.credit if target.is_remote else target.name
    counted = sender
    if claim.proof is not None:
        sender, counted = claim.proof.principal, counted_as(candidate)
    return Later(
        id=ids.uuid(),
        sender=sender,
        quota=f"{TASKS}{agent}/{counted}",
        callback=_wish(claim),
    )


def make_listed(candidate: Candidate, context: str, ids: Ids) -> ListedTask:
    """What lists a call among the tasks of its sender that is answered at once."""
    claim, sender = candidate.claim, candidate.caller.actor.name
    if claim.proof is not None:
        sender = claim.proof.principal
    return ListedTask(
        id=ids.uuid(),
        sender=sender,
        skill=claim.ask.skill,
        context=context,
        callback=_wish(claim),
    )


def _wish(claim: Claim) -> CallbackWish | None:
    if claim.callback is None:
        return None
    return claim.wish or CallbackWish(url=claim.callback)
