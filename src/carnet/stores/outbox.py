"""Webhook deliveries over a database: the port `carnet.ports.world.outbox.Outbox`.

Law 1. A worker leases a delivery by changing it from how it was read; the first one has it. Its
       fence grows with every lease and every outcome, so that a late outcome is refused.
Law 2. While a delivery is being sent it is due again when its lease ends: its worker may die.
Law 3. Deliveries are looked for receiver by receiver, each by its first: ten thousand that wait for
       one that is down cost as much as one. A receiver that failed last is sent one at a time,
       and after those that did not: many that hang do not hold up those that answer.
"""
# ruff: noqa: S608  the texts are put together from our own words; every value is an argument

import builtins
from collections.abc import Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from carnet.faults import point
from carnet.ports.world.outbox import Delivery, DeliveryState, Outcome, StoredDelivery
from carnet.stores.database import Database, Row, Statement, Value, marks

AT_A_TIME: Final = 200
MOST_UNSENT: Final = 1_000  # notices that wait for one receiver, of those that are not needed
GONE: Final = "its address has answered 410: it takes no webhooks any more"

DELIVERY_COLUMNS: Final = "id, kind, receiver, url, body, task, secret_of, learned, turn"
_COLUMNS = (
    f"n, {DELIVERY_COLUMNS}, state, attempts, due, created, replayed, ended, status, reason, fence"
)
_SELECT = f"SELECT {_COLUMNS} FROM outbox"
_FIND = f"{_SELECT} WHERE id = ?"

# A delivery to an address that is gone is dead from the start. The time is given twice.
PUT: Final = (
    f"INSERT INTO outbox ({DELIVERY_COLUMNS}, state, attempts, due, fence, created)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', 0, ?, 0, ?) ON CONFLICT (id) DO NOTHING"
)
# The same where a condition holds, whose arguments follow.
PUT_IF: Final = (
    f"INSERT INTO outbox ({DELIVERY_COLUMNS}, state, attempts, due, fence, created)"
    " SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', 0, ?, 0, ? WHERE {} ON CONFLICT (id) DO NOTHING"
)
END_IF_GONE: Final = (
    "UPDATE outbox SET state = 'dead', ended = due, reason = ?"
    " WHERE id = ? AND state || '' = 'pending' AND attempts = 0"
    " AND EXISTS (SELECT 1 FROM gone g WHERE g.url = outbox.url"
    " AND g.owner IN (outbox.secret_of, ''))"
)

