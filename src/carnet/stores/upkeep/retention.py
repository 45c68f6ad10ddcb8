"""Forgetting what is older than the retention says.

Law 1. The ledger is kept, and so is every turn that has not ended.
Law 2. Many small transactions: calls go on between them, and a crash leaves a smaller job.
Law 3. What is forgotten is chosen again under the lock of its run: a turn that was claimed anew in
       the meantime stays.
Law 4. The newest rows stay, so that no number is given twice.
Law 5. A turn whose events are gone cannot be replayed, so it gives its key free: the same request
       is a new turn. Retention is at least a day (D5).
"""
# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from carnet.faults import point
from carnet.stores.database import Database, Statement, Value, marks
from carnet.stores.tables import WITH_EVENTS, WITH_TURN

AT_A_TIME: Final = 200
DAY: Final = 86_400_000_000  # microseconds

_OLD = (
    "state IN ('done', 'failed', 'unknown') AND ended < ? AND n < (SELECT MAX(n) FROM turn)"
    " AND n <> COALESCE((SELECT turn FROM journal ORDER BY n DESC LIMIT 1), 0)"
)
_OLD_TURNS = f"SELECT n, run FROM turn WHERE n > ? AND {_OLD} ORDER BY n LIMIT ?"
_OLD_EVENTS = (
    f"SELECT n, run FROM turn WHERE n > ? AND {_OLD}"
    " AND EXISTS (SELECT 1 FROM journal WHERE journal.turn = turn.n) ORDER BY n LIMIT ?"
)
# What is counted comes first.
_EVENTS_FIRST: Final = tuple(dict.fromkeys(("journal", "task", *WITH_EVENTS)))
_COUNT_TURNS = f"SELECT COUNT(*) FROM turn WHERE {_OLD}"
_COUNT_EVENTS = f"SELECT COUNT(*) FROM journal WHERE turn IN (SELECT n FROM turn WHERE {_OLD})"


class Pruned(Struct, frozen=True, kw_only=True):
    """What was forgotten, or would be."""

    turns: int = 0
    events: int = 0  # rows of the journal
    runs: int = 0
    tokens: int = 0
    tasks: int = 0
    letters: int = 0


async def count_old(database: Database, *, now: int, turn_days: int, event_days: int) -> Pruned:
    """What `prune` would forget; runs and tokens are not counted."""
    turns = await database.fetch(_COUNT_TURNS, (now - turn_days * DAY,))
    older = now - min(turn_days, event_days) * DAY
    events = await database.fetch(_COUNT_EVENTS, (older,))
    return Pruned(turns=turns[0][0], events=events[0][0])


async def prune(database: Database, *, now: int, turn_days: int, event_days: int) -> Pruned:
    """Forget turns and events, then what only they needed."""
    if min(turn_days, event_days) < 1:
        raise ValueError("what ended less than a day ago is kept: a caller may still repeat it")
    whole = await _forget_turns(database, now - turn_days * DAY)
    alone = await _forget_events(database, now - event_days * DAY)
    tokens = await _forget_the_rest(database, now=now, cutoff=now - turn_days * DAY)
    return Pruned(
        turns=whole.turns,
        events=whole.events + alone.events,
        runs=whole.runs,
        tokens=tokens,
        tasks=whole.tasks + alone.tasks,
    )


async def _forget_turns(database: Database, cutoff: int) -> Pruned:
    turns = runs = events = tasks = last = 0
    while old := await database.fetch(_OLD_TURNS, (last, cutoff, AT_A_TIME)):
        last = old[-1][0]
        numbers = [row[0] for row in old]
        theirs = sorted({row[1] for row in old})
        these = f"n IN ({marks(len(numbers))}) AND {_OLD}"
        of_runs = (
            f"DELETE FROM run WHERE n IN ({marks(len(theirs))}) AND n < (SELECT MAX(n) FROM run)"
            " AND NOT EXISTS (SELECT 1 FROM turn WHERE turn.run = run.n)"
        )
        _, rows, its_tasks, *_, its_turns, its_runs = await database.transact(
            [
                _locked(database, theirs),
                *_what_belongs_to(these, (*numbers, cutoff), (*_EVENTS_FIRST, *WITH_TURN)),
                (f"DELETE FROM turn WHERE {these}", (*numbers, cutoff)),
                (of_runs, theirs),
            ]
        )
        turns, runs = turns + its_turns, runs + its_runs
        events, tasks = events + rows, tasks + its_tasks
        point("purge.mid")
    return Pruned(turns=turns, runs=runs, events=events, tasks=tasks)


async def _forget_events(database: Database, cutoff: int) -> Pruned:
    events = tasks = last = 0
    while old := await database.fetch(_OLD_EVENTS, (last, cutoff, AT_A_TIME)):
        last = old[-1][0]
        numbers = [row[0] for row in old]
        these = f"n IN ({marks(len(numbers))}) AND {_OLD}"
        free = f"UPDATE turn SET key = ? WHERE n = ? AND {_OLD}"  # 8 bytes: a real key has 16
        freed: list[Statement] = [(free, (n.to_bytes(8, "big"), n, cutoff)) for n in numbers]
        theirs = sorted({row[1] for row in old})
        _, rows, its_tasks, *_ = await database.transact(
            [
                _locked(database, theirs),
                *_what_belongs_to(these, (*numbers, cutoff), _EVENTS_FIRST),
                *freed,
            ]
        )
        events, tasks = events + rows, tasks + its_tasks
        point("purge.mid")
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
    """Rates that have run out, and ended tokens. A forwardable one is kept: it could come back."""
    gone = await database.transact(
        [
            (f"SELECT tat FROM rate WHERE tat < ? ORDER BY bucket{database.row_lock}", (now,)),
            ("DELETE FROM rate WHERE tat < ?", (now,)),
            ("DELETE FROM token WHERE revoked < ? AND forwardable = 0", (cutoff,)),
        ]
    )
    return gone[2]
