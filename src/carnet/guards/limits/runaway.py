"""How many calls has one caller made within one run?

The store bounds the calls of a run for each payer. A peer that vouches for payers could name a new
one for every call; this bound holds whoever pays.

Law 1. Counted in this process, for the runs that were seen last; the store's own count is the one
       that survives and that processes share.
Law 2. A repeat of a known turn is no new call.
"""

from typing import Final

from carnet.core.memo import Memo

MOST_RUNS: Final = 8192

Key = tuple[str, str]


class Runaway:
    """The calls of each caller in each run."""

    def __init__(self, most_calls: int) -> None:
        """`most_calls` is what one caller may make in one run."""
        self._most_calls = most_calls
        self._counts: Memo[Key, int] = Memo(MOST_RUNS)

    def enter(self, run: str, actor: str) -> bool:
        """Count one more; False if there is no room for a new one."""
        key = (run, actor)
        count = self._counts.get(key, 0)
        if count >= self._most_calls:
            return False
        self._counts.keep(key, count + 1)
        return True

    def leave(self, run: str, actor: str) -> None:
        """Count one less: it was refused after all, or was known."""
        key = (run, actor)
        count = self._counts.get(key, 0)
        if count > 1:
            self._counts[key] = count - 1
        else:
            self._counts.pop(key, None)
