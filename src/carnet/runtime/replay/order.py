"""When the calls of a turn are answered that is run again: as they were answered then.

Which answer the agent had seen when it went on follows from the notes that its turn has of calls,
in the order in which their answers came (`CHILD`).

Law 1. Of calls that were under way at the same time, an answer waits for those that came before it.
Law 2. A call whose answer the agent has not seen then, because it was cancelled or had enough
       others, is not answered now either: it waits until it is cancelled.
Law 3. Nobody waits for ever: an agent that does something else now is let go on, and what it says
       is compared.
"""

import asyncio
from collections.abc import Sequence
from itertools import pairwise, takewhile
from typing import Final

from carnet.core.chain.turn import Turn

HELD_SECONDS: Final = 1.0  # that an answer waits for others that do not come
_APART_SECONDS: Final = 0.001  # in which an agent takes an answer before it is given the next one
_SECOND_US: Final = 1_000_000

SeenCall = tuple[int, Turn]  # its place among the calls of its turn, and its record


class AnswerOrder:
    """Those of one turn."""

    def __init__(self, seen: Sequence[SeenCall], *, is_apart: bool) -> None:
        """`seen` are the calls that were answered, in that order.

        `is_apart`: an answer is taken before the next one comes, else all that wait come together.
        """
        self._order = tuple(seen)
        self._seen = {index: rank for rank, (index, _) in enumerate(seen)}
        self._is_apart = is_apart
        self._answered: set[int] = set()
        self._changed = asyncio.Event()

    @property
    def is_mixed(self) -> bool:
        """Whether answers came in another order than their calls were made in."""
        return any(after < before for before, after in pairwise(self._seen))

    def is_seen(self, index: int) -> bool:
        """Whether the agent has seen the answer to the call in this place."""
        return index in self._seen

    async def wait(self, index: int, call: Turn) -> None:
        """Wait until the call in this place is answered."""
        if index not in self._seen:
            await asyncio.sleep(under_way(call) + HELD_SECONDS)
            return
        before = self._before(index, call)
        while before - self._answered:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), HELD_SECONDS)
            except TimeoutError:
                break
        if self._is_apart and any(each > index for each in before):
            await asyncio.sleep(_APART_SECONDS)

    def tell(self, index: int) -> None:
        """The call in this place is answered."""
        self._answered.add(index)
        self._changed.set()

    def _before(self, index: int, call: Turn) -> set[int]:
        """The calls that were answered before this one while it was under way."""
        earlier = (self._order[rank] for rank in range(self._seen[index] - 1, -1, -1))
        return {each for each, _ in takewhile(lambda seen: _is_ended_since(call, seen), earlier)}


def _is_ended_since(call: Turn, seen: SeenCall) -> bool:
    """Whether a call ended after another was made; what was seen before it ended before, too."""
    return call.created < (seen[1].ended or 0)


def under_way(call: Turn) -> float:
    """For how many seconds a call was."""
    return max(0, (call.ended or call.created) - call.created) / _SECOND_US
