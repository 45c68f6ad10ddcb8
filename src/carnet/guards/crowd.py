"""How many calls are open at once?

Law. Counted in this process, per caller and in all; whoever enters leaves, whatever happens.
"""

from carnet.errors import Overloaded, TooManyCalls


class Crowd:
    """The open calls of each caller."""

    def __init__(self, *, per_caller: int, in_all: int) -> None:
        """Both bounds hold."""
        self._per_caller = per_caller
        self._in_all = in_all
        self._open: dict[str, int] = {}
        self.total = 0

    def enter(self, actor: str) -> None:
        """Count one more, or refuse."""
        here = self._open.get(actor, 0)
        if here >= self._per_caller:
            raise TooManyCalls(limit=self._per_caller, retry_after=1)
        if self.total >= self._in_all:
            raise Overloaded(retry_after=1)
        self._open[actor] = here + 1
        self.total += 1

    def leave(self, actor: str) -> None:
        """Count one less."""
        left = self._open.pop(actor) - 1
        if left:
            self._open[actor] = left
        self.total -= 1
