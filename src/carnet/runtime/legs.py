"""The record of a call that this gateway made to another organisation."""

from typing import Literal

from carnet.core.call import Call
from carnet.core.events import Event, Leg
from carnet.errors import CarnetError, Malformed, PeerBusy, PeerRefused, Refused

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


def ending(error: CarnetError) -> LegStatus:
    """How a call has ended that ended in an error."""
    refused = isinstance(error, Refused | Malformed | PeerRefused | PeerBusy)
    return "refused" if refused else "failed"
