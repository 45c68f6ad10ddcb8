"""Deleting what was kept long enough: turns, events, ended tasks, webhooks, quotas and used nonces.

`prune` deletes what is older than the retention says, when an operator asks or in the times that
the operator has set (`pruner`). `Cleanup` and `Nonces` do their part by themselves, each minute,
beside the calls. A delegation that was good for one call is kept as a nonce is; it lives longer,
and is looked at again each minute.

Law 1. The ledger is kept, and so is every turn that has not ended.
Law 2. Many small transactions: calls go on between them, and a crash leaves a smaller job. Several
       gateways that do it at once do no harm: what one forgot, the other does not find.
Law 3. What is forgotten is chosen again under the lock of its run: a turn that was claimed anew in
       the meantime stays.
Law 4. The newest rows stay, so that no number is given twice.
Law 5. A turn whose events are gone cannot be replayed, so it gives its key free: the same request
       is a new turn. Retention is at least a day (D5).
Law 6. A nonce is deleted when it has expired by the clock and when it has been here for
       `KEEP_SECONDS` by a clock that never jumps: a clock that is set forward frees none. Row
       numbers are in the order of arrival, so a mark that was noted then names all that were here:
       nothing is searched for, however many there are.
"""
# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import asdict

from carnet.core.call import WAITS
from carnet.faults import point
from carnet.ports.calls.turns import TASKS, TOKENS
from carnet.ports.world.clock import Clock
from carnet.stores.calls.tasks import StoredTasks
from carnet.stores.database import Database, Row, Statement, Value, marks
from carnet.stores.ledger.budgets import StoredBudgets
from carnet.stores.outbox import StoredOutbox
from carnet.stores.tables import WITH_EVENTS, WITH_TURN
from carnet.stores.turn.interrupts import WAIT_HOURS

EVERY_SECONDS: Final = 60.0
TASK_HOURS: Final = 24
DELIVERY_DAYS: Final = 30
AT_A_TIME: Final = 200
HOUR: Final = 3_600_000_000  # microseconds
DAY: Final = 24 * HOUR

MARK_SECONDS: Final = 60.0
KEEP_SECONDS: Final = 480.0  # the longest life is 365 s (R11); the rest is for clocks that lag
BUSY_SECONDS: Final = 2.0  # of deleting at a time; other upkeep waits for it
NONCES_AT_A_TIME: Final = 500  # some 15 ms of a writer, where a million are kept

_OLD = (
    "state IN ('done', 'failed', 'unknown') AND ended < ? AND n < (SELECT MAX(n) FROM turn)"
    " AND n <> COALESCE((SELECT turn FROM journal ORDER BY n DESC LIMIT 1), 0)"
)
_WITH_EVENTS = f"{_OLD} AND EXISTS (SELECT 1 FROM journal WHERE journal.turn = turn.n)"
_NEXT_TURNS = (
    "SELECT n, run, created, CASE WHEN {} THEN 1 ELSE 0 END FROM turn"
    " WHERE n > ? ORDER BY n LIMIT ?"
)
# What is counted comes first.
_EVENTS_FIRST: Final = tuple(dict.fromkeys(("journal", "task", *WITH_EVENTS)))
_COUNT_TURNS = f"SELECT COUNT(*) FROM turn WHERE {_OLD}"
_COUNT_EVENTS = f"SELECT COUNT(*) FROM journal WHERE turn IN (SELECT n FROM turn WHERE {_OLD})"


_DELETED = (
    "FROM conversation WHERE deleted < ? AND size = 0 AND n < (SELECT MAX(n) FROM conversation)"
)


class Pruned(Struct, frozen=True, kw_only=True):
    """What was forgotten, or would be."""

    turns: int = 0
    events: int = 0  # rows of the journal
    runs: int = 0
    tokens: int = 0
    tasks: int = 0
    deliveries: int = 0

    def plus(self, other: "Pruned") -> "Pruned":
        """Both together."""
        return Pruned(**{name: n + getattr(other, name) for name, n in asdict(self).items()})


