"""How many calls one call took, and how deep they went: what its receipt says.

Law. Every call is counted once, however often it was tried: this one, those made in process for it,
and those that another organisation has signed for.
"""

from collections.abc import Iterable

from msgspec import Struct

from carnet.core.messages.events import CHILD, LEG, Event, Extension
from carnet.core.messages.outbound_call import OutboundCall, read_leg
from carnet.wire import travel
from carnet.wire.grammar.json import MAX_INTEGER


class Tally(Struct, frozen=True):
    """The calls of a call, itself included."""

    calls: int
    deepest: int


def tally(depth: int, events: Iterable[Event]) -> Tally:
    """The calls that a turn at `depth` took, by what was noted in it."""
    legs: dict[str, Tally] = {}
    children: list[Tally] = []
    is_leg = False  # the turn is a call to somebody else, not one that makes such a call
    for event in events:
        if type(event) is not Extension:
            continue
        if event.name == LEG:
            leg = read_leg(event.payload, 0)
            is_leg = is_leg or leg.depth == depth
            legs[leg.child_turn] = _of_leg(leg)
        elif event.name == CHILD:
            children.append(Tally(event.payload.get("calls", 1), event.payload.get("deepest", 0)))
    found = [*legs.values(), *children, Tally(0 if is_leg else 1, depth)]
    calls = min(sum(each.calls for each in found), MAX_INTEGER)  # what a receipt can say
    return Tally(calls, max(each.deepest for each in found))


def _of_leg(leg: OutboundCall) -> Tally:
    if leg.receipt is not None:  # it was verified before it was noted
        receipt = travel.read_receipt(leg.receipt)
        return Tally(receipt.calls, receipt.max_depth)
    return Tally(0, 0) if leg.state == "refused" else Tally(1, leg.depth)
