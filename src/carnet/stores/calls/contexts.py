"""Tasks as they are shown, and the list of those that their sender groups by a context.

Law 1. A list goes by who asked for the tasks and by when they changed, through nobody else's.
Law 2. What one page looks at is bounded, however many tasks its sender has and few are asked for.
"""
# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

from typing import Final

from carnet.ports.calls.tasks import (
    MOST_OF_STATE,
    ChangedTasks,
    FoundTasks,
    StoredTask,
    TaskScope,
    TaskState,
)
from carnet.stores.calls.journal import pieces
from carnet.stores.database import Database, Row, Value, marks
from carnet.stores.turn.row import ACCEPTED, TURN_COLUMNS, TURN_WIDTH, asked_in, read_turn

MOST_COUNTED: Final = 10_000  # of the tasks of a sender, those that changed last
SLICE: Final = 500  # of them that one query looks at
MOST_SLICES: Final = 20  # of one page; then it ends before it is full

SELECT_TASK: Final = (
    f"SELECT {TURN_COLUMNS}, k.id, k.sender, k.skill, k.progress, k.note, k.cancelled, k.lost,"
    " k.context, k.updated,"
    " (SELECT MIN(b.url) FROM callback b WHERE b.turn = k.turn AND b.place = 0), {more}"
    " FROM task k JOIN turn t ON t.n = k.turn JOIN run r ON r.n = t.run {also}WHERE "
)
SHOW_TASK: Final = SELECT_TASK.format(more="NULL", also="")
_NAMED: Final = f"{SHOW_TASK}k.id = ? AND (k.ended IS NULL OR k.ended >= ?)"
STATES: Final[dict[TaskState, str]] = {  # as `StoredTask.state` reads them
    "pending": "t.state || '' = 'queued'",
    "running": "t.state NOT IN ('queued', 'done', 'failed')",
    "done": "t.state || '' = 'done'",
    "failed": "t.state || '' = 'failed'",
}
_OF_STATE: Final = (
    f"{SHOW_TASK}k.turn IN (SELECT i.turn FROM interrupt i WHERE i.state_hash = ?"
    " AND i.status = 'open') AND k.context IS NOT NULL AND t.agent = ?{}"
    " ORDER BY k.turn DESC LIMIT ?"
)
_ASKED: Final = f"j.turn = ? AND j.kind = '{ACCEPTED}'"  # the condition on a row `j`
_ASKED_SIZE: Final = f"SELECT LENGTH(j.data) FROM journal j WHERE {_ASKED} ORDER BY j.n LIMIT 1"
_DATA: Final = 5  # the place of `data` in a row of the journal
_LAST: Final = (
    "SELECT k.updated, k.turn FROM task k WHERE k.context IS NOT NULL AND k.sender = ?{}"
    " ORDER BY k.updated DESC, k.turn DESC LIMIT ?"
)
_ORDER: Final = " ORDER BY k.updated DESC, k.turn DESC"
# Each is looked up by itself: a join would rather read the whole table than so many rows of it.
_COUNT: Final = (
    "SELECT COUNT(*) FROM ({}) AS l WHERE"
    " (SELECT 1 FROM task k JOIN turn t ON t.n = k.turn WHERE k.turn = l.turn AND {}) = 1"
)


async def tasks_of_state(
    database: Database, state_hash: bytes, agent: str, actor: str | None
) -> list[StoredTask]:
    """Those of an agent that wait for the answer with this state; of one caller, or of all."""
    who: list[Value] = [] if actor is None else [actor]
    query = _OF_STATE.format("" if actor is None else " AND t.actor = ?")
    rows = await database.fetch(query, [state_hash, agent, *who, MOST_OF_STATE])
    return [read_task(row) for row in rows]


