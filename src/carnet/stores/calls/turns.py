"""Turns over a database: the port `carnet.ports.calls.turns.Turns`.

Beside them are the rows by which runs are searched, written after the calls, and the watch that
wakes the readers of a run while it happens. The indexes are on these rows and never on `turn`: a
claim and an end cost three times as much with six of them.

Law 1. A turn is found within a second of its claim, and again of its end: its number is noted when
       it changes here, and the rows of all noted turns are written together.
Law 2. What a process had noted when it died is found at the next start, and by the process that
       ends its turns.
Law 3. A change is never missed: it is noted from the moment the watch begins, also while its reader
       is busy. A watch does not say what changed; the reader asks the store. What other processes
       write is not noted here: a reader is woken each `poll_seconds` to ask, or less often if there
       are many.
"""

# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

import asyncio
from asyncio import CancelledError, Future
from collections.abc import Awaitable, Iterable, Sequence
from functools import partial
from typing import Final, Self

from msgspec.structs import replace

from carnet.core.chain.turn import TRANSITIONS, Turn
from carnet.core.messages.interrupt import InterruptRecord
from carnet.errors import RunNotFound
from carnet.ports.calls.turns import Claimed, TurnClaim, TurnFinish, Verdict
from carnet.ports.world.records import READER
from carnet.stores.calls.journal import pieces
from carnet.stores.commit.queue import discard_result, given_back
from carnet.stores.database import Database, Flush, marks
from carnet.stores.secrets.seal import beside
from carnet.stores.turn.callbacks import StoredCallbacks
from carnet.stores.turn.interrupts import Interrupts
from carnet.stores.turn.outbound_calls import shown
from carnet.stores.turn.row import SELECT_TURN, read_turn
from carnet.stores.turn.sealed_calls import CallSeal

WATCH_SECONDS: Final = 0.01  # between two looks, for each who watches


class RunWatches:
    """The runs that somebody watches. Costs one look at an empty table when nobody does."""

    def __init__(self, *, poll_seconds: float | None = None) -> None:
        self._poll_seconds = poll_seconds
        self._by_run: dict[str, set[RunWatch]] = {}
        self._count = 0

    @property
    def pause(self) -> float | None:
        """The seconds between two looks of a reader; None where it need not look by itself."""
        if self._poll_seconds is None:
            return None
        return max(self._poll_seconds, WATCH_SECONDS * self._count)

    def on(self, run: str) -> "RunWatch":
        """A watch on one run, to be used in a `with` statement."""
        return RunWatch(self, run)

    def touch(self, turns: Iterable[Turn]) -> None:
        """These turns were changed in a commit."""
        if self._by_run:
            for turn in turns:
                self._wake(turn.run)

    def touch_all(self) -> None:
        """Another process wrote; it is not known what."""
        for run in self._by_run:
            self._wake(run)

    def _wake(self, run: str) -> None:
        for watch in self._by_run.get(run, ()):
            watch.wake()

    def add(self, watch: "RunWatch") -> None:
        self._by_run.setdefault(watch.run, set()).add(watch)
        self._count += 1

    def discard(self, watch: "RunWatch") -> None:
        left = self._by_run.get(watch.run, set())
        left.discard(watch)
        self._count -= 1
        if not left:
            self._by_run.pop(watch.run, None)


class RunWatch:
    """One reader of one run."""

    def __init__(self, watches: RunWatches, run: str) -> None:
        self.run = run
        self._watches = watches
        self._changed = asyncio.Event()

    def wake(self) -> None:
        """Note a change."""
        self._changed.set()

    async def changed(self, seconds: float) -> bool:
        """Wait for a change since the last call; False if none came in time."""
        poll = self._watches.pause
        is_polling = poll is not None and poll < seconds
        try:
            async with asyncio.timeout(poll if is_polling else seconds):
                await self._changed.wait()
        except TimeoutError:
            return is_polling
        self._changed.clear()
        return True

    def __enter__(self) -> Self:
        self._watches.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._watches.discard(self)


