"""How much of a day's tokens has this sender used?

The store counts, in a purse that has the day in its name: a new day begins with an empty one.

Law 1. What a call uses is told at its end. So a sender that has anything left is answered, and one
       that has nothing left is refused until midnight, UTC.
Law 2. Only calls whose signature held are counted, whatever they ended in; calls that an agent
       makes for one of them in process use up the same purse.
Law 3. A peer can give itself as many names as it likes: they share one purse and one rate.
"""

from datetime import date
from typing import Final

from carnet.core.people.address import AGENT
from carnet.core.people.proof import SECOND_US
from carnet.guards.candidate import Candidate
from carnet.ports.work.turns import TOKENS, Quota

DAY_SECONDS: Final = 86_400
_EPOCH: Final = date(1970, 1, 1).toordinal()


def counted_as(candidate: Candidate) -> str:
    """The sender whose rate and purses a signed claim uses."""
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
        purse=f"{TOKENS}{day}/{target.name}/{counted_as(candidate)}",
        limit=target.tokens_per_day,
        retry_after=DAY_SECONDS - seconds,
    )
