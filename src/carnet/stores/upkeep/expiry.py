"""Ending turns that wait for an answer: it did not come in time, or the task was cancelled.

Law 1. A turn that waits longer than it may, or whose task was cancelled, fails, gives back what it
       held, and if it is a task writes its webhooks, in one transaction.
Law 2. What waits below a turn that has ended is ended with it, however deep; what waits elsewhere
       ends there when its own time is over.
Law 3. Several gateways may do it at once: the fence and the state decide.
"""

from collections.abc import Callable, Iterable
from typing import Final

from msgspec.structs import replace

from carnet.core.chain.turn import Turn
from carnet.core.messages.events import Failed, write_events
from carnet.core.people.identity import Payer
from carnet.errors import Cancelled, InterruptExpired
from carnet.faults import point
from carnet.ports.calls.tasks import StoredTask
from carnet.ports.calls.turns import Fenced, Tell, TurnFinish
from carnet.ports.money.budgets import exceeded, short_of
from carnet.ports.world.clock import Clock
from carnet.stores.calls.tasks import StoredTasks
from carnet.stores.database import Database
from carnet.stores.turn.callbacks import StoredCallbacks
from carnet.stores.turn.interrupts import raise_of
from carnet.stores.turn.row import SELECT_TURN, read_turn

AT_A_TIME: Final = 100
OVER: Final = Failed(InterruptExpired.code)
CANCELLED: Final = Failed(Cancelled.code)

Teller = Callable[[StoredTask, Failed], Tell]  # writes what is told of the end of a task

_OVER = (
    f"{SELECT_TURN} WHERE t.state = 'waiting' AND t.waits_until <= ? ORDER BY t.waits_until LIMIT ?"
)
# Few are cancelled and many may wait: a join would begin with those that wait.
_UNWANTED = (
    "SELECT k.turn FROM task k WHERE k.cancelled IS NOT NULL AND k.ended IS NULL"
    " AND (SELECT t.state FROM turn t WHERE t.n = k.turn) = 'waiting' LIMIT ?"
)
_NUMBERED = f"{SELECT_TURN} WHERE t.n = ?"
_WAITING = f"{_NUMBERED} AND t.state || '' = 'waiting'"
_BELOW = (
    f"{SELECT_TURN} WHERE t.run = (SELECT p.run FROM turn p WHERE p.n = ?)"  # noqa: S608  our own words
    " AND t.parent_n = ? AND t.state || '' = 'waiting'"
)
_OPEN = "SELECT data FROM interrupt WHERE turn = ? AND status || '' = 'open' ORDER BY place"
_EVENT_COUNT = (
    "SELECT COALESCE(MAX(last) + 1, 0) FROM journal WHERE turn = ? AND kind = 'events' AND n >"
    " COALESCE((SELECT MAX(n) FROM journal WHERE turn = ? AND kind = 'discard'), 0)"
)


class Expiry:
    """Ends turns that wait in vain. Only a gateway does it."""

    def __init__(
        self, database: Database, tasks: StoredTasks, callbacks: StoredCallbacks, clock: Clock
    ) -> None:
        self._database = database
        self._clock = clock
        self._tasks = tasks
        self._callbacks = callbacks
        self.teller: Teller | None = None  # a task waits on until there is one

    async def end(self, now: int) -> int:
        """End the turns whose time is over, or whose task was cancelled; how many there were."""
        ended = 0
        for (n,) in await self._database.fetch(_UNWANTED, (AT_A_TIME,)):
            for row in await self._database.fetch(_NUMBERED, (n,)):
                ended += await self._end(read_turn(row), CANCELLED, now)
        for row in await self._database.fetch(_OVER, (now, AT_A_TIME)):
            turn = read_turn(row)
            ended += await self._end(turn, await self._over(turn), now)
        return ended

    async def _over(self, turn: Turn) -> Failed:
        """How a turn ends whose time is over: where more of a budget was asked for, by that."""
        for (data,) in await self._database.fetch(_OPEN, (turn.n,)):
            asked = raise_of(data)
            if asked is not None:
                return Failed.of(exceeded(short_of(asked)))
        return OVER

    async def cancel(self, turns: Iterable[int], now: int) -> int:
        """End those of these turns that wait, and what waits below them; how many waited."""
        found = [row for n in turns for row in await self._database.fetch(_WAITING, (n,))]
        for row in found:
            await self._end(read_turn(row), CANCELLED, now)
        return len(found)

    async def end_below(self, turn: Turn) -> None:
        """End what waits that was called in a turn that has ended, in process."""
        await self._end_below(turn, self._clock.wall_us())

    async def _end_below(self, turn: Turn, now: int) -> None:
        for row in await self._database.fetch(_BELOW, (turn.n, turn.n)):
            await self._end(read_turn(row), CANCELLED, now)

    async def _end(self, turn: Turn, failed: Failed, now: int) -> bool:
        point("expire.each_turn")
        ((event_count,),) = await self._database.fetch(_EVENT_COUNT, (turn.n, turn.n))
        try:
            is_ended = await self._finish(_ended(turn, failed, event_count, now), failed)
        except Fenced:  # it was answered, or ended by another gateway, in this moment
            return False
        if is_ended:
            await self._end_below(turn, now)
        return is_ended

    async def _finish(self, end: TurnFinish, failed: Failed) -> bool:
        task = await self._tasks.kept(end.turn.n)
        if task is None:
            await self._database.finish(end)
        elif self.teller is not None:
            tell = self.teller(task, failed)
            await self._callbacks.finish(replace(end, tell=tell), tell)
        return task is None or self.teller is not None


def _ended(turn: Turn, failed: Failed, event_count: int, now: int) -> TurnFinish:
    return TurnFinish(
        turn=turn,
        state="failed",
        payer=Payer(account=turn.payer, quota=""),  # nothing is spent; the row says what it held
        events=write_events([failed]),
        first=event_count,
        last=event_count,
        debits=(),
        children_cost=0,
        reserve=0,
        now=now,
        code=failed.code,
        retryable=failed.retryable,
    )
