"""Calls to other organisations, as the store keeps them: written with the end of their turn.

Law 1. A turn of the former layout has its calls out among its events; they are read from there.
Law 2. Every attempt that is lost with us leaves a row, whoever its agent is: the store does not
       know who is elsewhere. It is no record of a call; `stores.ledger.differences` reads it.
"""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final

import msgspec

from carnet.core.chain.turn import Turn
from carnet.core.messages.events import OUTBOUND_CALL, Extension, read_events
from carnet.core.messages.outbound_call import (
    OutboundCall,
    points,
    read_outbound_event,
    with_records,
)
from carnet.stores.database import Database, Row, marks
from carnet.stores.turn.row import EVENTS

# The columns that hold a call, by the field each of them is.
FIELDS: Final = {
    "ordinal": "ordinal",
    "child_turn": "child_turn",
    "callee": "to",
    "dialect": "dialect",
    "depth": "depth",
    "state": "state",
    "cost": "cost",
    "currency": "currency",
    "code": "code",
    "peer_status": "peer_status",
    "peer_code": "peer_code",
    "receipt": "receipt",
    "matched": "matched",
    "sent": "sent",
}
COLUMNS: Final = ("turn", "fence", *FIELDS)
SELECT: Final = f"SELECT turn, {', '.join(FIELDS)} FROM outbound"  # noqa: S608
_SELECT_PLACED: Final = f"SELECT turn, fence, {', '.join(FIELDS)} FROM outbound WHERE turn IN "  # noqa: S608
INSERT: Final = (
    f"INSERT INTO outbound ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608
    " ON CONFLICT (turn, fence, ordinal) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in FIELDS if name != "ordinal")
)
_values = attrgetter(*FIELDS.values())


def outbound_row(turn: Turn, call: OutboundCall) -> Row:
    """The values of COLUMNS."""
    return (turn.n, turn.fence, *_values(call))


def read_outbound(row: Row) -> OutboundCall:
    """The call of a row whose columns are FIELDS."""
    named: dict[str, Any] = dict(zip(FIELDS.values(), row, strict=True))
    return msgspec.convert(named, OutboundCall)


def calls_in(batches: Sequence[bytes], before: int = 0) -> list[OutboundCall]:
    """The calls out among events of the former layout; so many stood `before` these batches."""
    found: list[OutboundCall] = []
    for batch in batches:
        if not points(batch):
            continue
        for event in read_events(batch):
            if not isinstance(event, Extension) or event.name != OUTBOUND_CALL:
                continue
            if isinstance(event.payload, dict):  # else it points to the table
                found.append(read_outbound_event(event.payload, before + len(found)))
    return found


async def shown(database: Database, rows: Sequence[Row]) -> list[Row]:
    """Rows of the journal as they are read: where a batch points to calls out, they stand.

    `rows` are (n, turn, kind, first, last, data, ...).
    """
    pointing = sorted({row[1] for row in rows if row[2] == EVENTS and points(row[5])})
    if not pointing:
        return list(rows)
    found: dict[int, dict[tuple[int, int], OutboundCall]] = {}
    which = f"{_SELECT_PLACED}({marks(len(pointing))})"
    for turn, fence, *row in await database.fetch(which, pointing):
        call = read_outbound(tuple(row))
        found.setdefault(turn, {})[fence, call.ordinal] = call
    return [
        (*row[:5], with_records(row[5], found.get(row[1], {})), *row[6:])
        if row[2] == EVENTS and points(row[5])
        else row
        for row in rows
    ]
