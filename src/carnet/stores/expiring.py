"""Turns whose answer did not come in its time.

Law 1. One that waits longer than it may fails, gives back what it held, and if it is a task tells
       its addresses, in one transaction.
Law 2. Several gateways that do it at once do no harm: the fence and the state decide.
"""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from carnet.core.events import Failed, write_events
from carnet.core.identity import Payer
from carnet.core.turn import Turn
from carnet.errors import InterruptExpired
from carnet.faults import point
from carnet.ports.tasks import Task
from carnet.ports.turns import Fenced, Tell, TurnFinish
from carnet.stores.callbacks import StoredCallbacks
from carnet.stores.database import Database
from carnet.stores.rows import SELECT_TURN
from carnet.stores.tasks import StoredTasks
from carnet.stores.turn_row import read_turn

AT_A_TIME: Final = 100
END: Final = Failed(InterruptExpired.code)

Teller = Callable[[Task, Failed], Tell]  # writes what is told of the end of a task

_OVER = (
    f"{SELECT_TURN} WHERE t.state = 'waiting' AND t.waits_until <= ? ORDER BY t.waits_until LIMIT ?"
)
_SAID = (
    "SELECT COALESCE(MAX(last) + 1, 0) FROM journal WHERE turn = ? AND kind = 'events' AND n >"
    " COALESCE((SELECT MAX(n) FROM journal WHERE turn = ? AND kind = 'discard'), 0)"
)


class Expiring:
    """Ends what waits too long. Nobody but a gateway does it."""

    def __init__(self, database: Database, tasks: StoredTasks, callbacks: StoredCallbacks) -> None:
        self._database = database
        self._tasks = tasks
        self._callbacks = callbacks
        self.teller: Teller | None = None  # a task waits on until there is one

    async def end(self, now: int) -> int:
        """End the turns whose time is over; how many there were."""
        ended = 0
        for row in await self._database.fetch(_OVER, (now, AT_A_TIME)):
            turn = read_turn(row)
            point("expire.each_turn")
            ((said,),) = await self._database.fetch(_SAID, (turn.n, turn.n))
            try:
                ended += await self._finish(_expired(turn, said, now))
            except Fenced:  # it was answered, or ended by another gateway, in this moment
                continue
        return ended

    async def _finish(self, end: TurnFinish) -> bool:
        task = await self._tasks.kept(end.turn.n)
        if task is None:
            await self._database.finish(end)
        elif self.teller is not None:
            tell = self.teller(task, END)
            await self._callbacks.finish(replace(end, tell=tell), tell)
        return task is None or self.teller is not None


def _expired(turn: Turn, said: int, now: int) -> TurnFinish:
    return TurnFinish(
        turn=turn,
        state="failed",
        payer=Payer(account=turn.payer, purse=""),  # nothing is spent; the row says what it held
        events=write_events([END]),
        first=said,
        last=said,
        debits=(),
        children_cost=0,
        reserve=0,
        now=now,
        tokens_in=turn.tokens_in,
        tokens_out=turn.tokens_out,
        code=InterruptExpired.code,
    )
