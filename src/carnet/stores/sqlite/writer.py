"""Group commit: one thread that writes, and a batch is whatever queued while it was busy.

An idle writer takes a single job at once; a busy one finds the next batch waiting. A batch is one
transaction (`batches`); its answers go back to the event loop in one call. Those who are answered
soon have more to write, and so a writer that is busy with many waits for them, as long as they
come: with half as many batches, half as many pages are written.

Law 1. An answer leaves the thread only after the commit that made it true.
Law 2. A key comes once in a batch. The later claim waits for the next one and sees the first.
Law 3. A claim whose caller went away is never made, or given back by the queue.
Law 4. A lock that another process holds makes nobody wait longer than `BUSY_SECONDS`: then all who
       wait for it are refused, also those who came later. What ends a turn waits on: its answer
       was given by the agent and is not thrown away.
Law 5. A batch waits for others only after one that was for several, and while some come: for
       `TURNS` of the event loop at the most, beside others for a few. No timer is set.
"""

import logging
import threading
import time
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

from carnet.errors import OutcomeUnknown, Overloaded, StorageUnavailable
from carnet.stores.commit.batch import (
    Batch,
    Committed,
    Driver,
    Job,
    Outcome,
    abort,
    prepare,
    refused,
    seal,
)
from carnet.stores.commit.queue import MOST_WAITING, Queue

_log = logging.getLogger(__name__)

BUSY_SECONDS: Final = 3.0  # less than callers wait, so that they are told why
BUSY_LOOK_SECONDS: Final = 0.02
TURNS: Final = 16  # of the loop: in each, a caller begins with four requests at the most
TURNS_BESIDE: Final = 4  # where others wait too
QUIET_TURNS: Final = 3  # in which none came: from its claim to its end, a short call takes three


class SqliteWriter:
    """A queue, and the thread that empties it."""

    def __init__(
        self, driver: Driver, loop: AbstractEventLoop, most_waiting: int = MOST_WAITING
    ) -> None:
        self._loop = loop
        self.queue = Queue(loop, self._on_arrival, most_waiting)
        self._inbox: SimpleQueue[tuple[Batch, list[Job]] | None] = SimpleQueue()
        self._is_planned = False
        self._is_busy = False  # the thread has a batch
        self._is_stopping = False
        self._turns = self._quiet = 0  # that the next batch may still wait: in all, for the next
        self._had_several = False  # the last batch
        self._seen = 0  # jobs at the last look
        self._stopped: Future[None] = loop.create_future()
        self._driver = driver
        self._broken = ""  # the thread's own copy of the queue's refusal
        threading.Thread(target=self._work, name="carnet-writer", daemon=True).start()

    async def stop(self) -> None:
        """Write what is queued, close the connection, end the thread."""
        if not self._is_stopping:
            self._is_stopping = True
            self.queue.close()
            self._go_on()
        await self._stopped

    def _on_arrival(self) -> None:
        if not self._is_busy and not self._is_planned:
            self._is_planned = True
            self._turns = self._seen = 0
            if self._had_several:
                self._turns = TURNS_BESIDE if self.queue.is_shared() else TURNS
            # At the end of this turn of the loop: whoever runs in it is in the same batch.
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        """Hand what waits to the thread, if it is free and no more is awaited."""
        self._is_planned = False
        if self._is_busy:
            return
        if self.queue.waiting:
            if self._turns and self._awaits_more():
                self._is_planned = True
                self._loop.call_soon(self._go_on)
                return
            self._is_busy = True
            batch = self.queue.take()
            gone = batch.cancelled() if batch.claims else []
            if len(batch.claims) > 1 and (later := batch.repeats()):
                self.queue.put_back(later)
            self._inbox.put((batch, gone))
        elif self._is_stopping:
            self._inbox.put(None)

    def _awaits_more(self) -> bool:
        self._turns -= 1
        if self._seen != self.queue.waiting:
            self._seen, self._quiet = self.queue.waiting, QUIET_TURNS
        elif self._quiet:
            self._quiet -= 1
        else:
            return False
        return not self._is_stopping

    def _settle(self, done: Committed, trouble: str | None) -> None:
        self._is_busy = False
        late = self._turn_away(done) if done.is_busy else []
        if done.is_final:
            self.queue.refuse(done.trouble)
        outcomes = done.outcomes + late
        self._had_several = len(outcomes) > 1
        self.queue.settle(outcomes, trouble)
        if self._had_several and self.queue.waiting:
            self._on_arrival()
        else:
            self._go_on()

    def _turn_away(self, done: Committed) -> list[Outcome]:
        """Refuse whoever waits behind a batch that could not begin, except for ends of turns."""
        waiting = self.queue.take_all()
        waiting.finishes[:0] = done.waiting
        if not self._is_stopping:  # else there is no next time
            self.queue.put_back_ends(waiting.finishes)
            waiting.finishes = []
        return refused(waiting.jobs(), Overloaded, done.trouble)

    # From here on the writer's own thread.

    def _work(self) -> None:
        written = self._driver.written()
        try:
            while (taken := self._inbox.get()) is not None:
                batch, gone = taken
                done = self._serve(batch)
                for job in gone:
                    done.outcomes.append((job, None))
                # A batch that only looked something up does not tell whether the disk takes more.
                before, written = written, self._driver.written()
                trouble = done.trouble if done.trouble or written != before else None
                self._tell(self._settle, done, trouble)
            self._driver.close()
        finally:
            self._tell(self._stopped.set_result, None)

    def _serve(self, batch: Batch) -> Committed:
        try:
            if self._broken:
                refusals = refused(batch.changes(), StorageUnavailable, self._broken)
                done = Committed(refusals, self._broken)
            elif batch.claims or batch.finishes or batch.appends or batch.writes:
                done = self._commit(batch)
            else:
                done = Committed([])
        except Exception as error:  # noqa: BLE001  the thread must go on: others wait for it
            _log.exception("a batch was not served")
            self._broken = f"a batch was not served: {type(error).__name__}"
            outcomes = refused(batch.jobs(), OutcomeUnknown, self._broken)
            return Committed(outcomes, self._broken, is_final=True)
        if done.is_final:
            self._broken = done.trouble
        for job in batch.polls:
            done.outcomes.append((job, self._poll()))
        return done

    def _commit(self, batch: Batch) -> Committed:
        deadline = time.monotonic() + BUSY_SECONDS
        try:
            self._driver.begin()
        except Exception as error:  # noqa: BLE001  whatever it is, nothing has been written
            failure = self._begin_later(error, deadline)
            if failure is not None:
                return self._not_begun(batch, failure)
        prepared = prepare(self._driver, batch)
        if type(prepared) is Committed:
            return prepared
        return seal(self._driver, batch, prepared)

    def _begin_later(self, failure: Exception, deadline: float) -> Exception | None:
        """Begin a transaction as soon as others let go of the file; what failed if they do not."""
        while self._driver.blame(failure) == "busy" and time.monotonic() < deadline:
            time.sleep(BUSY_LOOK_SECONDS)
            try:
                self._driver.begin()
            except Exception as error:  # noqa: BLE001  whatever it is, nothing has been written
                failure = error
            else:
                return None
        return failure

    def _not_begun(self, batch: Batch, failure: Exception) -> Committed:
        if self._driver.blame(failure) != "busy":
            return abort(self._driver, batch, failure)
        trouble = "another process keeps the database locked"
        waiting, batch.finishes = batch.finishes, []
        outcomes = refused(batch.changes(), Overloaded, trouble)
        return Committed(outcomes, trouble, is_busy=True, waiting=waiting)

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
