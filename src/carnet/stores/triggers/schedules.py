"""The schedules of one store: the port `carnet.ports.calls.triggers.Schedules`.

Law. A tick is written down, and the schedule moved on, in one transaction that holds only if the
     schedule stands where it was read: of several gateways that see it, one writes.
"""

import builtins
from collections.abc import Sequence
from typing import Final

from carnet.core.people.proof import SECOND_US
from carnet.core.triggers.ticks import Due
from carnet.errors import TooManyFirings, TooManyTriggers, TriggerExists
from carnet.faults import point
from carnet.ports.calls.triggers import NewFiring, NewSchedule, Schedule
from carnet.stores.database import Database, Row, Statement
from carnet.stores.triggers.firings import (
    FORGET_FIRINGS,
    RETRY_SECONDS,
    WAITING,
    insert_firing,
)

_COLUMNS: Final = (
    "n, person, name, token, agent, content, cron, zone, missed, next, created, paused"
)
_ADD: Final = (
    "INSERT INTO schedule (person, name, token, agent, content, cron, zone, missed, next, created)"
    " SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"
    " WHERE (SELECT COUNT(*) FROM schedule WHERE person = ?) < ?"
    " AND EXISTS (SELECT 1 FROM person WHERE n = ? AND ended IS NULL) ON CONFLICT DO NOTHING"
)
_LIST: Final = f"SELECT {_COLUMNS} FROM schedule WHERE person = ? ORDER BY name"  # noqa: S608
_FIND: Final = f"SELECT {_COLUMNS} FROM schedule WHERE person = ? AND name = ?"  # noqa: S608
_PAUSE: Final = "UPDATE schedule SET paused = COALESCE(paused, ?) WHERE person = ? AND name = ?"
_RESUME: Final = "UPDATE schedule SET paused = NULL, next = ? WHERE person = ? AND name = ?"
_DELETE: Final = "DELETE FROM schedule WHERE person = ? AND name = ?"
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

    async def add(self, new: NewSchedule, *, most: int, now: int) -> Schedule:
        """Keep one. Raises TriggerExists, or TooManyTriggers where she has `most`."""
        row = (
            *(new.person, new.name, new.token, new.agent, new.content, new.cron, new.zone),
            *(new.missed, new.next, now, new.person, most, new.person),
        )
        if not await self._database.execute(_ADD, row):
            if await self.find(new.person, new.name) is not None:
                raise TriggerExists
            raise TooManyTriggers(limit=most)
        made = await self.find(new.person, new.name)
        if made is None:  # deleted in this moment
            raise TriggerExists
        return made

    async def list(self, person: int) -> builtins.list[Schedule]:
        """Hers, by name."""
        return [_read(row) for row in await self._database.fetch(_LIST, (person,))]

    async def find(self, person: int, name: str) -> Schedule | None:
        """One of hers."""
        rows = await self._database.fetch(_FIND, (person, name))
        return _read(rows[0]) if rows else None

    async def pause(self, person: int, name: str, now: int) -> bool:
        """Let it rest; False if there is none."""
        return await self._database.execute(_PAUSE, (now, person, name)) > 0

    async def resume(self, person: int, name: str, following: int | None) -> bool:
        """Let it go on with its next tick; False if there is none."""
        return await self._database.execute(_RESUME, (following, person, name)) > 0

    async def delete(self, person: int, name: str) -> bool:
        """Forget it, and what it was to begin; False if there is none."""
        whose = (person, name)
        _, gone = await self._database.transact(
            [(FORGET_FIRINGS, ("schedule", *whose)), (_DELETE, whose)]
        )
        return gone > 0

    async def fire(self, schedule: Schedule, firing: NewFiring, *, most: int) -> None:
        """Have it begin now. Raises TooManyFirings."""
        where = (schedule.n, schedule.created)
        sql, args = _firing(schedule, firing, _IS_THERE, where, most)
        if not await self._database.execute(sql, args):
            raise TooManyFirings(limit=most, retry_after=RETRY_SECONDS)

    async def due(self, now: int, *, limit: int) -> builtins.list[Schedule]:
        """Those of everybody that are due, the oldest first."""
        return [_read(row) for row in await self._database.fetch(_DUE, (now, limit))]

    async def tick(self, schedule: Schedule, due: Due, *, most: int) -> bool:
        """Write down what is due and when it is due next; False if another gateway has."""
        where = (schedule.n, schedule.created, schedule.next)
        statements: list[Statement] = [
            _firing(
                schedule,
                NewFiring(key=key_of(schedule, tick), content=schedule.content, tick=tick),
                _STANDS,
                where,
                most,
            )
            for tick in [second * SECOND_US for second in due.ticks]
        ]
        following = None if due.following is None else due.following * SECOND_US
        point("schedule.before_tick")
        moved = (await self._database.transact([*statements, (_MOVE, (following, *where))]))[-1]
        point("schedule.ticked")
        return moved > 0


def key_of(schedule: Schedule, tick: int) -> str:
    """What one tick of a schedule is known by, for ever."""
    return f"schedule:{schedule.n}.{schedule.created}:{tick}"


def _firing(
    schedule: Schedule, firing: NewFiring, where: str, args: Sequence[int | None], most: int
) -> Statement:
    row = insert_firing("schedule", schedule, firing)
    return f"{row[0]} WHERE {where} AND {WAITING}", (*row[1], *args, schedule.person, most)


def _read(row: Row) -> Schedule:
    n, person, name, token, agent, content, cron, zone, missed, following, created, paused = row
    return Schedule(
        n=n,
        person=person,
        name=name,
        token=token,
        agent=agent,
        content=content,
        cron=cron,
        zone=zone,
        missed=missed,
        next=following,
        created=created,
        paused=paused,
    )