AT_A_TIME: Final = 500
AGAIN_SECONDS: Final = 0.1
MOST_NOTED: Final = 100_000  # beyond it the newest turns are compared instead
LOOK_BACK: Final = 50_000  # turns, the newest, that are compared after a start

_COLUMNS: Final = "turn, run, agent, actor, speaker, state, code, correlation, created, payer"
_OF_TURN: Final = (
    "t.n, t.run, t.agent, t.actor, t.speaker, t.state, t.code, t.correlation, t.created,"
    " r.account || '@' || r.issuer"
)
_WRITE: Final = (
    f"INSERT INTO turn_seen ({_COLUMNS}) SELECT {_OF_TURN} FROM turn t JOIN run r ON r.n = t.run"
    " WHERE t.n IN ({}) ORDER BY t.n"
    " ON CONFLICT (turn) DO UPDATE SET state = excluded.state, code = excluded.code"
    " WHERE turn_seen.state <> excluded.state"
    " OR COALESCE(turn_seen.code, '') <> COALESCE(excluded.code, '')"
)
_NEWEST: Final = "SELECT COALESCE(MAX(n), 0) FROM turn"
_MISSING: Final = (
    "SELECT t.n FROM turn t LEFT JOIN turn_seen s ON s.turn = t.n"
    " WHERE t.n > ? AND (s.turn IS NULL OR s.state <> t.state"
    " OR COALESCE(s.code, '') <> COALESCE(t.code, '')) ORDER BY t.n LIMIT ?"
)
_STALE: Final = (  # of turns that were written before they ended
    "SELECT s.turn FROM turn_seen s JOIN turn t ON t.n = s.turn"
    " WHERE s.state = '{}' AND t.state <> s.state AND s.turn > ? ORDER BY s.turn LIMIT ?"
)


