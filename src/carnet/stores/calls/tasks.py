"""Tasks over a database: the port `carnet.ports.calls.tasks.Tasks`.

A task begins to wait in the claim of its turn and ends in its finish; here it is found, taken to be
run, and put back.

Law 1. A task is taken by changing its turn from waiting to running, if it still waits as it was
       seen: of several who try, one succeeds. Nobody takes one under a lease that has run out.
Law 2. A turn is changed under the lock of its run, as everywhere.
Law 3. A list goes by who asked for the tasks, in small slices, and through nobody else's (A87).
Law 4. What was perhaps taken, because the answer of the database was lost, is looked at again and
       run: it would wait for us for ever.
"""
# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

import builtins
import logging
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from carnet.core.chain.turn import Turn
from carnet.core.messages.outbound_call import lost_attempt
from carnet.core.people.identity import Payer
from carnet.faults import point
from carnet.ports.calls.tasks import (
    EVERY_TASK,
    AwayRoom,
    Callback,
    ChangedTasks,
    FoundTasks,
    StoredTask,
    TaskScope,
    TaskState,
)
from carnet.ports.calls.turns import Fenced, TurnFinish
from carnet.stores.calls import contexts
from carnet.stores.calls.contexts import SELECT_TASK, SHOW_TASK, STATES, read_task
from carnet.stores.calls.elsewhere import waiting_elsewhere
from carnet.stores.calls.fairness import fairly
from carnet.stores.calls.turns import RunWatches, SearchRows
from carnet.stores.database import Database, Row, Statement, Value, marks
from carnet.stores.secrets.seal import Unsealable, beside
from carnet.stores.turn.callbacks import StoredCallbacks
from carnet.stores.turn.moves import becomes, moves
from carnet.stores.turn.row import place, read_turn
from carnet.stores.turn.sealed_calls import CallSeal, quota_of

_log = logging.getLogger(__name__)

AT_A_TIME: Final = 200
AGENTS_AT_A_TIME: Final = 100  # a statement has as many parts
SLICE: Final = 200  # tasks of a list that one query looks at
MOST_SLICES: Final = 20  # of one page; then it ends before it is full
MOST_ATTEMPTS: Final = 3  # of taking something where others took it first
NONE_RUNNING: Final[Mapping[str, int]] = {}

_TAKE = SELECT_TASK.format(more="c.sealed", also="JOIN kept_call c ON c.turn = k.turn ")
_OF_TURN = f"{SHOW_TASK}k.turn = ?"
_SLICE = "SELECT k.turn FROM task k WHERE {} ORDER BY k.turn DESC LIMIT ?"
_OF_SLICE = f"{SHOW_TASK}k.turn IN ({{}}){{}} ORDER BY k.turn DESC"
# A state that is compared so cannot be looked up: the index of it names everything that waits.
_CANDIDATES = f"{_TAKE}t.state || '' = 'queued' AND t.n IN ({{}})"
_NUMBERED = f"{_TAKE}t.n IN ({{}})"
_WAITING_OF = (
    "SELECT n, agent, purse, rank FROM turn WHERE state = 'queued' AND agent = ?"
    " ORDER BY rank, n LIMIT ?"
)
_LEASE = (
    f"UPDATE turn SET {becomes('running')}, worker = ?"
    f" WHERE n = ? AND {moves('queued', 'running')} AND fence = ? AND {{alive}}"
)
_LOCK = "SELECT n FROM run WHERE n IN ({}) ORDER BY id, issuer, account"
_PROGRESS = (
    "UPDATE task SET progress = ?, note = ? WHERE turn = ? AND EXISTS"
    " (SELECT 1 FROM turn t WHERE t.n = task.turn AND t.state = 'running' AND t.fence = ?)"
)
_CANCEL = "UPDATE task SET cancelled = COALESCE(cancelled, ?) WHERE id = ? AND ended IS NULL"
# Few are cancelled and many may wait: a join would begin with those that wait.
_TO_END = (
    "SELECT k.turn FROM task k WHERE k.cancelled IS NOT NULL AND k.ended IS NULL"
    " AND (SELECT t.state FROM turn t WHERE t.n = k.turn) = 'queued' LIMIT ?"
)
_CANCELLED = "SELECT turn FROM task WHERE cancelled IS NOT NULL AND ended IS NULL"
_WAITING = "SELECT COUNT(*) FROM turn WHERE state = 'queued'"
# Each agent for which something waits, found by one step in the index after another.
_WAITING_FOR = """
WITH RECURSIVE names (name) AS (
    SELECT MIN(t.agent) FROM turn t WHERE t.state = 'queued'
    UNION ALL
    SELECT (SELECT MIN(t.agent) FROM turn t WHERE t.state = 'queued' AND t.agent > m.name)
    FROM names m WHERE m.name IS NOT NULL
)
SELECT m.name FROM names m WHERE m.name IS NOT NULL
"""
_OLD = (
    "SELECT k.turn, t.run FROM task k LEFT JOIN turn t ON t.n = k.turn"
    " WHERE k.ended IS NOT NULL AND k.ended < ? ORDER BY k.ended LIMIT ?"
)
# It may have begun to wait again meanwhile, with other addresses.
_FORGET = "DELETE FROM task WHERE turn IN ({}) AND ended IS NOT NULL AND ended < ?"
_FORGET_CALLBACKS = (
    "DELETE FROM callback WHERE turn IN ({})"
    " AND NOT EXISTS (SELECT 1 FROM task k WHERE k.turn = callback.turn)"
)
_N, _RUN, _KEY, _AGENT = place("n"), place("run"), place("key"), place("agent")
_QUOTA, _RESERVE = place("purse"), place("reserve")
_STATE, _WORKER, _FENCE = place("state"), place("worker"), place("fence")


