"""What schedules and hooks are to begin: the port `carnet.ports.calls.triggers.Firings`.

Law 1. A key is written down once.
Law 2. One gateway holds a firing at a time; who lost it to another one changes nothing any more.
Law 3. What it was to say is kept until it has ended, and no longer: then the conversation has it.
       With a conversation that is deleted it ends.
"""

import builtins
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from msgspec.structs import replace

from carnet.errors import TooManyFirings
from carnet.faults import point
from carnet.ports.calls.triggers import (
    Firing,
    FiringEnd,
    FiringRecord,
    NewFiring,
    Resting,
    Room,
    Schedule,
    TriggerKind,
)
from carnet.ports.world.outbox import Delivery
from carnet.stores.database import Database, Row, Statement
from carnet.stores.outbox import END_IF_GONE, GONE, PUT_IF, delivery_row, put_some

RETRY_SECONDS: Final = 60  # for who was sent away because too much is to be begun
KEEP_US: Final = 30 * 86_400_000_000  # how long it is known what became of one
FORGET_AT_A_TIME: Final = 500

_NAMES: Final = Firing.__struct_fields__
_INSERT: Final = (
    "INSERT INTO firing (key, kind, source, name, person, token, agent, content, tick, state, due)"
    " SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, 'due', ?"
)
# A tick that begins nothing: too much is to begin. Where it was written down it is not dropped.
_DROP: Final = (
    "INSERT INTO firing (key, kind, source, name, person, token, agent, content, tick, state, due,"
    " code, ended) SELECT ?, ?, ?, ?, ?, ?, ?, '', ?, 'dropped', ?, ?, ? WHERE {}"
    " ON CONFLICT DO NOTHING"
)
# Of several that were dropped one after the other the first; its key is the argument.
_DROPPED_FIRST: Final = (
    "EXISTS (SELECT 1 FROM firing f WHERE f.key = ? AND f.state = 'dropped' AND COALESCE("
    "(SELECT b.state FROM firing b WHERE b.person = f.person AND b.kind = f.kind"
    " AND b.name = f.name AND b.n < f.n ORDER BY b.n DESC LIMIT 1), '') <> 'dropped')"
)
# How much may be to begin of one person's; her number and the bound are the arguments.
WAITING: Final = (
    "(SELECT COUNT(*) FROM firing WHERE person = ? AND state = 'due') < ? ON CONFLICT DO NOTHING"
)
FORGET_FIRINGS: Final = "DELETE FROM firing WHERE kind = ? AND person = ? AND name = ?"
# What has begun a conversation that was deleted in this moment; it may not have noted which.
END_OF_DELETED: Final = (
    "UPDATE firing SET state = 'failed', code = ?, ended = ?, content = '', held = 0"
    " WHERE person = ? AND state = 'due' AND (conversation = ? OR key IN"
    " (SELECT client_id FROM message WHERE conversation = ?))"
    " AND EXISTS (SELECT 1 FROM conversation WHERE n = ? AND deleted = ?)"
)
_FREE: Final = "state = 'due' AND due <= ? AND held <= ?"
# Of each person the first of hers, so that nobody waits behind much of somebody else's.
_DUE: Final = (
    f"SELECT {', '.join(_NAMES)} FROM firing"  # noqa: S608
    " WHERE n IN (SELECT f.n FROM (SELECT n, due, ROW_NUMBER() OVER"
    f" (PARTITION BY person ORDER BY due, n) AS place FROM firing WHERE {_FREE}) f"
    " WHERE f.place <= ? ORDER BY f.due, f.n LIMIT ?) ORDER BY due, n"
)
_LEASE: Final = (
    "UPDATE firing SET worker = ?, held = ?, fence = fence + 1, attempts = attempts + 1"  # noqa: S608
    f" WHERE n = ? AND fence = ? AND {_FREE}"
)
_OURS: Final = " WHERE n = ? AND fence = ? AND state = 'due'"
_RENEW: Final = f"UPDATE firing SET held = ?{_OURS}"  # noqa: S608
_BEGUN: Final = f"UPDATE firing SET conversation = ?{_OURS}"  # noqa: S608
_END: Final = (
    "UPDATE firing SET state = ?, code = ?, conversation = COALESCE(?, conversation), ended = ?,"  # noqa: S608
    f" content = '', held = 0{_OURS}"
)
_WAIT: Final = f"UPDATE firing SET due = ?, attempts = 0, held = 0{_OURS}"  # noqa: S608
_PUT_OFF: Final = f"UPDATE firing SET due = ?, held = 0{_OURS}"  # noqa: S608
_REST: Final = (
    "UPDATE {} SET paused = ? WHERE person = ? AND name = ? AND token = ? AND paused IS NULL"
)
# What was begun by hand may run with another token: the end of that one is not the trigger's.
_RESTS: Final = (
    "EXISTS (SELECT 1 FROM {} WHERE person = ? AND name = ? AND token = ? AND paused IS NOT NULL)"
)
_TABLES: Final[dict[TriggerKind, str]] = {"schedule": "schedule", "webhook": "hook"}
_LET_GO: Final = "UPDATE firing SET held = 0 WHERE state = 'due' AND held > 0"
_RECENT: Final = (
    "SELECT tick, state, conversation, code, ended FROM firing"
    " WHERE kind = ? AND person = ? AND name = ? ORDER BY n DESC LIMIT ?"
)
_FORGET: Final = (
    "DELETE FROM firing WHERE n IN (SELECT n FROM firing WHERE ended < ? ORDER BY ended LIMIT ?)"
)