async def count_old(database: Database, *, now: int, turn_days: int, event_days: int) -> Pruned:
    """What `prune` would forget; runs and tokens are not counted."""
    turns = await database.fetch(_COUNT_TURNS, (now - turn_days * DAY,))
    older = now - min(turn_days, event_days) * DAY
    events = await database.fetch(_COUNT_EVENTS, (older,))
    return Pruned(turns=turns[0][0], events=events[0][0])


async def prune(database: Database, *, now: int, turn_days: int, event_days: int) -> Pruned:
    """Forget turns and events, then what only they needed."""
    gone = Pruned()
    async for step in prune_steps(database, now=now, turn_days=turn_days, event_days=event_days):
        gone = gone.plus(step)
    return gone


async def prune_steps(
    database: Database, *, now: int, turn_days: int, event_days: int
) -> AsyncGenerator[Pruned, None]:
    """The same in steps, each of a moment: what each forgot."""
    if min(turn_days, event_days) < 1:
        raise ValueError("what ended less than a day ago is kept: a caller may still repeat it")
    for cutoff, rule, forget in (
        (now - turn_days * DAY, _OLD, _forget_turns),
        (now - event_days * DAY, _WITH_EVENTS, _forget_events),
    ):
        async for old in _walk(database, cutoff, rule):
            yield await forget(database, cutoff, old) if old else Pruned()
            point("purge.mid")
    tokens = await _forget_the_rest(database, now=now, cutoff=now - turn_days * DAY)
    yield Pruned(tokens=tokens)


async def _walk(database: Database, cutoff: int, rule: str) -> AsyncIterator[list[Row]]:
    """Those of each few turns that are old, up to where all began too late to be."""
    last = 0
    query = _NEXT_TURNS.format(rule)
    while found := await database.fetch(query, (cutoff, last, AT_A_TIME)):
        last = found[-1][0]
        yield [(n, run) for n, run, _, is_old in found if is_old]
        if all(created >= cutoff for _, _, created, _ in found):
            break


async def _forget_turns(database: Database, cutoff: int, old: Sequence[Row]) -> Pruned:
    numbers = [n for n, _ in old]
    theirs = sorted({run for _, run in old})
    these = f"n IN ({marks(len(numbers))}) AND {_OLD}"
    these_runs = f"n IN ({marks(len(theirs))})"
    note_runs = (
        f"INSERT INTO pruned_run (n, id) SELECT n, id FROM run WHERE {these_runs}"
        " AND n < (SELECT MAX(n) FROM run)"
        " AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.run = run.n)"
    )
    # None that was not noted: another gateway may have begun a newer run in the meantime.
    forget_runs = f"DELETE FROM run WHERE {these_runs} AND n IN (SELECT n FROM pruned_run)"
    _, events, tasks, *_, turns, _, runs = await database.transact(
        [
            _locked(database, theirs),
            *_what_belongs_to(these, (*numbers, cutoff), (*_EVENTS_FIRST, *WITH_TURN)),
            (f"DELETE FROM turn WHERE {these}", (*numbers, cutoff)),
            (note_runs, theirs),
            (forget_runs, theirs),
        ]
    )
    return Pruned(turns=turns, runs=runs, events=events, tasks=tasks)


async def _forget_events(database: Database, cutoff: int, old: Sequence[Row]) -> Pruned:
    numbers = [n for n, _ in old]
    theirs = sorted({run for _, run in old})
    these = f"n IN ({marks(len(numbers))}) AND {_OLD}"
    free = f"UPDATE turn SET key = ? WHERE n = ? AND {_OLD}"  # 8 bytes: a real key has 16
    freed: list[Statement] = [(free, (n.to_bytes(8, "big"), n, cutoff)) for n in numbers]
    _, events, tasks, *_ = await database.transact(
        [
            _locked(database, theirs),
            *_what_belongs_to(these, (*numbers, cutoff), _EVENTS_FIRST),
            *freed,
        ]
    )
    return Pruned(events=events, tasks=tasks)


