"""The jobs that wait for a writer, and the answers that go back to those who wait.

On the side of the event loop, whatever the writer behind it is: a thread or a task.

Law 1. What waits is bounded; what ends a turn is taken all the same, because it makes room, and
       so are the few questions by which a gateway sees whether its store answers.
Law 2. A claim whose caller went away is given back: the turn ends as unknown and may run again. One
       that brought an answer waits for it again. That of a task is kept: nobody waits for it.
Law 3. Nobody waits for a claim much longer than `WAIT_SECONDS`. One that the writer has not begun
       is taken out and was never made; one that it has begun may still be made, which is what its
       caller is told, and is given back then. What ends a turn waits as long as it takes.
Law 4. While others write too, what one caller has queued makes no batch longer than its share
       (`backlog`). Who is alone has whole batches.
"""

import logging
from asyncio import AbstractEventLoop, Event, Future, InvalidStateError, TimerHandle
from collections.abc import Callable, Container, Sequence, Set
from functools import partial
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from carnet.core.chain.turn import Turn
from carnet.errors import CarnetError, OutcomeUnknown, Overloaded, StorageUnavailable
from carnet.ports.calls.turns import Claimed, TurnClaim, TurnFinish, Use, Verdict, end_unknown
from carnet.ports.money.budgets import BudgetUndo
from carnet.stores.commit.backlog import ALL, SHARE, Backlog
from carnet.stores.commit.batch import Batch, Job, Outcome
from carnet.stores.database import Flush, Statement
from carnet.stores.turn.interrupts import unanswered

_log = logging.getLogger(__name__)

MOST_WAITING: Final = 20_000  # jobs; beyond it the disk is slower than the callers
WAIT_SECONDS: Final = 3.5
LOOKS: Final = 7  # at what waits, in that time
BESIDE_SECONDS: Final = 10.0  # that somebody has its share after others have written

_CLAIMS, _APPENDS, _FINISHES, _WRITES, _POLLS = range(5)
_VITAL: Final = (_FINISHES, _POLLS)


class _Waiting(NamedTuple):
    """Jobs that came at about the same time and may be refused: claims and questions."""

    since: float
    claims: list[Job]
    polls: list[Job]


