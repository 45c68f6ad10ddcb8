"""Group commit on PostgreSQL: one connection that writes, and a batch is whatever queued meanwhile.

It is the twin of `writer`, on the event loop instead of a thread: nothing here blocks.

Law 1. An answer is given only after the commit that made it true.
Law 2. A connection lost during the commit is unknown to everybody in the batch; lost before, it
       is `StorageUnavailable`, and nothing was written. The next batch connects anew.
Law 3. If a row breaks the batch, its halves are written by themselves, until it is alone.
Law 4. No wait is without an end: a lock that others hold is `Overloaded` at the deadline, and a
       database that cannot be reached refuses everybody who waits for it at once.
"""

import asyncio
import logging
from asyncio import AbstractEventLoop
from collections.abc import Awaitable, Callable
from typing import Final, Literal, Protocol

from msgspec.structs import replace

import carnet.faults
from carnet.errors import CarnetError, Internal, OutcomeUnknown, Overloaded, StorageUnavailable
from carnet.stores.commit.batch import Batch, Committed, Job, pass_last_points, pass_points, refused
from carnet.stores.commit.queue import MOST_WAITING, Queue
from carnet.stores.database import Row
from carnet.stores.postgres.batch import HotBatch
from carnet.stores.turn.finish_rules import Seals, Shard

_log = logging.getLogger(__name__)

CONNECT_SECONDS: Final = 0.9  # a database that is down is noticed within a second
BATCH_SECONDS: Final = 4.0  # for a whole batch; the server's own timeouts come before it
MOST_CLAIMS: Final = 1000  # in a batch; more only makes the others wait
MOST_ATTEMPTS: Final = 3  # of a batch that fell to a deadlock with somebody who does not sort

# row: a value that cannot be held. again: rolled back by the database, may be tried at once.
# busy: a timeout on the server. store: anything else it said. lost: it says nothing any more.
Fault = Literal["row", "again", "busy", "store", "lost"]


class WriterSession(Protocol):
    """One connection."""

    @property
    def is_closed(self) -> bool: ...
    async def query(self, text: str, *args: object) -> list[Row]: ...
    async def begin(self) -> None: ...
    async def commit(self) -> None: ...
    async def rollback(self) -> None: ...
    async def close(self) -> None: ...

    def drop(self) -> None:
        """Let go at once, whatever it is doing."""

    def blame(self, error: Exception) -> Fault:
        """Whose fault an error is."""

    def name(self, error: Exception) -> str:
        """An error in words that hold no value of a row."""


