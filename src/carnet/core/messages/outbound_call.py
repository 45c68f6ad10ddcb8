"""A call that this gateway made to another organisation, as the turn that made it records it.

Law 1. Every call out leaves one record, however it ended; it is written with the end of its turn.
Law 2. It is no part of the answer: a receipt in it outlives the words that were said. The journal
       holds where the record stands (`pointer`); who reads the events is shown the record itself.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct

from carnet.core.chain.turn import Turn
from carnet.core.messages.events import OUTBOUND_CALL, Extension, read_events, write_events

# One is lost with us: nobody knows whether it left.
OutboundState = Literal["done", "failed", "refused", "waiting", "lost"]
Matched = Literal["ours", "theirs", "both"]  # whose ledger has it

_OUTBOUND_CALL = f'"{OUTBOUND_CALL}"'.encode()


class OutboundCall(Struct, frozen=True, kw_only=True):
    """One call out: to whom, at which depth, how it ended, what it cost."""

    ordinal: int  # its place among the calls out of its turn
    child_turn: str  # the id under which it was sent
    to: str
    depth: int
    state: OutboundState
    dialect: str = ""
    cost: int | None = None  # micro-units; None where nobody said
    currency: str | None = None  # None: that of our own ledger
    code: str | None = None  # of our closed enum, where it did not end well
    peer_status: int | None = None  # what the other side answered
    peer_code: str | None = None  # and in which word of its own
    receipt: str | None = None  # what the other side signed about its answer
    matched: Matched | None = None  # None: nobody has compared the ledgers yet
    sent: str | None = None  # what was signed of it, as it is kept: `wire.travel.signed_text`
    disputed: int = 0  # what it says to cost above what it may; kept in the row of its turn


def lost_attempt(turn: Turn) -> OutboundCall:
    """What is left of an attempt at a turn that nobody knows the end of."""
    return OutboundCall(
        ordinal=0, child_turn=turn.turn, to=turn.agent, depth=turn.depth, state="lost"
    )


def outbound_event(call: OutboundCall) -> Extension:
    """The record as whoever reads the events of its turn is shown it."""
    return Extension(
        OUTBOUND_CALL,
        {
            "turn": call.child_turn,
            "to": call.to,
            "depth": call.depth,
            "status": call.state,
            "cost": call.cost,
            "code": call.code,
            "receipt": call.receipt,
        },
    )


def pointer(fence: int, ordinal: int) -> Extension:
    """What stands for a record among the last events of its turn."""
    return Extension(OUTBOUND_CALL, [fence, ordinal])


def points(data: bytes) -> bool:
    """Whether a batch of the journal may hold a record, or point to one."""
    return _OUTBOUND_CALL in data


def with_records(data: bytes, records: Mapping[tuple[int, int], OutboundCall]) -> bytes:
    """A batch of the journal, its records in their place; `records` by fence and ordinal.

    A record that is no longer kept is left as it is pointed to.
    """
    events = read_events(data)
    for place, event in enumerate(events):
        if (
            type(event) is Extension
            and event.name == OUTBOUND_CALL
            and isinstance(event.payload, list)
        ):
            fence, ordinal = event.payload
            call = records.get((fence, ordinal))
            events[place] = event if call is None else outbound_event(call)
    return write_events(events)


def read_outbound_event(payload: dict[str, Any], ordinal: int) -> OutboundCall:
    """The record of a call out as turns of the former layout hold it, among their events.

    Raises:
        ValueError: It is none.
    """
    try:
        record = msgspec.convert(payload, _EventPayload)
    except msgspec.ValidationError as error:
        raise ValueError(f"no record of a call out: {error}") from None
    return OutboundCall(
        ordinal=ordinal,
        child_turn=record.turn,
        to=record.to,
        depth=record.depth,
        state=record.status,
        cost=record.cost,
        code=record.code,
        receipt=record.receipt,
    )


class _EventPayload(Struct, frozen=True, kw_only=True):
    turn: str
    to: str
    depth: int
    status: OutboundState
    cost: int | None = None
    code: str | None = None
    receipt: str | None = None
