"""How many tasks of this sender are not finished yet?

The store counts, in a purse of each agent and sender: one is taken when a task is accepted, and
given back with its end, whichever that is.

Law 1. A task costs its sender a place in the queue from the claim on; who repeats one that is known
       takes no second place.
Law 2. Its id is drawn here, of at least 122 random bits: who knows it may ask how far it is.
"""

from collections.abc import Callable

from carnet.core.sealed_call import Later
from carnet.guards.candidate import Candidate
from carnet.ports.work.turns import TASKS, Quota
from carnet.ports.world.clock import Ids


def make_later(candidate: Candidate, ids: Ids, counted_as: Callable[[Candidate], str]) -> Later:
    """What makes a task of a claim.

    The sender is the identity that signed, or whoever's token it is; `counted_as` gives the one
    whose tasks are counted, of a signed claim.
    """
    claim, sender = candidate.claim, candidate.caller.actor.name
    counted = sender
    if claim.proof is not None:
        sender, counted = claim.proof.sender, counted_as(candidate)
    return Later(
        id=ids.uuid(),
        sender=sender,
        purse=f"{TASKS}{candidate.target.name}/{counted}",
        callback=claim.callback,
    )


def unfinished(later: Later, limit: int) -> Quota:
    """The place that a task takes until it has ended."""
    return Quota(purse=later.purse, limit=limit, take=1)