class SearchRows:
    """Writes the search rows of the turns of one store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._noted: dict[int, None] = {}
        self._is_behind = True  # until it has looked for what others left
        self._written = 0.0  # when somebody last asked for them, by the loop's clock
        self._writing: asyncio.Task[None] | None = None  # many who ask at once share one write

    async def fresh(self) -> None:
        """Write what was noted here before somebody looks for it; seldom, however often asked."""
        if self._writing is None:
            if not self._noted:
                return
            self._writing = asyncio.create_task(self._write_soon())
        await asyncio.shield(self._writing)

    async def _write_soon(self) -> None:
        READER.set(None)  # it is for all who ask
        loop = asyncio.get_running_loop()
        await asyncio.sleep(max(0.0, self._written + AGAIN_SECONDS - loop.time()))
        self._writing = None  # what is noted from now on may not be seen by this write
        self._written = loop.time()
        await self.keep()

    def note(self, turns: Sequence[Turn]) -> None:
        """Turns have changed."""
        if len(self._noted) >= MOST_NOTED:
            self._is_behind = True
            return
        for turn in turns:
            self._noted[turn.n] = None

    def look_back(self) -> None:
        """A process has died: look for what it had noted."""
        self._is_behind = True

    async def keep(self) -> None:
        """Write what was noted."""
        noted, self._noted = sorted(self._noted), {}
        try:
            await self._write(noted)
        except BaseException:
            self._noted |= dict.fromkeys(noted)
            raise
        if self._is_behind:
            self._is_behind = False
            try:
                await self._catch_up()
            except BaseException:
                self._is_behind = True
                raise

    async def _write(self, turns: Sequence[int]) -> None:
        for i in range(0, len(turns), AT_A_TIME):
            some = turns[i : i + AT_A_TIME]
            await self._database.execute(_WRITE.format(marks(len(some))), some)

    async def _catch_up(self) -> None:
        ((newest,),) = await self._database.fetch(_NEWEST)
        await self._write_all(_MISSING, max(0, newest - LOOK_BACK))
        for state in ("running", "queued", "waiting"):
            await self._write_all(_STALE.format(state), 0)

    async def _write_all(self, query: str, last: int) -> None:
        while found := await self._database.fetch(query, (last, AT_A_TIME)):
            last = found[-1][0]
            await self._write([n for (n,) in found])


_ENDS: Final = TRANSITIONS["running"] - {"running"}
_DATA: Final = 5  # the place of `data` in a row of the journal

_EVENTS: Final = (  # the condition on a row `j`
    "j.turn = ? AND j.kind = 'events'"
    " AND j.n > COALESCE((SELECT MAX(n) FROM journal WHERE turn = ? AND kind = 'discard'), 0)"
    " AND j.first >= ? AND (SELECT fence FROM turn WHERE n = ?) = ?"
)
_SIZE: Final = f"SELECT COALESCE(SUM(LENGTH(j.data)), 0) FROM journal j WHERE {_EVENTS}"
_RELOAD = f"{SELECT_TURN} WHERE t.n = ?"
_CALLS_OUT: Final = (
    "SELECT c.turn FROM turn t JOIN turn c ON c.run = t.run AND c.parent_n = t.n WHERE t.n = ?"
    " UNION SELECT child_turn FROM outbound WHERE turn = ?"
)


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
            task = partial(self._call_seal.seal, claim, claim.task)
            claim = replace(claim, task=await beside(len(claim.task.call_bytes), task))
        elif claim.listed is not None and claim.listed.callback is not None:
            claim = replace(claim, listed=self._call_seal.seal_listed(claim.listed))
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
            end = given_back(claim, verdict.turn, verdict.undo)
            self._database.finish(end).add_done_callback(discard_result)

    async def append(self, turn: Turn, first: int, last: int, events: bytes) -> None:
        """Make a batch of events durable. Raises Fenced."""
        await self._database.append(Flush(turn, first, last, events))
        self._watches.touch((turn,))

    def finish(self, finish: TurnFinish) -> Awaitable[Turn]:
        """End a turn; gives the record with its frozen costs. Raises Fenced."""
        if finish.state not in _ENDS:
            raise ValueError(f"a turn cannot finish as {finish.state}")
        if finish.state == "waiting":
            return self._wait(finish)
        if finish.tell is not None:
            return self._callbacks.finish(finish, finish.tell)
        return self._database.finish(finish)

    async def _wait(self, finish: TurnFinish) -> Turn:
        if finish.tell is not None:  # those who are told what a task waits for
            addresses = await self._callbacks.of_turn(finish.turn.n)
            more = finish.tell(addresses) if addresses else ()
            finish = replace(finish, deliveries=(*finish.deliveries, *more), tell=None)
        sealed = await beside(len(finish.call_bytes), partial(self._interrupts.seal, finish))
        return await self._database.finish(sealed)

    async def events(self, turn: Turn, since: int = 0, *, is_piece: bool = False) -> list[bytes]:
        """The event batches of this attempt from event number `since` on, oldest first.

        None of an attempt that another has replaced. With `is_piece` no more than a piece of them.
        """
        found: list[bytes] = []
        args = (turn.n, turn.n, since, turn.n, turn.fence)
        async for rows in pieces(self._database, _EVENTS, args):
            found += [row[_DATA] for row in await shown(self._database, rows)]
            if is_piece:
                break
        return found

    async def size(self, turn: Turn) -> int:
        """How many bytes of events this attempt has."""
        args = (turn.n, turn.n, 0, turn.n, turn.fence)
        ((size,),) = await self._database.fetch(_SIZE, args)
        return int(size)

    async def interrupts(self, turn: Turn) -> list[InterruptRecord]:
        """What a turn waits for, or waited for, in the order in which it asked."""
        return await self._interrupts.of(turn.n)

    async def question(self, claim: TurnClaim) -> InterruptRecord | None:
        """What the turn of a claim waits for that brings an answer; None if it is none of those."""
        return await self._interrupts.answered_by(claim)

    async def calls_out(self, turn: Turn) -> list[str]:
        """The ids under which earlier attempts of a turn have called others."""
        return [name for (name,) in await self._database.fetch(_CALLS_OUT, (turn.n, turn.n))]

    async def reload(self, turn: Turn) -> Turn:
        """The record as it is now."""
        rows = await self._database.fetch(_RELOAD, (turn.n,))
        if not rows:
            raise RunNotFound(f"turn {turn.n} is no longer kept")
        return read_turn(rows[0])
