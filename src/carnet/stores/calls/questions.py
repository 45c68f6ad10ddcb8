"""What turns ask for while they run, as the store keeps it: `carnet.ports.calls.questions`.

Law. The run is locked while they change, as it is by claims and ends: an answer is written either
     before a question is closed, or not at all. What the turn of somebody else asks is closed.
"""

from collections.abc import Collection
from functools import partial
from typing import Final

from carnet.core.chain.turn import Turn
from carnet.core.messages.interrupt import InterruptRecord
from carnet.faults import point
from carnet.ports.calls.questions import EarlyQuestions
from carnet.stores.database import Database
from carnet.stores.secrets.seal import beside
from carnet.stores.turn.interrupts import INSERT_EARLY, Interrupts

_LOCK: Final = "SELECT n FROM run WHERE n = (SELECT t.run FROM turn t WHERE t.n = ?)"
_KEEP_CALL: Final = (
    "INSERT INTO kept_call (turn, sealed, key_id) VALUES (?, ?, ?) ON CONFLICT (turn) DO NOTHING"
)
_CLOSE_LOST: Final = (
    "UPDATE interrupt SET status = 'expired' WHERE turn = ? AND status || '' = 'open'"
    " AND NOT EXISTS (SELECT 1 FROM turn t"
    " WHERE t.n = ? AND t.fence = ? AND t.state || '' = 'running')"
)
_CLOSE: Final = (
    "UPDATE interrupt SET status = 'expired'"
    " WHERE turn = ? AND id || '' = ? AND status || '' = 'open'"
)


class StoredQuestions:
    """The questions of turns that run."""

    def __init__(self, database: Database, interrupts: Interrupts) -> None:
        self._database = database
        self._interrupts = interrupts
        self._lock = _LOCK + database.row_lock

    async def ask(self, asking: EarlyQuestions) -> list[InterruptRecord]:
        """Let them be answered; all of the turn as they are then."""
        n, fence = asking.turn.n, asking.turn.fence
        sealing = partial(self._interrupts.early, asking)
        rows, call = await beside(len(asking.call_bytes), sealing)
        point("question.begin")
        await self._database.transact(
            [
                (self._lock, (n,)),
                *[(INSERT_EARLY, row) for row in rows],
                (_KEEP_CALL, call),
                (_CLOSE_LOST, (n, n, fence)),
            ]
        )
        point("question.asked")
        return await self.of(asking.turn)

    async def of(self, turn: Turn) -> list[InterruptRecord]:
        """All of a turn, as they are."""
        return await self._interrupts.of(turn.n)

    async def withhold(self, turn: Turn, ids: Collection[str]) -> list[InterruptRecord]:
        """Close those of these that nobody has answered; all of the turn as they are then."""
        closed = [(_CLOSE, (turn.n, name)) for name in sorted(ids)]
        await self._database.transact([(self._lock, (turn.n,)), *closed])
        point("question.withheld")
        return await self.of(turn)
