"""Forgetting, beside the calls, what has had its time: ended tasks, letters, the purses of a day.

Law 1. Small transactions, found by their indexes; a look that finds nothing costs a few questions.
Law 2. Several gateways that do it at once do no harm: what one forgot, the other does not find.
"""

from datetime import UTC, datetime
from typing import Final, NamedTuple

from msgspec import Struct

from carnet.faults import point
from carnet.ports.work.turns import TASKS, TOKENS
from carnet.ports.world.clock import Clock
from carnet.stores.database import Database, marks
from carnet.stores.outbox import StoredOutbox
from carnet.stores.turn.interrupts import WAIT_HOURS
from carnet.stores.work.tasks import StoredTasks

EVERY_SECONDS: Final = 60.0
TASK_HOURS: Final = 24
LETTER_DAYS: Final = 30
HOUR: Final = 3_600_000_000  # microseconds
AT_A_TIME: Final = 200

# The names are compared by their bytes, in both databases: `0` follows `/`.
_OF_OLD_DAYS = f"name >= '{TOKENS}' AND name < ?"
_OF_NO_TASK = f"name >= '{TASKS}' AND name < '{TASKS[:-1]}0' AND spent = 0 AND reserved = 0"
_OLD_DAYS = f"SELECT name FROM purse WHERE {_OF_OLD_DAYS} ORDER BY name LIMIT ?"  # noqa: S608
_NO_TASKS = f"SELECT name FROM purse WHERE name > ? AND {_OF_NO_TASK} ORDER BY name LIMIT ?"  # noqa: S608


class Hours(NamedTuple):
    """How long what has no end of its own is kept."""

    tasks: int = TASK_HOURS  # after their end
    waiting: int = WAIT_HOURS  # turns, for an answer


HOURS: Final = Hours()


class Forgotten(Struct, frozen=True, kw_only=True):
    """What was forgotten."""

    tasks: int = 0
    letters: int = 0
    purses: int = 0


class Forgetting:
    """What one store forgets by itself."""

    def __init__(
        self,
        database: Database,
        tasks: StoredTasks,
        outbox: StoredOutbox,
        clock: Clock,
        *,
        task_hours: int = TASK_HOURS,
    ) -> None:
        self._database = database
        self._tasks = tasks
        self._outbox = outbox
        self._clock = clock
        self._task_hours = task_hours
        self._done: float | None = None

    async def keep(self) -> None:
        """Forget what is due, each minute."""
        now = self._clock.monotonic()
        if self._done is None or now - self._done >= EVERY_SECONDS:
            self._done = now
            await self.forget()

    async def forget(self) -> Forgotten:
        """Forget all that is due."""
        now = self._clock.wall_us()
        return Forgotten(
            tasks=await self._tasks.forget(now - self._task_hours * HOUR),
            letters=await self._outbox.forget(now - LETTER_DAYS * 24 * HOUR),
            purses=await self._forget_days(now) + await self._forget_empty(),
        )

    async def _forget_days(self, now: int) -> int:
        """What was used of tokens on earlier days: a new day has a purse of its own."""
        today = datetime.fromtimestamp(now // 1_000_000, UTC).date().isoformat()
        gone = 0
        while found := await self._database.fetch(_OLD_DAYS, (f"{TOKENS}{today}", AT_A_TIME)):
            gone += await self._delete([name for (name,) in found])
        return gone

    async def _forget_empty(self) -> int:
        """The purses of senders none of whose tasks waits or runs."""
        gone, last = 0, ""
        while found := await self._database.fetch(_NO_TASKS, (last, AT_A_TIME)):
            last = found[-1][0]
            gone += await self._delete([name for (name,) in found], _OF_NO_TASK)
        return gone

    async def _delete(self, names: list[str], still: str = "1 = 1") -> int:
        """Delete them in the order in which every batch locks them, if they are as they were."""
        which = f"name IN ({marks(len(names))})"
        locked = f"SELECT name FROM purse WHERE {which} ORDER BY name{self._database.row_lock}"  # noqa: S608
        counts = await self._database.transact(
            [(locked, names), (f"DELETE FROM purse WHERE {which} AND {still}", names)]  # noqa: S608
        )
        point("purge.mid")
        return counts[1]