def _what_belongs_to(these: str, args: Sequence[Value], tables: Sequence[str]) -> list[Statement]:
    """Delete what is of no use without the turn or its events."""
    of = "WHERE turn IN (SELECT n FROM turn WHERE"
    return [(f"DELETE FROM {table} {of} {these})", args) for table in tables]


def _locked(database: Database, runs: Sequence[int]) -> Statement:
    """Lock runs in the order in which every batch locks them."""
    which = f"SELECT n FROM run WHERE n IN ({marks(len(runs))})"
    return f"{which} ORDER BY id, issuer, account{database.row_lock}", runs


async def _forget_the_rest(database: Database, *, now: int, cutoff: int) -> int:
    """Rates that have run out, ended tokens, sessions and delegations that are over, erased memory.

    A forwardable token is kept: it could come back. How many tokens.
    """
    gone = await database.transact(
        [
            (f"SELECT tat FROM rate WHERE tat < ? ORDER BY bucket{database.row_lock}", (now,)),
            ("DELETE FROM rate WHERE tat < ?", (now,)),
            ("DELETE FROM token WHERE revoked < ? AND forwardable = 0", (cutoff,)),
            ("DELETE FROM session WHERE until < ? OR ended < ?", (cutoff, cutoff)),
            ("DELETE FROM delegation WHERE until < ?", (cutoff,)),
            # Of conversations that were deleted: that they were.
            (f"DELETE FROM message WHERE conversation IN (SELECT n {_DELETED})", (cutoff,)),
            (f"DELETE {_DELETED}", (cutoff,)),
            # Of what was erased the line that says so; of who has ended the names of her files too.
            ("DELETE FROM memory_version WHERE erased < ?", (cutoff,)),
            (
                "DELETE FROM memory WHERE person IN (SELECT n FROM person WHERE ended < ?)",
                (cutoff,),
            ),
        ]
    )
    return gone[2]


# ------------------------------- beside the calls: ended tasks, webhooks, the quotas of a day

# The names are compared by their bytes, in both databases: `0` follows `/`.
_OF_OLD_DAYS = f"name >= '{TOKENS}' AND name < ?"
_EMPTY = "name >= '{0}/' AND name < '{0}0' AND spent = 0 AND reserved = 0"
_OF_NOTHING = tuple(_EMPTY.format(kind[:-1]) for kind in (TASKS, WAITS))
_OLD_DAYS = f"SELECT name FROM purse WHERE {_OF_OLD_DAYS} ORDER BY name LIMIT ?"
_NAMES = "SELECT name FROM purse WHERE name > ? AND {} ORDER BY name LIMIT ?"


BUDGET_DAYS: Final = 30  # that the budget of a call is kept, after it began


class RetentionHours(NamedTuple):
    """How many hours tasks and waiting turns are kept."""

    tasks: int = TASK_HOURS  # after their end
    waiting: int = WAIT_HOURS  # turns, for an answer


RETENTION_HOURS: Final = RetentionHours()


class CleanupCounts(Struct, frozen=True, kw_only=True):
    """How many rows of each kind were deleted."""

    tasks: int = 0
    deliveries: int = 0
    quotas: int = 0
    budgets: int = 0  # of calls


