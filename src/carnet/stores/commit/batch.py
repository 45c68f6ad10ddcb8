"""A batch of jobs, and committing it as one transaction.

Law 1. If a row breaks the batch, the batch is rolled back and repeated row by row, each behind its
       own savepoint; only the broken one is told.
Law 2. A failed commit is unknown to everybody in the batch, and the store takes no more writes. A
       full disk is not that: nothing was written, and the next batch may find room again.
"""

from asyncio import Future
from collections.abc import Callable, Sequence
from typing import Any, Literal, Protocol, final

from msgspec import Struct, field

import carnet.faults
from carnet.errors import CarnetError, Internal, OutcomeUnknown, StorageUnavailable
from carnet.faults import point
from carnet.ports.calls.turns import Fenced, TurnClaim, TurnFinish, Verdict
from carnet.stores.database import Flush, Statement
from carnet.stores.turn.finish_rules import Ended

Fault = Literal["row", "full", "busy", "store"]
Job = tuple[Any, Future[Any]]
Outcome = tuple[Job, Any]


class Driver(Protocol):
    """What the writer asks of a database; nobody else calls it."""

    def begin(self) -> None: ...
    def commit(self) -> None: ...
    def rollback(self) -> None: ...
    def savepoint(self) -> None: ...
    def release(self) -> None: ...
    def undo(self) -> None: ...
    def close(self) -> None: ...
    def claim(self, claims: Sequence[TurnClaim]) -> list[Verdict]: ...
    def append(self, flushes: Sequence[Flush]) -> list[Fenced | None]: ...
    def finish(self, finishes: Sequence[TurnFinish]) -> list[Ended]: ...
    def write(self, statements: Sequence[Statement]) -> list[int]: ...

    def changes(self) -> int:
        """A number that others change by writing."""

    def written(self) -> int:
        """A number that grows with every row that is written."""

    def blame(self, error: Exception) -> Fault:
        """Whether an error is the row's, a full disk, somebody else's lock, or the store's."""


class Batch(Struct):
    """Jobs by kind, in the order they came."""

    claims: list[Job] = field(default_factory=list)
    appends: list[Job] = field(default_factory=list)
    finishes: list[Job] = field(default_factory=list)
    writes: list[Job] = field(default_factory=list)
    polls: list[Job] = field(default_factory=list)

    def kinds(self) -> tuple[list[Job], list[Job], list[Job], list[Job], list[Job]]:
        """The lists themselves."""
        return self.claims, self.appends, self.finishes, self.writes, self.polls

    def take(self, other: "Batch") -> None:
        """Put the jobs of another batch behind these."""
        self.claims += other.claims
        self.appends += other.appends
        self.finishes += other.finishes
        self.writes += other.writes
        self.polls += other.polls

    def cancelled(self) -> list[Job]:
        """Take out the claims that nobody waits for any more; they were never made."""
        gone = [job for job in self.claims if job[1].done()]
        if gone:
            self.claims = [job for job in self.claims if not job[1].done()]
        return gone

    def repeats(self) -> list[Job]:
        """Take out the claims whose key or nonce is in this batch already."""
        times: dict[object, None] = {}
        count = 0
        for claim, _ in self.claims:
            times[claim.key] = None
            count += 1
            for use in (claim.nonce, claim.once):
                if use is not None:
                    times[use.sender, use.nonce] = None
                    count += 1
        if len(times) == count:
            return []
        seen: set[object] = set()
        first: list[Job] = []
        later: list[Job] = []
        for job in self.claims:
            names = {job[0].key, *_nonces(job[0])}
            (later if names & seen else first).append(job)
            seen |= names
        self.claims = first
        return later

    def changes(self) -> list[Job]:
        """All jobs that write."""
        return self.claims + self.appends + self.finishes + self.writes

    def jobs(self) -> list[Job]:
        return self.changes() + self.polls


def _nonces(claim: TurnClaim) -> list[tuple[str, str]]:
    found = (claim.nonce, claim.once)
    return [(use.sender, use.nonce) for use in found if use is not None]


def refused(jobs: Sequence[Job], error: type[CarnetError], detail: str) -> list[Outcome]:
    """The same refusal for each, as an exception of its own."""
    return [(job, error(detail)) for job in jobs]


@final
class Committed(Struct, frozen=True):
    """What came of a batch."""

    outcomes: list[Outcome]
    trouble: str = ""  # why nothing of it was acknowledged
    is_final: bool = False  # and the store must be opened anew before it takes more
    is_busy: bool = False  # and whoever waits for the same lock waits in vain
    waiting: Sequence[Job] = ()  # the ends of turns that were not written, and are to be


