"""The jobs that wait for a writer, and the answers that go back to those who wait.

On the side of the event loop, whatever the writer behind it is: a thread or a task.

Law 1. What waits is bounded; what ends a turn is taken all the same, because it makes room.
Law 2. A claim whose caller went away is given back: the turn ends as unknown and may run again.
"""

import logging
from asyncio import AbstractEventLoop, Future
from collections.abc import Callable, Sequence
from typing import Any, Final

from carnet.core.turn import Turn
from carnet.errors import Overloaded, StorageUnavailable
from carnet.ports.turns import Claimed, TurnClaim, TurnFinish, Verdict, end_unknown
from carnet.stores.batches import Batch, Job, Outcome
from carnet.stores.database import Flush, Statement

_log = logging.getLogger(__name__)

MOST_WAITING: Final = 20_000  # jobs; beyond it the disk is slower than the callers


class Queue:
    """Jobs in, batches out; outcomes in, answers out."""

    def __init__(self, loop: AbstractEventLoop, arrived: Callable[[], None]) -> None:
        """`arrived` is told of every job."""
        self._loop = loop
        self._arrived = arrived
        self._next = Batch()
        self._waiting = 0
        self._trouble = ""
        self.refusal = ""  # why no more jobs are taken; empty while they are

    @property
    def trouble(self) -> str:
        """Why the last batch was not written; empty if it was."""
        return self.refusal or self._trouble

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits to be taken."""
        return not self._next.jobs()

    def claim(self, claim: TurnClaim) -> Future[Verdict]:
        """Claim a turn."""
        return self._submit(self._next.claims, claim)

    def append(self, flush: Flush) -> Future[None]:
        """Make events durable."""
        return self._submit(self._next.appends, flush)

    def finish(self, finish: TurnFinish) -> Future[Turn]:
        """End a turn."""
        return self._submit(self._next.finishes, finish)

    def write(self, statements: Sequence[Statement]) -> Future[list[int]]:
        """Run statements of the cold half."""
        return self._submit(self._next.writes, statements)

    def poll(self) -> Future[Any]:
        """Ask the writer for what it can tell without writing."""
        return self._submit(self._next.polls, None)

    def _submit(self, jobs: list[Job], payload: object) -> Future[Any]:
        if self.refusal:
            raise StorageUnavailable(self.refusal)
        if self._waiting >= MOST_WAITING and jobs is not self._next.finishes:
            raise Overloaded(f"{self._waiting} writes are waiting", retry_after=1)
        self._waiting += 1
        future = self._loop.create_future()
        jobs.append((payload, future))
        self._arrived()
        return future

    def take(self) -> Batch:
        """Everything that waits."""
        batch, self._next = self._next, Batch()
        return batch

    def put_back(self, claims: list[Job]) -> None:
        """Let claims wait for the next batch."""
        self._next.claims[:0] = claims

    def close(self) -> None:
        """Take no more jobs."""
        self.refusal = self.refusal or "the store is closed"

    def settle(self, outcomes: list[Outcome], trouble: str | None, refusal: str = "") -> None:
        """Answer those who wait. `trouble` None: nothing was to be written, which tells nothing."""
        self._waiting -= len(outcomes)
        if trouble is not None:
            if trouble and trouble != self._trouble:
                _log.error("the store was not written: %s", trouble)
            self._trouble = trouble
        self.refusal = self.refusal or refusal
        for (payload, future), answer in outcomes:
            if future.done():
                self._give_back(payload, answer)
            elif isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)

    def _give_back(self, payload: object, answer: object) -> None:
        if isinstance(payload, TurnClaim) and isinstance(answer, Claimed) and not self.refusal:
            self.finish(given_back(payload, answer.turn)).add_done_callback(heard)


def given_back(claim: TurnClaim, turn: Turn) -> TurnFinish:
    """The end of a turn that was claimed and then not run; a repeat will run it."""
    return end_unknown(turn, claim.payer, now=claim.now, reserve=claim.reserve)


def heard(future: Future[Turn]) -> None:
    """Take the answer of a job nobody waits for, so that an error in it is not called unheard."""
    if not future.cancelled():
        future.exception()
