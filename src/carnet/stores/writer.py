"""Group commit: one thread that writes, and a batch is whatever queued while it was busy.

An idle writer takes a single job at once; a busy one finds the next batch waiting. A batch is one
transaction (`batches.commit`); its answers go back to the event loop in one call.

Law 1. An answer leaves the thread only after the commit that made it true.
Law 2. A key comes once in a batch. The later claim waits for the next one and sees the first.
Law 3. A claim whose caller went away is never made, or given back by the queue.
"""

import threading
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable
from queue import SimpleQueue

from carnet.errors import StorageUnavailable
from carnet.stores.batches import Batch, Committed, Driver, Job, commit, refused
from carnet.stores.queue import Queue


class Writer:
    """The thread that empties a queue."""

    def __init__(self, driver: Driver, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self.queue = Queue(loop, self._on_arrival)
        self._inbox: SimpleQueue[Batch | None] = SimpleQueue()
        self._handing_over = False
        self._stopped: Future[None] = loop.create_future()
        self._driver = driver
        self._broken = ""  # the thread's own copy of the queue's refusal
        threading.Thread(target=self._work, name="carnet-writer", daemon=True).start()

    def _on_arrival(self) -> None:
        if not self._handing_over:
            self._handing_over = True
            # At the end of this turn of the loop: whoever runs in it is in the same batch.
            self._loop.call_soon(self._hand_over)

    def _hand_over(self) -> None:
        self._handing_over = False
        self._inbox.put(self.queue.take())

    async def stop(self) -> None:
        """Write what is queued, close the connection, end the thread."""
        if not self._stopped.done():
            self.queue.close()
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
            before = self._driver.written()
            done = self._serve(batch)
            outcomes = done.outcomes + [(job, None) for job in gone]
            # A batch that only looked something up does not tell whether the disk takes more.
            has_told = done.trouble or self._driver.written() != before
            trouble = done.trouble if has_told else None
            self._tell(self.queue.settle, outcomes, trouble, self._broken)

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