class PostgresWriter:
    """The queue, and the task that empties it."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[WriterSession]],
        worker: str,
        seals: Seals,
        loop: AbstractEventLoop,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self._connect = connect
        self._worker = worker
        self._shard = Shard(seals, worker)
        self._arrived = asyncio.Event()
        self.queue = Queue(loop, self._arrived.set, most_waiting)
        self._session: WriterSession | None = None
        self.lease_us = 0  # how long the worker's lease lasts once it is renewed; 0: it has none
        self._task = loop.create_task(self._work(), name="carnet-writer")

    async def stop(self) -> None:
        """Write what is queued and let the connection go."""
        self.queue.close()
        self._arrived.set()
        await asyncio.wait([self._task])

    async def _work(self) -> None:
        later: list[Job] = []
        while True:
            if not later:
                if self.queue.refusal and self.queue.is_empty:
                    break
                await self._arrived.wait()
            batch = self._take(later)
            gone = batch.cancelled()
            later = batch.repeats()
            try:
                done = await self._serve(batch)
            except Exception as error:  # noqa: BLE001  the task must go on: others wait for it
                _log.exception("a batch was not served")
                self._drop()
                self._shard.leave()
                trouble = f"a batch was not served: {type(error).__name__}"
                done = Committed(refused(batch.jobs(), OutcomeUnknown, trouble), trouble)
            outcomes = done.outcomes + [(job, None) for job in gone]
            self.queue.settle(outcomes, done.trouble)
        if self._session is not None:
            await self._session.close()

    def _take(self, later: list[Job]) -> Batch:
        batch = self.queue.take()
        self._arrived.clear()
        claims = later + batch.claims
        batch.claims = claims[:MOST_CLAIMS]
        self.queue.put_back(claims[MOST_CLAIMS:])
        if self.queue.refusal or not self.queue.is_empty:
            self._arrived.set()
        return batch

    async def _serve(self, batch: Batch) -> Committed:
        changes = batch.changes()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                session = await self._begun()
                if not changes:
                    await session.rollback()
        except Exception as error:  # noqa: BLE001  whatever it is, nobody in the batch was written
            self._drop()
            trouble = f"the database cannot be reached: {type(error).__name__}"
            jobs = self._all_waiting(batch)
            return Committed(refused(jobs, StorageUnavailable, trouble), trouble)
        done = await self._commit(session, batch) if changes else Committed([])
        polled = [(job, None) for job in batch.polls]
        return replace(done, outcomes=done.outcomes + polled) if polled else done

    def _all_waiting(self, batch: Batch) -> list[Job]:
        """Also those who came while the connection was sought: they need not find out again."""
        return batch.jobs() + self.queue.take_all().jobs()

    async def _begun(self) -> WriterSession:
        """A connection on which a transaction has begun; a new one if the last is gone."""
        if self._session is not None and not self._session.is_closed:
            try:
                await self._session.begin()
            except Exception as error:
                if self._session.blame(error) != "lost":
                    raise
            else:
                return self._session
        self._drop()
        self._session = await self._connect()
        await self._session.begin()
        return self._session

    def _drop(self) -> None:
        if self._session is not None:
            self._session.drop()
            self._session = None

    async def _commit(self, session: WriterSession, batch: Batch, attempt: int = 1) -> Committed:
        """Write a batch; the transaction has begun."""
        try:
            pass_points(batch, claims="t1.begin", appends="event.before_t2", finishes="t3.begin")
            async with asyncio.timeout(BATCH_SECONDS):
                outcomes = await HotBatch(
                    session, self._worker, batch, self._shard, lease_us=self.lease_us
                ).apply()
            pass_points(batch, claims="t1.before_commit", finishes="t3.before_commit")
        except Exception as error:  # noqa: BLE001  whatever it is, nobody in the batch was written
            return await self._undone(session, batch, error, attempt)
        try:
            async with asyncio.timeout(BATCH_SECONDS):
                await session.commit()
        except Exception as error:  # noqa: BLE001  whatever it is, the batch may be written or not
            session.drop()
            self._shard.leave()
            trouble = f"a commit failed: {session.name(error)}"
            return Committed(refused(batch.changes(), OutcomeUnknown, trouble), trouble)
        self._shard.keep()
        if carnet.faults.is_armed:
            pass_last_points(batch)
        return Committed(outcomes)

    async def _undone(
        self, session: WriterSession, batch: Batch, error: Exception, attempt: int
    ) -> Committed:
        fault = session.blame(error)
        trouble = session.name(error)
        self._shard.back()
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await session.rollback()
        except Exception:  # noqa: BLE001  it cannot be used any more; the next batch connects anew
            session.drop()
            if fault == "row":
                fault = "lost"
        if fault == "row" and len(batch.changes()) > 1:
            return await self._halves(session, batch)
        if fault == "again" and attempt < MOST_ATTEMPTS:
            return await self._once_more(session, batch, attempt + 1)
        if fault == "row":
            broken = f"the store cannot hold this row: {trouble}"
            return Committed(refused(batch.changes(), Internal, broken))
        return Committed([(job, _refusal(fault, trouble)) for job in batch.changes()], trouble)

    async def _halves(self, session: WriterSession, batch: Batch) -> Committed:
        first, second = _split(batch)
        done = await self._once_more(session, first, 1)
        rest = await self._once_more(session, second, 1)
        return Committed(done.outcomes + rest.outcomes, rest.trouble or done.trouble)

    async def _once_more(self, session: WriterSession, batch: Batch, attempt: int) -> Committed:
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await session.begin()
        except Exception as error:  # noqa: BLE001  whatever it is, nobody in the batch was written
            session.drop()
            trouble = session.name(error)
            return Committed(refused(batch.changes(), StorageUnavailable, trouble), trouble)
        return await self._commit(session, batch, attempt)


def _refusal(fault: Fault, trouble: str) -> CarnetError:
    if fault in {"busy", "again"}:
        return Overloaded(f"the database is busy: {trouble}", retry_after=1)
    return StorageUnavailable(trouble)


def _split(batch: Batch) -> tuple[Batch, Batch]:
    """Two batches of about the same size, in the same order."""
    first, second = Batch(), Batch()
    left = len(batch.changes()) // 2
    for kind in ("claims", "appends", "finishes"):
        jobs: list[Job] = getattr(batch, kind)
        setattr(first, kind, jobs[:left])
        setattr(second, kind, jobs[left:])
        left = max(0, left - len(jobs))
    return first, second
