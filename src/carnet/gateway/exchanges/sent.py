"""What was sent for a call out.

Law 1. The headers of the chain are written anew from the record, by what has written them. They
       are told of a call that is known to have left, and of no other.
Law 2. No credential is kept, and none is told: neither a token of ours nor one that was forwarded.
Law 3. What was sent for somebody else's turn is told to nobody but the operator.
"""

from typing import Any, Final

import msgspec

from carnet.core.chain.carnet import Carnet
from carnet.core.chain.turn import Turn
from carnet.core.chain.turn_id import is_unscoped
from carnet.core.messages.outbound_call import OutboundCall
from carnet.core.people.address import speaker_of
from carnet.wire.stamps import tangle
from carnet.wire.stamps.stamp import Leaving
from carnet.wire.travel.signed_text import read_sent

Page = dict[str, Any]

CONTENT: Final = {"content-type": "application/json"}
_ANSWERED: Final = frozenset({"done", "waiting"})
_SOMEBODY: Final = "somebody"  # agents-api is told who calls; here it matters only that it is


def sent_page(run: str, turn: Turn, call: OutboundCall, reader: str | None) -> Page:
    """The dialect of a call, its chain as it was sent, and what of it was signed."""
    page: Page = {"dialect": call.dialect, "headers": None, "signed": None}
    has_left = call.state in _ANSWERED or call.peer_status is not None or call.sent is not None
    if not has_left or (reader is not None and turn.actor != reader):
        return page
    headers = _chain(run, turn, call)
    sent = None if call.sent is None else read_sent(call.sent, CONTENT | headers)
    return page | {
        "headers": headers,
        "signed": None if sent is None else msgspec.to_builtins(sent),
    }


def _chain(run: str, turn: Turn, call: OutboundCall) -> dict[str, str]:
    is_whole = call.child_turn == turn.turn  # the turn itself is a call to somebody elsewhere
    above = turn.parent_turn if is_whole else turn.turn
    carnet = Carnet(
        run=run,
        turn=call.child_turn,
        parent_turn=None if is_unscoped(run, call.child_turn) else above,  # as at first level
        speaker=turn.speaker if is_whole else speaker_of(call.to),
        depth=call.depth,
        last_depth=max(call.depth, turn.last_depth or 0),
        bound_by=turn.bound_by or "tangle",
    )
    write = tangle.STAMP.write
    leaving = Leaving(dialect=call.dialect, agent=_SOMEBODY, host=_SOMEBODY)
    return {} if write is None else write(carnet, leaving).headers
