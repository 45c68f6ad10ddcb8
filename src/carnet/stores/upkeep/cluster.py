"""What gateways want of one another's turns: the port `carnet.ports.world.cluster.Cluster`.

Law. A request is a row of `wish`, and its gateway looks at it each second: nothing
is sent that could be lost.
"""

import asyncio
from collections.abc import Callable, Collection
from typing import Final

from carnet.core.chain.turn import Turn
from carnet.stores.database import Database, marks

POLL_SECONDS: Final = 0.1

_ATTEND = (
    "INSERT INTO wish (turn, fence, kind, worker) VALUES (?, ?, 'read', ?) ON CONFLICT DO NOTHING"
)
_LEAVE = "DELETE FROM wish WHERE turn = ? AND fence = ? AND kind = 'read' AND worker = ?"
_READING = (
    "SELECT 1 FROM wish t WHERE t.turn = ? AND t.fence = ? AND t.kind = 'read' AND NOT ({}) LIMIT 1"
)
_CANCEL = (
    "INSERT INTO wish (turn, fence, kind, worker) SELECT t.n, t.fence, 'cancel', ? FROM turn t"
    " WHERE t.n IN ({}) AND t.state = 'running' AND t.worker <> ? ON CONFLICT DO NOTHING"
)
_GOES_ON = (
    "SELECT t.n FROM turn t JOIN wish w ON w.turn = t.n AND w.fence = t.fence"
    " WHERE w.kind = 'cancel' AND t.state = 'running'"
)
_TAKE_BACK = "DELETE FROM wish WHERE kind = 'cancel' AND worker = ? AND turn IN ({})"
_ALIVE = "SELECT COUNT(*) FROM (SELECT id AS worker FROM worker) t WHERE NOT ({})"
_FORGET = "DELETE FROM wish AS t WHERE {}"


class StoredCluster:
    """Requests over a database that several gateways share."""

    def __init__(self, database: Database, worker: str) -> None:
        self._database = database
        self._worker = worker
        self._stop: Callable[[Collection[int]], None] = lambda _: None
        self._left: set[tuple[int, int]] = set()  # of which nobody could be told yet
        self._sending = asyncio.Lock()  # who comes back must not be overtaken by its own farewell

    def listen(self, stop: Callable[[Collection[int]], None]) -> None:
        """Call `stop` with the turns of ours that others want cancelled."""
        self._stop = stop

    async def look(self) -> None:
        """See what others want of our turns, and tell them what they could not be told before."""
        await self._tell_left()
        wanted = await self._database.fetch(f"{_GOES_ON} AND t.worker = ?", (self._worker,))
        if wanted:
            self._stop({n for (n,) in wanted})

    async def count(self) -> int:
        """How many gateways use the store at the moment, this one included."""
        rows = await self._database.fetch(_ALIVE.format(self._database.abandoned))
        return int(rows[0][0])

    async def forget(self) -> None:
        """Drop the requests of gateways that are gone."""
        await self._database.execute(_FORGET.format(self._database.abandoned))

    async def attend(self, turn: Turn) -> None:
        """Say that a turn of another gateway is read here."""
        async with self._sending:
            self._left.discard((turn.n, turn.fence))
            await self._database.execute(_ATTEND, (turn.n, turn.fence, self._worker))

    async def leave(self, turn: Turn) -> None:
        """Say that it is read here no more."""
        self._left.add((turn.n, turn.fence))
        await self._tell_left()

    async def _tell_left(self) -> None:
        async with self._sending:
            while self._left:
                key = self._left.pop()
                try:
                    await self._database.execute(_LEAVE, (*key, self._worker))
                except BaseException:
                    self._left.add(key)
                    raise

    async def are_reading(self, turn: Turn) -> bool:
        """Whether another gateway reads a turn of ours."""
        query = _READING.format(self._database.abandoned)
        return bool(await self._database.fetch(query, (turn.n, turn.fence)))

    async def cancel(self, turns: Collection[int], *, seconds: float) -> int:
        """Have those of these turns cancelled that run elsewhere; how many ended in that time."""
        listed = marks(len(turns))
        requested = await self._database.execute(
            _CANCEL.format(listed), (self._worker, *turns, self._worker)
        )
        if not requested:
            return 0
        query = f"{_GOES_ON} AND w.worker = ? AND t.n IN ({listed})"
        going_on = requested
        try:
            for _ in range(max(1, int(seconds / POLL_SECONDS))):
                await asyncio.sleep(POLL_SECONDS)
                going_on = len(await self._database.fetch(query, (self._worker, *turns)))
                if not going_on:
                    break
        finally:
            await self._database.execute(_TAKE_BACK.format(listed), (self._worker, *turns))
        return requested - going_on
