"""Group commit: one thread that writes, and a batch is whatever queued while it was busy.

An idle writer takes a single job at once; a busy one finds the next batch waiting. A batch is one
transaction (`batches.commit`); its answers go back to the event loop in one call.

Law 1. An answer leaves the thread only after the commit that made it true.
Law 2. A key comes once in a batch. The later claim waits for the next one and sees the first.
Law 3. A claim whose caller went away is either never made or given back.
"""

import logging
import threading
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any, Final

from carnet.core.turn import Turn
from carnet.errors import Overloaded, StorageUnavailable
from carnet.ports.turns import Claimed, TurnClaim, TurnFinish, Verdict
from carnet.stores.batches import Batch, Committed, Driver, Job, Outcome, commit, refused
from carnet.stores.database import Flush, Statement

_log = logging.getLogger(__name__)

MOST_WAITING: Final = 20_000  # jobs; beyond it the disk is slower than the callers


class Writer:
    """The queue, on the side of the event loop, and the thread that empties it."""

    def __init__(self, driver: Driver, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._inbox: SimpleQueue[Batch | None] = SimpleQueue()
        self._next = Batch()
        self._handing_over = False
        self._waiting = 0
        self._refusal = ""  # why nothing is taken any more
        self._stopped: Future[None] = loop.create_future()
        self._driver = driver
        self._broken = ""  # the thread's own copy of the refusal
        self._trouble = ""  # why the last batch was not written
        threading.Thread(target=self._work, name="carnet-writer", daemon=True).start()

    @property
    def trouble(self) -> str:
        """Why the last batch was not written; empty if it was."""
        return self._refusal or self._trouble

    @property
    def refusal(self) -> str:
        """Why no more jobs are taken; empty while they are."""
        return self._refusal

    def claim(self, claim: TurnClaim) -> Future[Verdict]:
        return self._submit(self._next.claims, claim)

    def append(self, flush: Flush) -> Future[None]:
        return self._submit(self._next.appends, flush)

    def finish(self, finish: TurnFinish) -> Future[Turn]:
        return self._submit(self._next.finishes, finish)

    def write(self, statements: Sequence[Statement]) -> Future[list[int]]:
        return self._submit(self._next.writes, statements)

    def poll(self) -> Future[int]:
        return self._submit(self._next.polls, None)

    def _submit(self, jobs: list[Job], payload: object) -> Future[Any]:
        if self._refusal:
            raise StorageUnavailable(self._refusal)
        # What ends a turn is always taken: it makes room.
        if self._waiting >= MOST_WAITING and jobs is not self._next.finishes:
            raise Overloaded(f"{self._waiting} writes are waiting", retry_after=1)
        self._waiting += 1
        future = self._loop.create_future()
        jobs.append((payload, future))
        if not self._handing_over:
            self._handing_over = True
            # At the end of this turn of the loop: whoever runs in it is in the same batch.
            self._loop.call_soon(self._hand_over)
        return future

    def _hand_over(self) -> None:
        self._handing_over = False
        batch, self._next = self._next, Batch()
        self._inbox.put(batch)

    def _settle(self, outcomes: list[Outcome], trouble: str | None, refusal: str) -> None:
        self._waiting -= len(outcomes)
        if trouble is not None:  # None: nothing was to be written, which tells nothing
            if trouble and trouble != self._trouble:
                _log.error("the store was not written: %s", trouble)
            self._trouble = trouble
        self._refusal = self._refusal or refusal
        for (payload, future), answer in outcomes:
            if future.done():
                self._give_back(payload, answer)
            elif isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    def _give_back(self, payload: object, answer: object) -> None:
        if isinstance(payload, TurnClaim) and isinstance(answer, Claimed) and not self._refusal:
            self.finish(given_back(payload, answer.turn)).add_done_callback(heard)

    async def stop(self) -> None:
        """Write what is queued, close the connection, end the thread."""
        if not self._stopped.done():
            self._refusal = self._refusal or "the store is closed"
            self._hand_over()
            self._inbox.put(None)
        await self._stopped

    # From here on the writer's own thread.

    def _work(self) -> None:
        try:
            self._serve_all()
            self._driver.close()
        finally:
            self._tell(self._stopped.set_result, None)

    def _serve_all(self) -> None:
        later: list[Job] = []
        is_open = True
        while is_open or later:
            batch = Batch()
            batch.claims = later
            if is_open and not later:
                is_open = self._gather(batch)
            while is_open and not self._inbox.empty():
                is_open = self._gather(batch)
            gone = batch.cancelled()
            later = batch.repeats()
            done = self._serve(batch)
            outcomes = done.outcomes + [(job, None) for job in gone]
            trouble = done.trouble if batch.changes() else None
            self._tell(self._settle, outcomes, trouble, self._broken)

    def _gather(self, batch: Batch) -> bool:
        arrived = self._inbox.get()
        if arrived is not None:
            batch.take(arrived)
        return arrived is not None

    def _serve(self, batch: Batch) -> Committed:
        changes = batch.changes()
        done = Committed([])
        if self._broken:
            done = Committed(refused(changes, StorageUnavailable, self._broken), self._broken)
        elif changes:
            done = commit(self._driver, batch)
        if done.is_final:
            self._broken = done.trouble
        polled = [(job, self._poll()) for job in batch.polls]
        return done._replace(outcomes=done.outcomes + polled) if polled else done

    def _poll(self) -> int | StorageUnavailable:
        try:
            return self._driver.changes()
        except Exception as error:  # noqa: BLE001  a thread has no caller: the one who asked is told
            return StorageUnavailable(f"{type(error).__name__}: {error}")

    def _tell(self, function: Callable[..., object], *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:  # the loop is closed: nobody is left to be told
            self._inbox.put(None)


def given_back(claim: TurnClaim, turn: Turn) -> TurnFinish:
    """The end of a turn that was claimed and then not run; a repeat will run it."""
    return TurnFinish(
        turn=turn,
        state="unknown",
        payer=claim.payer,
        events=b"",
        first=0,
        last=0,
        debits=(),
        children_cost=0,
        reserve=claim.reserve,
        now=claim.now,
        retryable=True,
    )


def heard(future: Future[Turn]) -> None:
    """Take the answer of a job nobody waits for, so that an error in it is not called unheard."""
    if not future.cancelled():
        future.exception()