class StoredTasks:
    """The tasks of one store."""

    def __init__(
        self,
        database: Database,
        watches: RunWatches,
        call_seal: CallSeal,
        callbacks: StoredCallbacks,
        worker: str,
        search_rows: SearchRows,
    ) -> None:
        self._search_rows = search_rows
        self._callbacks = callbacks
        self._database = database
        self._call_seal = call_seal
        self._worker = worker
        self._watches = watches
        self._doubtful: set[tuple[int, int]] = set()  # turns and fences that are perhaps ours
        self._lock = _LOCK + database.row_lock
        alive = f"NOT (SELECT {database.abandoned} FROM (SELECT CAST(? AS TEXT) AS worker) t)"
        self._lease = _LEASE.format(alive=alive if database.is_shared else "1 = 1")
        self._alive_args = (worker,) if database.is_shared else ()

    async def find(
        self, task: str, *, kept_since: int = 0, scope: TaskScope = EVERY_TASK
    ) -> StoredTask | None:
        """A task by its id; None also for one that ended before `kept_since` or is out of scope."""
        return _only(await self._database.fetch(*contexts.named_task(task, kept_since, scope)))

    async def of_turn(self, turn: int) -> StoredTask | None:
        """The task of a turn."""
        return _only(await self._database.fetch(_OF_TURN, (turn,)))

    async def of_state(self, state: bytes, agent: str, actor: str | None) -> Sequence[StoredTask]:
        """Tasks of an agent that wait for the answer with this state; of one caller, or all."""
        return await contexts.tasks_of_state(self._database, state, agent, actor)

    async def request(self, turn: Turn) -> bytes:
        """What was asked of a turn, as it is recorded; empty if it is kept no more."""
        return await contexts.read_request(self._database, turn.n)

    async def request_size(self, turn: Turn) -> int:
        """How many bytes that is, with what is recorded beside it."""
        return await contexts.request_size(self._database, turn.n)

    async def kept(self, turn: int) -> StoredTask | None:
        """The task of a turn that waits for an answer, with what is kept to run it on."""
        rows = await self._database.fetch(_NUMBERED.format(marks(1)), (turn,))
        return await beside(len(rows[0][-1]), partial(self._opened, rows[0])) if rows else None

    async def lease(
        self,
        agents: Sequence[tuple[str, int]],
        *,
        most: int = AT_A_TIME,
        running: Mapping[str, int] = NONE_RUNNING,
        elsewhere: AwayRoom | None = None,
    ) -> builtins.list[StoredTask]:
        """Take waiting tasks by their rank: of each agent at most so many, ours to run.

        Of those at most `most`; the next is one of whoever has the fewest `running`. Those whose
        agent is `elsewhere`, and those whose end was asked for, come beside them. One whose sealed
        call cannot be opened (the secrets file is another one) comes without it.
        """
        taken = await self._found_ours()
        wanted, counts, left = dict(agents), Counter(running), most
        for _ in range(MOST_ATTEMPTS):
            candidates = await self._candidates(wanted, counts, left, elsewhere)
            if not candidates:
                break
            ours = await self._take(candidates)
            taken += ours
            elsewhere = None  # the next look takes what another took first
            for row in [row for row in ours if row[_AGENT] in wanted]:
                wanted[row[_AGENT]] -= 1
                counts[row[_QUOTA]] += 1
                left -= 1
            if len(ours) == len(candidates):
                break
        if taken:
            point("task.leased")
        leased = [await beside(len(row[-1]), partial(self._leased, row)) for row in taken]
        self._doubtful.difference_update(map(_named, taken))
        turns = [read_turn(row) for row in taken]
        self._search_rows.note(turns)
        self._watches.touch(turns)
        return leased

    async def _candidates(
        self,
        wanted: dict[str, int],
        running: Mapping[str, int],
        most: int,
        elsewhere: AwayRoom | None,
    ) -> builtins.list[Row]:
        """Waiting tasks, the first of each agent, and of those as many as there is room for."""
        asked = [(agent, min(count, most)) for agent, count in wanted.items() if count > 0]
        found: list[Row] = []
        for i in range(0, len(asked), AGENTS_AT_A_TIME) if most > 0 else ():
            some = asked[i : i + AGENTS_AT_A_TIME]
            parts = [f"SELECT * FROM ({_WAITING_OF}) AS a{j}" for j in range(len(some))]
            args: list[Value] = [value for pair in some for value in pair]
            found += await self._database.fetch(" UNION ALL ".join(parts), args)
        numbers = fairly(found, running, most)
        if elsewhere is not None:
            numbers += await waiting_elsewhere(self._database, elsewhere)
        numbers += [n for (n,) in await self._database.fetch(_TO_END, (AT_A_TIME,))]
        if not numbers:
            return []
        query = _CANDIDATES.format(marks(len(numbers)))
        return sorted(await self._database.fetch(query, numbers))

    async def _take(self, candidates: Sequence[Row]) -> builtins.list[Row]:
        """Those that are ours now."""
        turns = [_named(row) for row in candidates]
        runs = sorted({row[_RUN] for row in candidates})
        locked: Statement = (self._lock.format(marks(len(runs))), runs)
        self._doubtful.update(turns)
        changed = await self._database.transact(
            [
                locked,
                *((self._lease, (self._worker, *turn, *self._alive_args)) for turn in turns),
            ]
        )
        counts = dict(zip(turns, changed[1:], strict=True))
        self._doubtful.difference_update(turn for turn in turns if not counts[turn])
        return [row for row in candidates if counts[_named(row)]]

    async def _found_ours(self) -> builtins.list[Row]:
        """What was taken although nobody was told so."""
        if not self._doubtful:
            return []
        numbers = sorted({n for n, _ in self._doubtful})
        found = await self._database.fetch(_NUMBERED.format(marks(len(numbers))), numbers)
        ours = [row for row in found if (row[_STATE], row[_WORKER]) == ("running", self._worker)]
        waiting = [row for row in found if row[_STATE] == "queued"]  # the change may come yet
        self._doubtful.intersection_update(map(_named, ours + waiting))
        return [row for row in ours if _named(row) in self._doubtful]

    def _leased(self, row: Row) -> StoredTask:
        task = self._opened(row)
        turn = replace(task.turn, state="running", worker=self._worker)
        reserve = row[_RESERVE] if turn.fence != turn.attempt else None
        return replace(task, turn=turn, payer_quota=row[_QUOTA], reserve=reserve)

    def _opened(self, row: Row) -> StoredTask:
        task, sealed, call_bytes = read_task(row), row[-1], b""
        try:
            call_bytes = self._call_seal.open(sealed, row[_KEY])
        except Unsealable:
            _log.warning("task %s was sealed with another secrets file", task.id)
        return replace(task, call_bytes=call_bytes, quota=quota_of(sealed))

    async def release(self, turn: Turn, now: int, *, lost: bool = False) -> bool:
        """Let a task that we run wait again, one attempt later; False if it is not ours."""
        try:
            await self._database.finish(waits_again(turn, now, lost=lost))
        except Fenced:
            return False
        point("task.released")
        return True

    async def progress(self, turn: Turn, thousandths: int, note: str | None) -> None:
        """Say how far it is; of a turn that is not ours, nothing is written."""
        await self._database.execute(_PROGRESS, (thousandths, note, turn.n, turn.fence))

    async def cancel(self, task: str, now: int) -> bool:
        """Ask for the end of a task; False if it has ended or there is none."""
        return await self._database.execute(_CANCEL, (now, task)) > 0

    async def cancelled(self) -> Collection[int]:
        """The turns of unfinished tasks whose end was asked for."""
        return {n for (n,) in await self._database.fetch(_CANCELLED)}

    async def waiting(self) -> int:
        """How many wait to be run."""
        return int((await self._database.fetch(_WAITING))[0][0])

    async def waiting_for(self) -> Collection[str]:
        """The agents for which tasks wait."""
        return {name for (name,) in await self._database.fetch(_WAITING_FOR)}

    async def callbacks(self, task: str) -> builtins.list[Callback]:
        """Where the end of a task is told, in the order in which the addresses were named."""
        return await self._callbacks.of(task)

    async def add_callback(self, task: str, callback: Callback) -> bool:
        """Tell the end there too; False if the task has ended, or has as many as it may."""
        return await self._callbacks.add(task, callback)

    async def remove_callback(self, task: str, place: int) -> bool:
        """Tell the end there no more; False if there is none, or the task has ended."""
        return await self._callbacks.remove(task, place)

    async def list(
        self,
        *,
        reader: str | None,
        limit: int,
        before: int | None = None,
        state: TaskState | None = None,
        agent: str | None = None,
    ) -> tuple[builtins.list[StoredTask], int | None]:
        """The newest, and where the next ones begin; `reader` None sees all, others their own.

        `before` is a turn. In slices (A87): where few are like it, a page ends before it is full.
        """
        named = {" AND t.actor = ?": reader, " AND t.agent || '' = ?": agent}
        args = {condition: value for condition, value in named.items() if value is not None}
        like = [*args] if state is None else [*args, f" AND {STATES[state]}"]
        size = limit if agent is None and state is None else SLICE
        found: list[StoredTask] = []
        for _ in range(MOST_SLICES):
            some = await self._slice(reader, before, size)
            if some:
                query = _OF_SLICE.format(marks(len(some)), "".join(like))
                found += map(read_task, await self._database.fetch(query, (*some, *args.values())))
            if len(found) >= limit:
                return found[:limit], found[limit - 1].turn.n
            if len(some) < size:
                return found, None
            before = some[-1]
        return found, before

    async def _slice(self, reader: str | None, before: int | None, size: int) -> builtins.list[int]:
        """The next tasks of whoever asked for them."""
        named = {"k.sender = ?": reader, "k.turn < ?": before}
        asked = {condition: value for condition, value in named.items() if value is not None}
        query = _SLICE.format(" AND ".join(asked) or "1 = 1")
        return [n for (n,) in await self._database.fetch(query, (*asked.values(), size))]

    async def changed(self, asked: ChangedTasks) -> FoundTasks:
        """Tasks of one sender that have a context, the last changed first."""
        return await contexts.changed_tasks(self._database, asked)

    async def forget(self, ended_before: int) -> int:
        """Forget tasks that ended before then (the turns have their own retention); how many."""
        forgotten = 0
        while old := await self._database.fetch(_OLD, (ended_before, AT_A_TIME)):
            forgotten += await self._forget(old, ended_before)
            point("purge.mid")
        return forgotten

    async def _forget(self, old: Sequence[Row], ended_before: int) -> int:
        turns = [turn for turn, _ in old]
        runs = sorted({run for _, run in old if run is not None}) or [0]
        these = marks(len(turns))
        counts = await self._database.transact(
            [
                (self._lock.format(marks(len(runs))), runs),
                (_FORGET.format(these), (*turns, ended_before)),
                (_FORGET_CALLBACKS.format(these), turns),
            ]
        )
        return counts[1]


def waits_again(turn: Turn, now: int, *, lost: bool) -> TurnFinish:
    """The end of an attempt at a task, after which it waits for the next one.

    What the turn holds stays reserved, and nothing is spent. One that was lost is counted: its end
    was not to be had, unlike that of one which is let go.
    """
    return TurnFinish(
        turn=turn,
        state="queued",
        payer=Payer(account=turn.payer, quota=""),
        events=b"",
        first=0,
        last=0,
        debits=(),
        children_cost=0,
        reserve=0,
        now=now,
        code="outcome_unknown" if lost else None,
        outbound=(lost_attempt(turn),),
    )


def _named(row: Row) -> tuple[int, int]:
    """A turn and its fence."""
    return row[_N], row[_FENCE]


def _only(rows: Sequence[Row]) -> StoredTask | None:
    return read_task(rows[0]) if rows else None
