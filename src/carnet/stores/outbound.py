"""Calls to other organisations, as the store keeps them: written with the end of their turn.

Law. A turn of the former layout has its calls out among its events; they are read from there.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from carnet.core.events import LEG, Extension, read_events
from carnet.core.outbound import OutboundCall, read_leg
from carnet.core.turn import Turn
from carnet.stores.database import Row

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
}
COLUMNS: Final = ("turn", "fence", *FIELDS)
SELECT: Final = f"SELECT turn, {', '.join(FIELDS)} FROM outbound"  # noqa: S608
INSERT: Final = (
    f"INSERT INTO outbound ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608
    " ON CONFLICT (turn, fence, ordinal) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in FIELDS if name != "ordinal")
)
_LEG: Final = f'"{LEG}"'.encode()


def outbound_row(turn: Turn, call: OutboundCall) -> Row:
    """The values of COLUMNS."""
    return (turn.n, turn.fence, *(getattr(call, field) for field in FIELDS.values()))


def read_outbound(row: Row) -> OutboundCall:
    """The call of a row whose columns are FIELDS."""
    named: dict[str, Any] = dict(zip(FIELDS.values(), row, strict=True))
    return msgspec.convert(named, OutboundCall)


def legs_in(batches: Sequence[bytes]) -> list[OutboundCall]:
    """The calls out among events of the former layout."""
    found: list[OutboundCall] = []
    for batch in batches:
        if _LEG not in batch:
            continue
        for event in read_events(batch):
            if isinstance(event, Extension) and event.name == LEG:
                found.append(read_leg(event.payload, len(found)))
    return found
