"""Has this sender used up its rate?

The store counts, in the transaction of the claim, calls whose signature held. What stands here is a
memory of what it said: until then the sender's requests need not be verified to be refused.

Law 1. It may only refuse, and never longer than the store said. What an agent is asked for by all,
       or a token has used up, is no sender's fault and is not remembered here.
Law 2. Forged requests are counted nowhere: they can use up nobody's rate.
Law 3. It is bounded: the sender that was refused first is forgotten first.
"""

from typing import Final

from carnet.core.memo import Memo
from carnet.core.people.proof import SECOND_US
from carnet.errors import RateLimited
from carnet.guards.candidate import Candidate

MOST_REMEMBERED: Final = 4096


def bucket_of(sender: str) -> str:
    """Where the calls of a sender are counted."""
    return f"sender:{sender}"


class WithinRate:
    """Refuses a sender that was told to wait, while it must."""

    def __init__(self, most: int = MOST_REMEMBERED) -> None:
        """Remember at most so many senders."""
        self._until: Memo[str, int] = Memo(most)

    def __call__(self, candidate: Candidate, /) -> None:
        """Judge by what is remembered."""
        sender = candidate.proof.sender
        if sender not in self._until:
            return
        left = self._until[sender] - candidate.now
        if left > 0:
            raise RateLimited(retry_after=-(-left // SECOND_US))
        del self._until[sender]

    def remember(self, sender: str, now: int, seconds: int) -> None:
        """The store told the sender to wait so long."""
        self._until.keep(sender, now + seconds * SECOND_US)

    def __len__(self) -> int:
        """How many senders are remembered."""
        return len(self._until)
