"""How much of a day's tokens has a sender used, and how many of its tasks are not finished yet?

The store counts. The name of a quota of tokens has the day in it: a new day begins with an
empty one. Tasks have one of each agent and sender: one is taken when a task is accepted, and given
back with its end, whichever that is.

Law 1. What a call uses is told at its end. So a sender that has anything left is answered, and one
       that has nothing left is refused until midnight, UTC.
Law 2. Only calls whose signature held are counted, whatever they ended in; calls that an agent
       makes for one of them in process use up the same quota.
Law 3. A task costs its sender a place in the queue from the claim on; who repeats one that is known
       takes no second place.
Law 4. The id of a task is drawn here, of at least 122 random bits: who knows it may ask how far it
       is.
"""

from datetime import date
from typing import Final

from carnet.core.money.amount import MOST_MICROS
from carnet.core.people.identity import Payer
from carnet.core.people.proof import SECOND_US
from carnet.core.sealed_call import Later
from carnet.guards.candidate import Candidate
from carnet.guards.limits import counted_as
from carnet.ports.calls.turns import TOKENS, Quota

DAY_SECONDS: Final = 86_400
_EPOCH: Final = date(1970, 1, 1).toordinal()


def daily_tokens(candidate: Candidate, most: int) -> Quota:
    """The tokens that a signed claim may use of today's, of which its agent allows so many."""
    days, seconds = divmod(candidate.now // SECOND_US, DAY_SECONDS)
    day = date.fromordinal(_EPOCH + days).isoformat()
    return Quota(
        name=f"{TOKENS}{day}/{candidate.target.name}/{counted_as(candidate)}",
        limit=most,
        retry_after=DAY_SECONDS - seconds,
    )


def unfinished(later: Later, limit: int) -> Quota:
    """The place that a task takes until it has ended."""
    return Quota(name=later.quota, limit=limit, take=1)


def quotas_of(
    tokens: Quota | None, later: Later | None, payer: Payer, tasks_per_sender: int | None
) -> tuple[Quota, ...]:
    """All that a claim uses, or is looked at for."""
    quotas = () if tokens is None else (tokens,)
    if payer.excess is not None:  # for what is owed there
        quotas = (*quotas, Quota(name=payer.excess, limit=MOST_MICROS))
    if later is None or tasks_per_sender is None:
        return quotas
    return (*quotas, unfinished(later, tasks_per_sender))