class Cleanup:
    """Deletes what one store has kept long enough."""

    def __init__(
        self,
        database: Database,
        tasks: StoredTasks,
        outbox: StoredOutbox,
        clock: Clock,
        *,
        task_hours: int = TASK_HOURS,
    ) -> None:
        self._database = database
        self._tasks = tasks
        self._outbox = outbox
        self._clock = clock
        self._task_hours = task_hours
        self._done: float | None = None

    async def keep(self) -> None:
        """Delete what is due, each minute."""
        now = self._clock.monotonic()
        if self._done is None or now - self._done >= EVERY_SECONDS:
            self._done = now
            await self.forget()

    async def forget(self) -> CleanupCounts:
        """Delete all that is due."""
        now = self._clock.wall_us()
        return CleanupCounts(
            tasks=await self._tasks.forget(now - self._task_hours * HOUR),
            deliveries=await self._outbox.forget(now - DELIVERY_DAYS * DAY),
            quotas=await self._forget_days(now) + await self._forget_empty(),
            budgets=await StoredBudgets(self._database).forget(now - BUDGET_DAYS * DAY),
        )

    async def _forget_days(self, now: int) -> int:
        """What was used of tokens on earlier days: a new day has a quota of its own."""
        today = datetime.fromtimestamp(now // 1_000_000, UTC).date().isoformat()
        gone = 0
        while found := await self._database.fetch(_OLD_DAYS, (f"{TOKENS}{today}", AT_A_TIME)):
            gone += await self._delete([name for (name,) in found])
        return gone

    async def _forget_empty(self) -> int:
        """The quotas of senders none of whose tasks waits or runs, or none of whose turns waits."""
        gone = 0
        for empty in _OF_NOTHING:
            last = ""
            while found := await self._database.fetch(_NAMES.format(empty), (last, AT_A_TIME)):
                last = found[-1][0]
                gone += await self._delete([name for (name,) in found], empty)
        return gone

    async def _delete(self, names: list[str], still: str = "1 = 1") -> int:
        """Delete them in the order in which every batch locks them, if they are as they were."""
        which = f"name IN ({marks(len(names))})"
        locked = f"SELECT name FROM purse WHERE {which} ORDER BY name{self._database.row_lock}"
        counts = await self._database.transact(
            [(locked, names), (f"DELETE FROM purse WHERE {which} AND {still}", names)]
        )
        point("purge.mid")
        return counts[1]


# ------------------------------------------------ the nonces of signed requests

_LAST = "SELECT COALESCE(MAX(n), 0) FROM nonce"
_NEXT = (
    "SELECT COALESCE(MAX(c.n), 0) FROM"
    " (SELECT n FROM nonce WHERE n > ? AND n <= ? ORDER BY n LIMIT ?) AS c"
)
FORGETS_USES_AFTER: Final = 60  # marks, which is about an hour
# Uses beside the claims of turns: a day is past every clock's error.
_FORGET_USES = "DELETE FROM nonce WHERE n < 0 AND expires <= ?"
_FORGET = "DELETE FROM nonce WHERE n > ? AND n <= ? AND expires <= ?"


class Nonces:
    """The used nonces of one store."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._marks: deque[tuple[float, int]] = deque()  # when it was noted, the last number then
        self._noted: float | None = None
        self._noted_times = 0
        self._due = 0  # what has that number or a lower one may go
        self._done = 0  # and up to there it has gone

    async def keep(self) -> None:
        """Note how far the numbers have come, each minute; delete what is due, for a while."""
        now = self._clock.monotonic()
        if self._noted is None:
            await self._forget_old()
        if self._noted is None or now - self._noted >= MARK_SECONDS:
            self._marks.append((now, await self._last()))
            self._noted = now
            self._noted_times += 1
            if self._noted_times % FORGETS_USES_AFTER == 0:
                await self._database.execute(_FORGET_USES, (self._clock.wall_us() - DAY,))
        while self._marks and now - self._marks[0][0] >= KEEP_SECONDS:
            self._due = self._marks.popleft()[1]
            self._done = 0  # what had not expired the last time is looked at again
        while self._done < self._due and self._clock.monotonic() - now < BUSY_SECONDS:
            self._done, _ = await self._forget(self._done, self._due, self._clock.wall_us())

    async def _last(self) -> int:
        rows = await self._database.fetch(_LAST)
        last: int = rows[0][0]
        return last

    async def _forget_old(self) -> None:
        """What a gateway left that never ran for long enough: a day is past every clock's error."""
        last, before = await self._last(), self._clock.wall_us() - DAY
        done, gone = 0, 1
        while done < last and gone:
            done, gone = await self._forget(done, last, before)

    async def _forget(self, after: int, last: int, before: int) -> tuple[int, int]:
        """Delete a few that expired before a time; up to which number, and how many."""
        rows = await self._database.fetch(_NEXT, (after, last, NONCES_AT_A_TIME))
        upto: int = rows[0][0]
        if not upto:
            return last, 0
        gone = await self._database.execute(_FORGET, (after, upto, before))
        point("purge.mid")
        return upto, gone