async def changed_tasks(database: Database, asked: ChangedTasks) -> FoundTasks:
    """A page of those of one sender; where few are like what is asked for, it is not full (A87)."""
    where, args = _conditions(asked)
    last, known = _last(asked, None)
    counting = _COUNT.format(last, where)
    ((total,),) = await database.fetch(counting, [*known, MOST_COUNTED, *args])
    found: list[StoredTask] = []
    before = asked.before
    for _ in range(MOST_SLICES):
        last, known = _last(asked, before)
        some = await database.fetch(last, [*known, SLICE])
        if some:
            query = f"{SHOW_TASK}k.turn IN ({marks(len(some))}) AND {where}{_ORDER}"
            rows = await database.fetch(query, [*[turn for _, turn in some], *args])
            found += map(read_task, rows)
        if len(found) > asked.limit:
            end = found[asked.limit - 1]
            following = (end.updated or 0, end.turn.n)
            return FoundTasks(tasks=found[: asked.limit], total=total, following=following)
        if len(some) < SLICE:
            return FoundTasks(tasks=found, total=total, following=None)
        updated, turn = some[-1]
        before = (updated, turn)
    return FoundTasks(tasks=found, total=total, following=before)


def _last(asked: ChangedTasks, before: tuple[int, int] | None) -> tuple[str, list[Value]]:
    """What finds the tasks of a sender that changed last, by the index alone."""
    more = ""
    values: list[Value] = [asked.sender]
    if asked.since is not None:
        more, values = " AND k.updated >= ?", [*values, asked.since]
    if before is not None:
        more += " AND k.updated <= ? AND (k.updated < ? OR k.turn < ?)"
        values += (before[0], *before)
    return _LAST.format(more), values


def _conditions(asked: ChangedTasks) -> tuple[str, list[Value]]:
    """What those must be like that are shown."""
    where = "(k.ended IS NULL OR k.ended >= ?)"
    args: list[Value] = [asked.kept_since]
    if asked.agent is not None:
        where, args = f"t.agent || '' = ? AND {where}", [asked.agent, *args]
    if asked.context is not None:
        where, args = f"{where} AND k.context = ?", [*args, asked.context]
    if asked.states:
        where = f"{where} AND t.state || '' IN ({marks(len(asked.states))})"
        args += asked.states
    if asked.codes is not None:
        where, args = f"{where} AND t.code IN ({marks(len(asked.codes))})", [*args, *asked.codes]
    if asked.other_codes:
        where = f"{where} AND COALESCE(t.code, '') NOT IN ({marks(len(asked.other_codes))})"
        args += asked.other_codes
    return where, args


async def read_request(database: Database, turn: int) -> bytes:
    """What was asked of a turn, as it is recorded; empty if it is kept no more."""
    async for rows in pieces(database, _ASKED, (turn,)):
        for row in rows:
            return asked_in(row[_DATA])
    return b""


async def request_size(database: Database, turn: int) -> int:
    """How many bytes that is, with what is recorded beside it."""
    return sum([size for (size,) in await database.fetch(_ASKED_SIZE, (turn,))])


def named_task(task: str, kept_since: int, scope: TaskScope) -> tuple[str, tuple[Value, ...]]:
    """What finds a task by its id: whose it may be, the database judges (security:a67:timing)."""
    named = {" AND t.actor = ?": scope.actor, " AND t.agent = ?": scope.agent}
    found = {condition: value for condition, value in named.items() if value is not None}
    text = _NAMED + "".join(found)
    args: tuple[Value, ...] = (task, kept_since, *found.values())
    if scope.sender is not None and scope.speakers is not None:
        text += " AND (k.sender = ? OR SUBSTR(k.sender, 1, ?) = ?)"
        args = (*args, scope.sender, len(scope.speakers), scope.speakers)
    elif scope.sender is not None:
        text, args = f"{text} AND k.sender = ?", (*args, scope.sender)
    if scope.is_signed:
        text += " AND SUBSTR(k.sender, 1, 8) = 'agent://'"
    if scope.has_context:
        text += " AND k.context IS NOT NULL"
    return text, args


def read_task(row: Row) -> StoredTask:
    """A task as SELECT_TASK has it."""
    (task, sender, skill, progress, note, cancelled, lost, context, updated, callback, _) = row[
        TURN_WIDTH:
    ]
    return StoredTask(
        id=task,
        turn=read_turn(row),
        sender=sender,
        skill=skill,
        callback=callback,
        progress=progress,
        note=note,
        cancelled=cancelled,
        lost=lost,
        context=context,
        updated=updated,
    )