class Queue:
    """Jobs in, batches out; outcomes in, answers out."""

    def __init__(
        self,
        loop: AbstractEventLoop,
        arrived: Callable[[], None],
        most_waiting: int = MOST_WAITING,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        """`arrived` is told of the first job since others were taken."""
        self._wait_seconds = wait_seconds
        self._loop = loop
        self._arrived = arrived
        self._has_woken = False
        self._next = Batch()
        self._kinds = self._next.kinds()
        self._taken: Batch | None = None  # what the writer has taken since the last look
        self.waiting = 0  # jobs that were not answered; while none is being written, those to take
        self._most_waiting = most_waiting
        self._backlogs = Backlog(_of_claim), Backlog(_of_append), Backlog(_of_finish)
        self._is_behind = False  # whether anything waits there
        self._latest: Set[str] = frozenset()  # who had claims or ends in the last batch of several
        self._beside_until = 0.0  # until when those are thought of who wrote beside one another
        self._older: list[_Waiting] = []  # what waited at each of the last looks
        self._begun: list[_Waiting] = []  # what the writer has taken last, but for its backlog
        self._timer: TimerHandle | None = None  # one for all who wait
        self._trouble = ""
        self.refusal = ""  # why no more jobs are taken; empty while they are
        self.refusing = Event()  # set with it
        self.changed: Callable[[Sequence[Turn]], None] = _nobody  # told before those who wait
        # Claim a turn; make events durable; end a turn.
        self.claim: Callable[[TurnClaim], Future[Verdict]] = partial(self._submit, _CLAIMS)
        self.append: Callable[[Flush], Future[None]] = partial(self._submit, _APPENDS)
        self.finish: Callable[[TurnFinish], Future[Turn]] = partial(self._submit, _FINISHES)

    @property
    def trouble(self) -> str:
        """Why the last batch was not written; empty if it was."""
        return self.refusal or self._trouble

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits to be taken."""
        claims, appends, finishes, writes, polls = self._kinds
        return not (claims or finishes or appends or writes or polls or self._is_behind)

    def is_shared(self) -> bool:
        """Whether several have written of late."""
        return self._loop.time() < self._beside_until

    def write(self, statements: Sequence[Statement]) -> Future[list[int]]:
        """Run statements of the cold half."""
        return self._submit(_WRITES, statements)

    def poll(self) -> Future[Any]:
        """Ask the writer for what it can tell without writing."""
        return self._submit(_POLLS, None)

    def _submit(self, kind: int, payload: object) -> Future[Any]:
        if self.refusal:
            raise StorageUnavailable(self.refusal)
        if self.waiting >= self._most_waiting and kind not in _VITAL:
            raise Overloaded(f"{self.waiting} writes are waiting", retry_after=1)
        self.waiting += 1
        future = self._loop.create_future()
        self._kinds[kind].append((payload, future))
        if not self._has_woken:
            self._has_woken = True
            self._arrived()
        if self._timer is None:
            self._timer = self._loop.call_later(self._wait_seconds / LOOKS, self._look)
        return future

    def take(self) -> Batch:
        """What waits, of each caller its share; whoever takes it begins with it."""
        batch, self._next = self._next, Batch()
        self._kinds = self._next.kinds()
        self._has_woken = False
        self._taken = batch
        self._begun = self._begun + self._older if self._is_behind else self._older
        self._older = []
        if self._is_behind or batch.claims[1:] or batch.appends[1:] or batch.finishes[1:]:
            self._share(batch)
        return batch

    def take_all(self) -> Batch:
        """Everything that waits."""
        batch = self.take()
        claims, appends, finishes = self._backlogs
        batch.claims += claims.rest()
        batch.appends += appends.rest()
        batch.finishes += finishes.rest()
        self._is_behind = False
        return batch

    def _share(self, batch: Batch) -> None:
        claims, appends, finishes = self._backlogs
        now = self._loop.time()
        most = SHARE if now < self._beside_until else ALL
        batch.claims = claims.share(batch.claims, most)
        batch.appends = appends.share(batch.appends, most)
        batch.finishes = finishes.share(batch.finishes, most)
        callers = claims.room.keys() | finishes.room.keys()
        if callers and (len(callers) > 1 or callers != self._latest):
            if self._latest or len(callers) > 1:  # else nobody has written before
                self._beside_until = now + BESIDE_SECONDS
            self._latest = callers
        self._is_behind = bool(claims.waiting or appends.waiting or finishes.waiting)

    def put_back(self, claims: list[Job]) -> None:
        """Let claims wait for the next batch."""
        self._next.claims[:0] = claims

    def put_back_ends(self, finishes: list[Job]) -> None:
        """Let the ends of turns wait for the next batch."""
        self._next.finishes[:0] = finishes

    def close(self) -> None:
        """Take no more jobs."""
        self.refuse("the store is closed")

    def refuse(self, reason: str) -> None:
        """Take no more jobs, for this reason unless there was one before."""
        self.refusal = self.refusal or reason
        self.refusing.set()

    def settle(self, outcomes: list[Outcome], trouble: str | None) -> None:
        """Answer those who wait. `trouble` None: nothing was to be written, which tells nothing."""
        self.waiting -= len(outcomes)
        if trouble is not None and trouble != self._trouble:
            self._note_trouble(trouble)
        turns: list[Turn] = []
        for (payload, future), answer in outcomes:
            try:
                match answer:
                    case Exception():
                        future.set_exception(answer)
                        continue
                    case Claimed():
                        turns += (answer.turn,)
                    case Turn():
                        turns += (answer,)
                future.set_result(answer)
            except InvalidStateError:  # nobody waits for it any more
                self._give_back(payload, answer)
        if turns:
            self.changed(turns)

    def _note_trouble(self, trouble: str) -> None:
        self._trouble = trouble
        if trouble:
            _log.error("the store was not written: %s", trouble)

    def _look(self) -> None:
        """Answer those who have waited too long; look again while anybody waits."""
        self._timer = None
        if not self.waiting:
            return
        now = self._loop.time()
        if self._taken is not None:
            self._begun.append(_Waiting(now, self._taken.claims, self._taken.polls))
            self._taken = None
        behind = self._backlogs[_CLAIMS]
        claims = self._next.claims + behind.jobs()
        self._older.append(_Waiting(now, claims, self._next.polls[:]))
        late = now - self._wait_seconds
        _refuse(self._begun, late, behind.waiting, has_begun=True)
        _refuse(self._older, late, behind.waiting, has_begun=False)
        self._begun = [waiting for waiting in self._begun if waiting.since > late]
        self._older = [waiting for waiting in self._older if waiting.since > late]
        self._timer = self._loop.call_later(self._wait_seconds / LOOKS, self._look)

    def _give_back(self, payload: object, answer: object) -> None:
        if not isinstance(payload, TurnClaim) or payload.task is not None or self.refusal:
            return
        if isinstance(answer, Claimed):
            end = given_back(payload, answer.turn, answer.undo)
            self.finish(end).add_done_callback(discard_result)


def _nobody(_: Sequence[Turn]) -> None:
    """Wants to be told."""


def _of_claim(claim: TurnClaim) -> tuple[str, int]:
    payer = claim.admitted.payer
    return payer.excess or payer.quota, len(claim.request)


def _of_append(flush: Flush) -> tuple[str, int]:
    turn = flush.turn
    in_process = turn.actor.startswith("agent:")  # which calls for many
    return str(turn.payer) if in_process else turn.actor, len(flush.events)


def _of_finish(finish: TurnFinish) -> tuple[str, int]:
    payer = finish.payer
    return payer.excess or payer.quota or finish.turn.actor, len(finish.events)


def _refuse(
    waiting: list[_Waiting], late: float, behind: Container[Future[Any]], *, has_begun: bool
) -> None:
    """Refuse who has waited too long; those `behind` were not begun in any case."""
    for since, claims, polls in waiting:
        if since > late:
            break
        for _, future in claims:
            if not future.done():
                future.set_exception(_lateness(has_begun=has_begun and future not in behind))
        for _, future in polls:  # to ask again changes nothing
            if not future.done():
                future.set_exception(_lateness(has_begun=False))


def _lateness(*, has_begun: bool) -> CarnetError:
    if has_begun:
        return OutcomeUnknown("the store has not answered in time")
    return Overloaded("the store is busy with others", retry_after=1)


def given_back(claim: TurnClaim, turn: Turn, undo: BudgetUndo | None = None) -> TurnFinish:
    """The end of a turn that was claimed and then not run; a repeat will run it.

    `undo` is what its answer has changed in budgets.
    """
    admitted = claim.admitted
    end = end_unknown(
        turn, admitted.payer, now=claim.now, reserve=admitted.reserve, has_begun=False
    )
    if claim.resolution is not None:  # which took nothing but the answer
        return unanswered(end, claim.resolution, undo)
    taken = tuple(Use(quota.name, -quota.take) for quota in claim.quotas if quota.take)
    return replace(end, uses=taken) if taken else end


def discard_result(future: Future[Turn]) -> None:
    """Take the result of a job that nobody waits for, so that its error is not reported as lost."""
    if not future.cancelled():
        future.exception()