def prepare(driver: Driver, batch: Batch) -> list[Outcome] | Committed:
    """Run the statements of a batch within the transaction that was begun."""
    try:
        outcomes = _apply(driver, batch)
        if carnet.faults.is_armed:
            pass_points(batch, claims="t1.before_commit", finishes="t3.before_commit")
    except Exception as error:  # noqa: BLE001  whatever it is, nobody in the batch has been written
        return abort(driver, batch, error)
    return outcomes


def seal(driver: Driver, batch: Batch, outcomes: list[Outcome]) -> Committed:
    """Commit what was prepared."""
    try:
        driver.commit()
    except Exception as error:  # noqa: BLE001  whatever it is, the file may hold the batch or not
        if driver.blame(error) == "full":
            return abort(driver, batch, error)
        trouble = f"a commit failed: {_named(error)}"
        return Committed(refused(batch.changes(), OutcomeUnknown, trouble), trouble, is_final=True)
    if carnet.faults.is_armed:
        pass_last_points(batch)
    return Committed(outcomes)


def abort(driver: Driver, batch: Batch, error: Exception) -> Committed:
    """Undo a batch: nothing of it was written."""
    is_final = False
    try:
        driver.rollback()
    except Exception:  # noqa: BLE001  a transaction that cannot be undone would swallow the next
        is_final = True
    trouble = _named(error)
    return Committed(refused(batch.changes(), StorageUnavailable, trouble), trouble, is_final)


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def pass_points(batch: Batch, *, claims: str = "", appends: str = "", finishes: str = "") -> None:
    """Pass the named points of the kinds that the batch holds."""
    if claims and batch.claims:
        point(claims)
    if appends and batch.appends:
        point(appends)
    if finishes and batch.finishes:
        point(finishes)


def pass_last_points(batch: Batch) -> None:
    """Pass the points just after a commit, where they are armed."""
    pass_points(
        batch, claims="t1.after_commit", appends="event.after_t2", finishes="t3.after_commit"
    )
    if any(job[0].task is not None for job in batch.claims):
        point("task.queued")
    if any(job[0].resolution is not None for job in batch.claims):
        point("resolve.used")
    if any(job[0].state == "waiting" for job in batch.finishes):
        point("wait.kept")


def _apply(driver: Driver, batch: Batch) -> list[Outcome]:
    try:
        outcomes = _together(driver, batch)
    except Exception as error:
        if driver.blame(error) != "row":
            raise
        driver.rollback()
        driver.begin()
        outcomes = _singly(driver, batch)
    # Rare, and written by hand: each stands behind a savepoint from the start.
    for job in batch.writes:
        outcomes.append((job, _guarded(driver, driver.write, job[0])))
    return outcomes


def _together(driver: Driver, batch: Batch) -> list[Outcome]:
    outcomes: list[Outcome] = []
    if batch.claims:
        if carnet.faults.is_armed:
            point("t1.begin")
        outcomes += zip(batch.claims, driver.claim([job[0] for job in batch.claims]), strict=True)
    if batch.appends:
        if carnet.faults.is_armed:
            point("event.before_t2")
        outcomes += zip(
            batch.appends, driver.append([job[0] for job in batch.appends]), strict=True
        )
    if batch.finishes:
        if carnet.faults.is_armed:
            point("t3.begin")
        outcomes += zip(
            batch.finishes, driver.finish([job[0] for job in batch.finishes]), strict=True
        )
    return outcomes


def _singly(driver: Driver, batch: Batch) -> list[Outcome]:
    kinds: list[tuple[list[Job], Callable[[Any], Sequence[Any]]]] = [
        (batch.claims, driver.claim),
        (batch.appends, driver.append),
        (batch.finishes, driver.finish),
    ]
    outcomes: list[Outcome] = []
    for jobs, act in kinds:
        for job in jobs:
            answer = _guarded(driver, act, [job[0]])
            outcomes.append((job, answer if isinstance(answer, Internal) else answer[0]))
    return outcomes


def _guarded(driver: Driver, act: Callable[[Any], Any], payload: object) -> Any:  # noqa: ANN401, RUF100
    """Act behind a savepoint: the answer, or the error of a row that cannot be written."""
    driver.savepoint()
    try:
        answer = act(payload)
    except Exception as error:
        if driver.blame(error) != "row":
            raise
        driver.undo()
        return Internal(f"the store cannot hold this row: {_named(error)}")
    driver.release()
    return answer
