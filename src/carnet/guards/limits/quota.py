"""How much of a day's tokens has this sender used, and how many of its tasks are not finished yet?

The store counts. The name of a quota of tokens has the day in it: a new day begins with an empty
one. Tasks have one of each agent and sender: one is taken when a task is accepted, and given back
with its end, whichever that is.

Law 1. What a call uses is told at its end. So a sender that has anything left is answered, and one
       that has nothing left is refused until midnight, UTC.
Law 2. Only calls whose signature held are counted, whatever they ended in; calls that an agent
       makes for one of them in process use up the same quota.
Law 3. A peer can give itself as many names as it likes: they share one quota and one rate.
Law 4. A task costs its sender a place in the queue from the claim on; who repeats one that is known
       takes no second place.
Law 5. The id of a task is drawn here, of at least 122 random bits: who knows it may ask how far it
       is.
"""

from datetime import date
from typing import Final

from carnet.core.people.address import AGENT
from carnet.core.people.proof import SECOND_US
from carnet.core.sealed_call import Later
from carnet.guards.candidate import Candidate
from carnet.ports.work.turns import TASKS, TOKENS, Quota
from carnet.ports.world.clock import Ids

DAY_SECONDS: Final = 86_400
_EPOCH: Final = date(1970, 1, 1).toordinal()


def counted_as(candidate: Candidate) -> str:
    """The sender whose rate and quotas a signed claim uses."""
    peer = candidate.peer
    return candidate.proof.sender if peer is None else AGENT + peer.domain


def daily_tokens(candidate: Candidate) -> Quota | None:
    """The tokens that a signed claim may use of today's; None if its agent sets no bound."""
    target = candidate.target
    if target.tokens_per_day is None:
        return None
    days, seconds = divmod(candidate.now // SECOND_US, DAY_SECONDS)
    day = date.fromordinal(_EPOCH + days).isoformat()
    return Quota(
        name=f"{TOKENS}{day}/{target.name}/{counted_as(candidate)}",
        limit=target.tokens_per_day,
        retry_after=DAY_SECONDS - seconds,
    )


def make_later(candidate: Candidate, ids: Ids) -> Later:
    """What makes a task of a claim.

    The sender is the identity that signed, or whoever's token it is.
    """
    claim, sender = candidate.claim, candidate.caller.actor.name
    counted = sender
    if claim.proof is not None:
        sender, counted = claim.proof.sender, counted_as(candidate)
    return Later(
        id=ids.uuid(),
        sender=sender,
        quota=f"{TASKS}{candidate.target.name}/{counted}",
        callback=claim.callback,
    )


def unfinished(later: Later, limit: int) -> Quota:
    """The place that a task takes until it has ended."""
    return Quota(name=later.quota, limit=limit, take=1)
