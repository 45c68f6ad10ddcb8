"""Turns over a database: the port `carnet.ports.work.turns.Turns`."""

from asyncio import CancelledError, Future
from collections.abc import Awaitable, Sequence
from typing import Final

from msgspec.structs import replace

from carnet.core.chain.turn import TRANSITIONS, Turn
from carnet.errors import RunNotFound
from carnet.ports.work.turns import Claimed, InterruptRecord, TurnClaim, TurnFinish, Verdict
from carnet.stores.commit.queue import discard_result, given_back
from carnet.stores.database import Database, Flush
from carnet.stores.turn.callbacks import StoredCallbacks
from carnet.stores.turn.interrupts import Interrupts
from carnet.stores.turn.journal import verified
from carnet.stores.turn.lookup import SELECT_TURN
from carnet.stores.turn.outbound_calls import shown
from carnet.stores.turn.row import read_turn
from carnet.stores.turn.sealed_calls import CallSeal
from carnet.stores.work.search import SearchRows
from carnet.stores.work.watch import RunWatches

_ENDS: Final = TRANSITIONS["running"] - {"running"}
_DATA: Final = 5  # the place of `data` in a row of the journal

_EVENTS = (
    "SELECT n, turn, kind, first, last, data, crc FROM journal WHERE turn = ? AND kind = 'events'"
    " AND n > COALESCE((SELECT MAX(n) FROM journal WHERE turn = ? AND kind = 'discard'), 0)"
    " AND first >= ? AND (SELECT fence FROM turn WHERE n = ?) = ? ORDER BY n"
)
_RELOAD = f"{SELECT_TURN} WHERE t.n = ?"


class StoredTurns:
    """The hot operations, and what replay and attach read."""

    def __init__(
        self,
        database: Database,
        watches: RunWatches,
        call_seal: CallSeal,
        interrupts: Interrupts,
        callbacks: StoredCallbacks,
        search_rows: SearchRows,
    ) -> None:
        self._callbacks = callbacks
        self._search_rows = search_rows
        self._interrupts = interrupts
        self._database = database
        self._watches = watches
        self._call_seal = call_seal
        database.tell(self._changed)

    def _changed(self, turns: Sequence[Turn]) -> None:
        """What was claimed or ended is committed."""
        self._search_rows.note(turns)
        self._watches.touch(turns)

    async def claim(self, claim: TurnClaim) -> Verdict:
        """Claim a turn, or learn why not."""
        if claim.task is not None:
            claim = replace(claim, task=self._call_seal.seal(claim, claim.task))
        if claim.resolution is not None:
            sealed = self._interrupts.seal_answer(claim.resolution)
            claim = replace(claim, resolution=sealed)
        claiming = self._database.claim(claim)
        try:
            return await claiming
        except CancelledError:
            self._give_back(claim, claiming)
            raise

    def _give_back(self, claim: TurnClaim, claiming: Future[Verdict]) -> None:
        """End a turn that was claimed in the moment its caller went away. A task stays."""
        if not claiming.done() or claiming.cancelled() or claiming.exception() is not None:
            return  # the writer gives back what it claims later
        verdict = claiming.result()
        if type(verdict) is Claimed and claim.task is None:
            self._database.finish(given_back(claim, verdict.turn)).add_done_callback(discard_result)

    async def append(self, turn: Turn, first: int, last: int, events: bytes) -> None:
        """Make a batch of events durable. Raises Fenced."""
        await self._database.append(Flush(turn, first, last, events))
        self._watches.touch((turn,))

    def finish(self, finish: TurnFinish) -> Awaitable[Turn]:
        """End a turn; gives the record with its frozen costs. Raises Fenced."""
        if finish.state == "waiting":
            finish = self._interrupts.seal(finish)
        if finish.state not in _ENDS:
            raise ValueError(f"a turn cannot finish as {finish.state}")
        if finish.tell is not None:
            return self._callbacks.finish(finish, finish.tell)
        return self._database.finish(finish)

    async def events(self, turn: Turn, since: int = 0) -> list[bytes]:
        """The event batches of this attempt from event number `since` on, oldest first.

        None of an attempt that another has replaced.
        """
        args = (turn.n, turn.n, since, turn.n, turn.fence)
        rows = await self._database.fetch(_EVENTS, args)
        return [row[_DATA] for row in await shown(self._database, list(verified(rows)))]

    async def interrupts(self, turn: Turn) -> list[InterruptRecord]:
        """What a turn waits for, or waited for, in the order in which it asked."""
        return await self._interrupts.of(turn.n)

    async def reload(self, turn: Turn) -> Turn:
        """The record as it is now."""
        rows = await self._database.fetch(_RELOAD, (turn.n,))
        if not rows:
            raise RunNotFound(f"turn {turn.n} is no longer kept")
        return read_turn(rows[0])