# Each receiver for whom something waits, found by one step in the index after another.
_RECEIVERS = """
WITH RECURSIVE names (name) AS (
    SELECT MIN(o.receiver) FROM outbox o WHERE o.state = 'pending'
    UNION ALL
    SELECT (SELECT MIN(o.receiver) FROM outbox o WHERE o.state = 'pending' AND o.receiver > m.name)
    FROM names m WHERE m.name IS NOT NULL
)
SELECT m.name,
    (SELECT MIN(o.due) FROM outbox o WHERE o.state = 'pending' AND o.receiver = m.name),
    (SELECT COUNT(*) FROM outbox o WHERE o.receiver = m.name AND o.leased_until > ?),
    (SELECT MIN(o.leased_until) FROM outbox o WHERE o.receiver = m.name AND o.leased_until > ?),
    COALESCE(r.paused_until, 0), COALESCE(r.failures, 0)
FROM names m LEFT JOIN receiver r ON r.name = m.name WHERE m.name IS NOT NULL
"""
_FIRST = f"{_SELECT} WHERE state = 'pending' AND receiver = ? AND due <= ? ORDER BY due, n LIMIT ?"
# A state that is compared so cannot be looked up: the index of it names everything that waits.
_LEASE = (
    "UPDATE outbox SET due = ?, leased_until = ?, fence = fence + 1"
    " WHERE id = ? AND state || '' = 'pending' AND fence = ?"
)
_MARK = (
    "UPDATE outbox SET state = ?, attempts = attempts + 1, due = ?, leased_until = NULL,"
    " fence = fence + 1, ended = ?, status = ?, reason = ?"
    " WHERE id = ? AND state || '' = 'pending' AND fence = ?"
)
# The rest of an outcome counts only if the delivery was ours: then it has this fence and no lease.
_IF_MARKED = (
    "EXISTS (SELECT 1 FROM outbox o WHERE o.id = ? AND o.fence = ? AND o.leased_until IS NULL)"
)
_RELIEVE = f"DELETE FROM receiver WHERE name = ? AND {_IF_MARKED}"
_PAUSE = (
    "INSERT INTO receiver (name, paused_until, failures)"
    f" SELECT CAST(? AS TEXT), CAST(? AS BIGINT), 1 WHERE {_IF_MARKED} ON CONFLICT (name)"
    " DO UPDATE SET failures = receiver.failures + 1, paused_until = CASE"
    " WHEN excluded.paused_until > receiver.paused_until THEN excluded.paused_until"
    " ELSE receiver.paused_until END"  # one of two on their way may have been asked to wait longer
)
_NOTE_GONE = (
    "INSERT INTO gone (owner, url, at)"
    " SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT)"
    f" WHERE {_IF_MARKED} ON CONFLICT (owner, url) DO NOTHING"
)
# Two that are answered 410 at once would wait for each other's deliveries.
_LOCK_ALIKE = "SELECT n FROM outbox WHERE receiver = ? AND url = ? AND state = 'pending' ORDER BY n"
_END_OTHERS = (
    "UPDATE outbox SET state = 'dead', ended = ?, leased_until = NULL, fence = fence + 1,"
    f" reason = ? WHERE receiver = ? AND url = ? AND state = 'pending' AND {_IF_MARKED}"
)
_WAITING = (
    "SELECT COUNT(*) FROM"
    " (SELECT 1 FROM outbox WHERE state = 'pending' AND receiver = ? LIMIT ?) AS found"
)
_IS_GONE = "SELECT 1 FROM gone WHERE url = ? AND owner IN (?, '')"
_LET_GO = "UPDATE outbox SET due = ?, leased_until = NULL WHERE leased_until IS NOT NULL"
_NOT_UNDER_WAY = "(leased_until IS NULL OR leased_until <= ?)"
_ACCEPT_AGAIN = (
    "DELETE FROM gone WHERE EXISTS (SELECT 1 FROM outbox o WHERE o.id IN ({})"
    " AND o.url = gone.url AND gone.owner IN (o.secret_of, ''))"
)
_RESUME = "DELETE FROM receiver WHERE name IN (SELECT o.receiver FROM outbox o WHERE o.id IN ({}))"
_REPLAY = (
    "UPDATE outbox SET state = 'pending', attempts = 0, due = ?, replayed = ?, ended = NULL,"
    " status = NULL, reason = NULL, leased_until = NULL, fence = fence + 1"
    f" WHERE id IN ({{}}) AND {_NOT_UNDER_WAY}"
)
_FORGET = (
    "DELETE FROM outbox WHERE n IN"
    " (SELECT n FROM outbox WHERE ended IS NOT NULL AND ended < ? ORDER BY ended LIMIT ?)"
    " AND ended IS NOT NULL AND ended < ?"  # it may have been replayed meanwhile
)
_FORGET_RECEIVERS = "DELETE FROM receiver WHERE paused_until < ?"


def delivery_row(delivery: Delivery, now: int) -> Row:
    """The arguments of PUT."""
    who = (delivery.id, delivery.kind, delivery.receiver, delivery.url, delivery.body)
    about = (delivery.task, delivery.secret_of, int(delivery.learned), delivery.turn)
    return (*who, *about, now, now)


def put_some(delivery: Delivery, now: int) -> list[Statement]:
    """What keeps a delivery, unless as many wait for its receiver as may."""
    row = (*delivery_row(delivery, now), delivery.receiver, MOST_UNSENT, MOST_UNSENT)
    return [(PUT_IF.format(f"({_WAITING}) < ?"), row), (END_IF_GONE, (GONE, delivery.id))]


