"""Forgetting the nonces of signed requests when they have expired.

They are written by the claim (`claim_rules`); here they only go away. So do delegations that were
good for one call: they live longer, and are looked at again each minute.

Law 1. A nonce is deleted when it has expired by the clock and when it has been here for
       `KEEP_SECONDS` by a clock that never jumps: a clock that is set forward frees none.
Law 2. Row numbers are in the order of arrival, so a mark that was noted then names all that were
       here: nothing is searched for, however many there are.
Law 3. Small transactions, and not many in a row: claims go on between them.
"""

from collections import deque
from typing import Final

from carnet.faults import point
from carnet.ports.world.clock import Clock
from carnet.stores.database import Database

MARK_SECONDS: Final = 60.0
KEEP_SECONDS: Final = 480.0  # the longest life is 365 s (R11); the rest is for clocks that lag
BUSY_SECONDS: Final = 2.0  # of deleting at a time; other upkeep waits for it
AT_A_TIME: Final = 500  # some 15 ms of a writer, where a million are kept
DAY: Final = 86_400_000_000  # microseconds

_LAST = "SELECT COALESCE(MAX(n), 0) FROM nonce"
_NEXT = (
    "SELECT COALESCE(MAX(c.n), 0) FROM"
    " (SELECT n FROM nonce WHERE n > ? AND n <= ? ORDER BY n LIMIT ?) AS c"
)
_FORGET = "DELETE FROM nonce WHERE n > ? AND n <= ? AND expires <= ?"


class Nonces:
    """The used nonces of one store."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._marks: deque[tuple[float, int]] = deque()  # when it was noted, the last number then
        self._noted: float | None = None
        self._due = 0  # what has that number or a lower one may go
        self._done = 0  # and up to there it has gone

    async def keep(self) -> None:
        """Note how far the numbers have come, each minute; delete what is due, for a while."""
        now = self._clock.monotonic()
        if self._noted is None:
            await self._forget_old()
        if self._noted is None or now - self._noted >= MARK_SECONDS:
            self._marks.append((now, await self._last()))
            self._noted = now
        while self._marks and now - self._marks[0][0] >= KEEP_SECONDS:
            self._due = self._marks.popleft()[1]
            self._done = 0  # what had not expired the last time is looked at again
        while self._done < self._due and self._clock.monotonic() - now < BUSY_SECONDS:
            self._done, _ = await self._forget(self._done, self._due, self._clock.wall_us())

    async def _last(self) -> int:
        rows = await self._database.fetch(_LAST)
        last: int = rows[0][0]
        return last

    async def _forget_old(self) -> None:
        """What a gateway left that never ran for long enough: a day is past every clock's error."""
        last, before = await self._last(), self._clock.wall_us() - DAY
        done, gone = 0, 1
        while done < last and gone:
            done, gone = await self._forget(done, last, before)

    async def _forget(self, after: int, last: int, before: int) -> tuple[int, int]:
        """Delete a few that expired before a time; up to which number, and how many."""
        rows = await self._database.fetch(_NEXT, (after, last, AT_A_TIME))
        upto: int = rows[0][0]
        if not upto:
            return last, 0
        gone = await self._database.execute(_FORGET, (after, upto, before))
        point("purge.mid")
        return upto, gone
