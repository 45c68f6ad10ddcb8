"""The record of a call that this gateway made to another organisation."""

import asyncio
from typing import Literal

from carnet.core.call import Call
from carnet.core.events import Event, Leg
from carnet.errors import (
    Cancelled,
    CarnetError,
    Malformed,
    PeerBusy,
    PeerRefused,
    ProviderTimeout,
    Refused,
)

LegStatus = Literal["done", "failed", "refused"]


def leg_of(
    call: Call,
    cost: int | None,
    status: LegStatus,
    code: str | None = None,
    receipt: str | None = None,
) -> Event:
    """The record of one call, as an event of the turn that made it."""
    leg = Leg(
        turn=call.carnet.turn,
        to=call.agent,
        depth=call.carnet.depth,
        status=status,
        cost=cost,
        code=code,
        receipt=receipt,
    )
    return leg.event()


def note_left(call: Call, cost: int | None, leaving: BaseException) -> None:
    """Note the end of a call whose listener has gone: nothing can be said any more."""
    is_late = isinstance(leaving, asyncio.CancelledError)
    code = ProviderTimeout.code if is_late else Cancelled.code
    call.notes.append(leg_of(call, cost, "failed", code))


def ending(error: CarnetError) -> LegStatus:
    """How a call has ended that ended in an error."""
    refused = isinstance(error, Refused | Malformed | PeerRefused | PeerBusy)
    return "refused" if refused else "failed"