class _Receiver(NamedTuple):
    """Somebody for whom something waits."""

    name: str
    first_due: int
    under_way: int  # deliveries
    lease_ends: int | None  # of the first of them
    paused_until: int
    failures: int

    def room(self, per_receiver: int) -> int:
        """How many more may be sent at once."""
        return (1 if self.failures else per_receiver) - self.under_way

    def next(self, per_receiver: int) -> int:
        """When something can be sent again."""
        if self.lease_ends is not None and self.room(per_receiver) <= 0:
            return self.lease_ends
        return max(self.first_due, self.paused_until)


def _by_trouble(receiver: _Receiver) -> tuple[bool, int]:
    return receiver.failures > 0, receiver.first_due


class StoredOutbox:
    """The webhook deliveries of one store."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock_alike = _LOCK_ALIKE + database.row_lock

    async def put(self, deliveries: Sequence[Delivery], now: int) -> None:
        """Keep deliveries that belong to no turn (those of a turn go with its finish)."""
        for i in range(0, len(deliveries), AT_A_TIME):
            statements: list[Statement] = []
            for delivery in deliveries[i : i + AT_A_TIME]:
                statements += [
                    (PUT, delivery_row(delivery, now)),
                    (END_IF_GONE, (GONE, delivery.id)),
                ]
            await self._database.transact(statements)

    async def lease(
        self, now: int, *, until: int, at_most: int, per_receiver: int
    ) -> builtins.list[StoredDelivery]:
        """Take deliveries that are due, a few for each receiver that is not paused."""
        failures: dict[str, int] = {}
        parts: list[str] = []
        args: list[Value] = []
        for receiver in sorted(await self._receivers(now), key=_by_trouble):
            room = receiver.room(per_receiver)
            if room > 0 and receiver.next(per_receiver) <= now and len(parts) < at_most:
                failures[receiver.name] = receiver.failures
                parts.append(f"SELECT * FROM ({_FIRST}) AS r{len(parts)}")
                args += [receiver.name, now, room]
        if not parts:
            return []
        found = await self._database.fetch(" UNION ALL ".join(parts), args)
        due = sorted(
            (_read(row) for row in found),
            key=lambda stored: (failures[stored.delivery.receiver] > 0, stored.due, stored.n),
        )
        ours = await self._take(due[:at_most], until)
        if ours:
            point("outbox.leased")
        return [replace(stored, failures=failures[stored.delivery.receiver]) for stored in ours]

    async def let_go(self, now: int) -> int:
        """Give up the leases of an earlier worker, where there can be no other; how many."""
        return await self._database.execute(_LET_GO, (now,))

    async def _receivers(self, now: int) -> builtins.list[_Receiver]:
        rows = await self._database.fetch(_RECEIVERS, (now, now))
        return [_Receiver(*row) for row in rows]

    async def _take(
        self, due: Sequence[StoredDelivery], until: int
    ) -> builtins.list[StoredDelivery]:
        """Those that are ours now; they are locked in the order in which all are."""
        in_order = sorted(due, key=lambda stored: stored.n)
        changed = await self._database.transact(
            [(_LEASE, (until, until, stored.delivery.id, stored.fence)) for stored in in_order]
        )
        ours = {stored.n for stored, count in zip(in_order, changed, strict=True) if count}
        return [replace(stored, fence=stored.fence + 1) for stored in due if stored.n in ours]

    async def mark(self, stored: StoredDelivery, outcome: Outcome) -> bool:
        """Note what became of an attempt; False if another worker took the delivery meanwhile."""
        delivery = stored.delivery
        ended = None if outcome.state == "pending" else outcome.now
        due = stored.due if ended else outcome.due
        what = (outcome.state, due, ended, outcome.status, outcome.reason)
        ours = (delivery.id, stored.fence + 1)
        alike: list[Statement] = [(self._lock_alike, (delivery.receiver, delivery.url))]
        statements: list[Statement] = [(_MARK, (*what, delivery.id, stored.fence))]
        if outcome.state == "delivered":
            statements.append((_RELIEVE, (delivery.receiver, *ours)))
        elif outcome.pause_until is not None:
            statements.append((_PAUSE, (delivery.receiver, outcome.pause_until, *ours)))
        if outcome.gone:
            others = (outcome.now, GONE, delivery.receiver, delivery.url)
            statements += [
                (_NOTE_GONE, (delivery.secret_of, delivery.url, outcome.now, *ours)),
                (_END_OTHERS, (*others, *ours)),
            ]
            return (await self._database.transact(alike + statements))[1] > 0
        return (await self._database.transact(statements))[0] > 0

    async def next_due(self, now: int, *, per_receiver: int = 2) -> int | None:
        """When there will be something to do; None if nothing waits.

        A receiver that is sent as many as it may be has something to do when a lease ends, or when
        the outcome of one is marked.
        """
        receivers = await self._receivers(now)
        return min((receiver.next(per_receiver) for receiver in receivers), default=None)

    async def waiting(self, receiver: str, *, most: int) -> int:
        """How many deliveries wait for a receiver; `most` if there are as many, or more."""
        ((count,),) = await self._database.fetch(_WAITING, (receiver, most))
        return int(count)

    async def is_gone(self, url: str, owner: str) -> bool:
        """Whether an address has answered 410 to this owner."""
        return bool(await self._database.fetch(_IS_GONE, (url, owner)))

    async def list(
        self, *, state: DeliveryState | None, limit: int, before: int | None = None
    ) -> builtins.list[StoredDelivery]:
        """The newest; `before` is the number of one."""
        conditions: list[str] = []
        args: list[Value] = []
        if state is not None:
            conditions.append(f"state = '{state}'")  # in words: an index is for one state
        if before is not None:
            conditions.append("n < ?")
            args.append(before)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        query = f"{_SELECT}{where} ORDER BY n DESC LIMIT ?"
        return [_read(row) for row in await self._database.fetch(query, (*args, limit))]

    async def find(self, delivery: str) -> StoredDelivery | None:
        rows = await self._database.fetch(_FIND, (delivery,))
        return _read(rows[0]) if rows else None

    async def replay(self, deliveries: Sequence[str], now: int) -> int:
        """Send again from the first attempt on, and accept their addresses again; how many.

        One that is being sent at this moment is left alone.
        """
        replayed = 0
        for i in range(0, len(deliveries), AT_A_TIME):
            some = deliveries[i : i + AT_A_TIME]
            named = marks(len(some))
            counts = await self._database.transact(
                [
                    (_ACCEPT_AGAIN.format(named), some),
                    (_RESUME.format(named), some),
                    (_REPLAY.format(named), (now, now, *some, now)),
                ]
            )
            replayed += counts[2]
        return replayed

    async def forget(self, ended_before: int) -> int:
        """Forget deliveries that ended before then; how many.

        So are the failures of receivers to whom nothing was sent since.
        """
        forgotten, which = 0, (ended_before, AT_A_TIME, ended_before)
        while gone := await self._database.execute(_FORGET, which):
            forgotten += gone
            point("purge.mid")
        await self._database.execute(_FORGET_RECEIVERS, (ended_before,))
        return forgotten


def _read(row: Row) -> StoredDelivery:
    n, delivery, kind, receiver, url, body, task, secret_of, learned, turn, *rest = row
    state, attempts, due, created, replayed, ended, status, reason, fence = rest
    return StoredDelivery(
        n=n,
        delivery=Delivery(
            id=delivery,
            kind=kind,
            url=url,
            receiver=receiver,
            body=body,
            task=task,
            secret_of=secret_of,
            learned=bool(learned),
            turn=turn,
        ),
        state=state,
        attempts=attempts,
        due=due,
        created=created,
        replayed=replayed,
        ended=ended,
        status=status,
        reason=reason,
        fence=fence,
    )
