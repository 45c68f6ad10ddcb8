"""The schedules of one store: the port `carnet.ports.calls.triggers.Schedules`.

Law. A tick is written down, and the schedule moved on, in one transaction that holds only if the
     schedule stands where it was read: of several gateways that see it, one writes.
"""

import builtins
from collections.abc import Sequence
from typing import Final

from msgspec.structs import asdict

from carnet.core.people.proof import SECOND_US
from carnet.core.triggers.ticks import Due
from carnet.errors import TooManyFirings
from carnet.faults import point
from carnet.ports.calls.triggers import DropNotices, NewFiring, NewSchedule, Schedule
from carnet.stores.database import Database, Row, Statement
from carnet.stores.triggers.firings import RETRY_SECONDS, WAITING, drop_firing, insert_firing
from carnet.stores.triggers.owned import OwnedRows

_NAMES: Final = Schedule.__struct_fields__
_COLUMNS: Final = ", ".join(_NAMES)
_DUE: Final = (
    f"SELECT {_COLUMNS} FROM schedule WHERE next <= ? AND paused IS NULL"  # noqa: S608
    " ORDER BY next LIMIT ?"
)
_STANDS: Final = (
    "EXISTS (SELECT 1 FROM schedule WHERE n = ? AND created = ? AND next = ? AND paused IS NULL)"
)
_IS_THERE: Final = "EXISTS (SELECT 1 FROM schedule WHERE n = ? AND created = ?)"
_MOVE: Final = (
    "UPDATE schedule SET next = ? WHERE n = ? AND created = ? AND next = ? AND paused IS NULL"
)


class StoredSchedules:
    """The schedules of one store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.own: Final = OwnedRows(database, "schedule", "schedule", _COLUMNS, _read)

    async def add(self, new: NewSchedule, *, most: int, now: int) -> Schedule:
        """Keep one. Raises TriggerExists, or TooManyTriggers where she has `most`."""
        return await self.own.add({**asdict(new), "created": now}, most=most)

    async def fire(self, schedule: Schedule, firing: NewFiring, *, most: int) -> None:
        """Have it begin now. Raises TooManyFirings."""
        where = (schedule.n, schedule.created)
        sql, args = _firing(schedule, firing, _IS_THERE, where, most)
        if not await self._database.execute(sql, args):
            raise TooManyFirings(limit=most, retry_after=RETRY_SECONDS)

    async def due(self, now: int, *, limit: int) -> builtins.list[Schedule]:
        """Those of everybody that are due, the oldest first."""
        return [_read(row) for row in await self._database.fetch(_DUE, (now, limit))]

    async def tick(
        self, schedule: Schedule, due: Due, *, most: int, now: int, notices: DropNotices
    ) -> int | None:
        """Write down what is due and when it is due next; None if another gateway has.

        How many ticks begin nothing, since `most` of hers are to begin. She is told of the first
        of several.
        """
        where = (schedule.n, schedule.created, schedule.next)
        statements: list[Statement] = []
        drops: list[int] = []  # which of them say that a tick begins nothing
        for tick in [second * SECOND_US for second in due.ticks]:
            new = NewFiring(key=key_of(schedule, tick), content=schedule.content, tick=tick)
            statements.append(_firing(schedule, new, _STANDS, where, most))
            drops.append(len(statements))
            statements += drop_firing(schedule, new, notices(tick), now, (_STANDS, where))
        following = None if due.following is None else due.following * SECOND_US
        point("schedule.before_tick")
        changed = await self._database.transact([*statements, (_MOVE, (following, *where))])
        point("schedule.ticked")
        return sum(changed[place] for place in drops) if changed[-1] else None


def key_of(schedule: Schedule, tick: int) -> str:
    """What one tick of a schedule is known by, for ever."""
    return f"schedule:{schedule.n}.{schedule.created}:{tick}"


def _firing(
    schedule: Schedule, firing: NewFiring, where: str, args: Sequence[int | None], most: int
) -> Statement:
    row = insert_firing("schedule", schedule, firing)
    return f"{row[0]} WHERE {where} AND {WAITING}", (*row[1], *args, schedule.person, most)


def _read(row: Row) -> Schedule:
    return Schedule(**dict(zip(_NAMES, row, strict=True)))