class _Source(Protocol):
    """A schedule or a hook."""

    @property
    def n(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def person(self) -> int: ...
    @property
    def token(self) -> int: ...
    @property
    def agent(self) -> str: ...


def insert_firing(kind: TriggerKind, source: _Source, firing: NewFiring) -> Statement:
    """What writes one down; a condition follows."""
    whose = (firing.key, kind, source.n, source.name, source.person, source.token, source.agent)
    return _INSERT, (*whose, firing.content, firing.tick, firing.tick)


def drop_firing(
    source: Schedule, firing: NewFiring, notices: Sequence[Delivery], now: int, where: Statement
) -> list[Statement]:
    """What writes down that a tick begins nothing, if it is not to begin; and who is told."""
    condition, args = where
    whose = (firing.key, "schedule", source.n, source.name, source.person, source.token)
    row = (*whose, source.agent, firing.tick, firing.tick, TooManyFirings.code, now, *args)
    puts = [
        (PUT_IF.format(_DROPPED_FIRST), (*delivery_row(notice, now), firing.key))
        for notice in notices
    ]
    return [(_DROP.format(condition), row), *puts, *[_end_if_gone(each) for each in notices]]


class StoredFirings:
    """What is to be begun, of one store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def lease(
        self, worker: str, *, until: int, limit: int, room: Room, now: int
    ) -> builtins.list[Firing]:
        """Take some that are due and nobody's, the oldest first, of each person what has room."""
        rows = await self._database.fetch(_DUE, (now, now, room.each, limit))
        found: builtins.list[Firing] = []
        taken: Counter[int] = Counter()
        for firing in map(_read, rows):
            taken[firing.person] += 1
            if taken[firing.person] <= room.of(firing.person):
                found.append(firing)
        if not found:
            return []
        in_order = sorted(found, key=lambda firing: firing.n)  # in which all are locked
        changed = await self._database.transact(
            [(_LEASE, (worker, until, each.n, each.fence, now, now)) for each in in_order]
        )
        ours = {firing.n for firing, count in zip(in_order, changed, strict=True) if count}
        if ours:
            point("firing.leased")
        return [replace(each, fence=each.fence + 1) for each in found if each.n in ours]

    async def renew(self, firing: Firing, *, until: int) -> bool:
        """Hold it for longer; False if another gateway has it."""
        return await self._change(_RENEW, (until,), firing)

    async def begun(self, firing: Firing, conversation: str) -> bool:
        """Note where it is begun; False if another gateway has it."""
        return await self._change(_BEGUN, (conversation,), firing)

    async def end(
        self, firing: Firing, end: FiringEnd, notices: Sequence[Delivery], *, now: int
    ) -> bool:
        """Note that nothing more is to be done, and who is told; False if another gateway has it.

        A notice is the same whoever writes it, so that it may be written by who has lost it.
        """
        state = "fired" if end.state == "done" else "failed"
        row = (state, end.code, end.conversation, now, firing.n, firing.fence)
        ended, *_ = await self._database.transact([(_END, row), *_put(notices, now)])
        return ended > 0

    async def wait(
        self, firing: Firing, notices: Sequence[Delivery], *, due: int, now: int
    ) -> bool:
        """Note that it waits for somebody, and who is told; it is looked at again then."""
        row = (due, firing.n, firing.fence)
        waits, *_ = await self._database.transact([(_WAIT, row), *_put(notices, now)])
        return waits > 0

    async def put_off(self, firing: Firing, *, due: int) -> bool:
        """Have it tried again then; False if another gateway has it."""
        return await self._change(_PUT_OFF, (due,), firing)

    async def rest(self, trigger: Resting, notices: Sequence[Delivery], *, now: int) -> None:
        """Pause a schedule or a hook whose token has ended, and keep who is told of that."""
        table, which = _TABLES[trigger.kind], (trigger.person, trigger.name, trigger.token)
        rests = PUT_IF.format(_RESTS.format(table))
        statements: builtins.list[Statement] = [(_REST.format(table), (now, *which))]
        for notice in notices:
            statements.append((rests, (*delivery_row(notice, now), *which)))
            statements.append(_end_if_gone(notice))
        await self._database.transact(statements)

    async def recent(
        self, kind: TriggerKind, person: int, name: str, limit: int
    ) -> builtins.list[FiringRecord]:
        """What became of those of one schedule or hook of hers, the newest first."""
        rows = await self._database.fetch(_RECENT, (kind, person, name, limit))
        return [
            FiringRecord(tick=tick, state=state, conversation=conversation, code=code, ended=ended)
            for tick, state, conversation, code, ended in rows
        ]

    async def let_go(self) -> int:
        """Give up what an earlier worker held, where there can be no other; how many."""
        return await self._database.execute(_LET_GO)

    async def forget(self, now: int) -> int:
        """Delete what ended long ago; how many that were."""
        return await self._database.execute(_FORGET, (now - KEEP_US, FORGET_AT_A_TIME))

    async def _change(self, sql: str, args: Sequence[int | str | None], firing: Firing) -> bool:
        return await self._database.execute(sql, (*args, firing.n, firing.fence)) > 0


def _put(notices: Sequence[Delivery], now: int) -> Iterator[Statement]:
    for notice in notices:
        yield from put_some(notice, now)


def _end_if_gone(notice: Delivery) -> Statement:
    return END_IF_GONE, (GONE, notice.id)


def _read(row: Row) -> Firing:
    return Firing(**dict(zip(_NAMES, row, strict=True)))
