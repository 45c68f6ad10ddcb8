"""A run as spans, in the JSON form of OTLP: a line for each turn, with the calls out of it.

Each line is one request of the protocol (`resourceSpans`), as collectors read from a file or are
posted it.

Law 1. The trace is that of the run, and the span of a call is the one that its `traceparent` names
       where the caller brought no trace of its own: spans of other organisations join ours.
Law 2. What was said is told in short: `MOST_EVENTS` events of a span, `MOST_CHARACTERS` of each;
       what is left out is counted. The journal has no time of an event, and so has its span.
Law 3. A turn is in memory at a time, and of its events one piece.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from carnet.core.chain.carnet import Carnet
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import Event, Extension, read_in_pieces
from carnet.core.messages.outbound_call import OutboundCall
from carnet.core.money.amount import format_amount
from carnet.runtime.peers.signing import span_id, trace_of
from carnet.runtime.replay.export import Line, hop_fields, plain_event
from carnet.runtime.replay.record import ReadsRuns
from carnet.runtime.traces.spans import attributes_of
from carnet.version import __version__
from carnet.wire.grammar import json

MOST_EVENTS: Final = 128
MOST_CHARACTERS: Final = 4096
_NANOSECONDS: Final = 1000  # of a microsecond
_SERVER, _CLIENT = 2, 3  # kinds of spans
_OK, _ERROR = 1, 2  # statuses of spans


async def export_spans(store: ReadsRuns, run: str, domain: str) -> AsyncIterator[Line]:
    """The spans of a run, a line for each of its turns; none if there is no such run."""
    turns = await store.records.run(run, reader=None)
    outbound = await store.records.outbound(run, reader=None)
    for turn in turns:
        events, dropped = await _events(store, turn)
        hops = outbound.get(turn.n, ())
        spans = [_turn_span(turn, events, dropped), *[_hop_span(turn, hop) for hop in hops]]
        yield {
            "resourceSpans": [
                {
                    "resource": {"attributes": attributes_of(_resource(domain))},
                    "scopeSpans": [
                        {"scope": {"name": "carnet", "version": __version__}, "spans": spans}
                    ],
                }
            ]
        }


def _resource(domain: str) -> dict[str, Any]:
    return {"service.name": "carnet", "service.version": __version__, "carnet.domain": domain}


async def _events(store: ReadsRuns, turn: Turn) -> tuple[list[Line], int]:
    """What was said, in short, and how many events are left out."""
    kept: list[Line] = []
    since = 0
    while batches := await store.turns.events(turn, since, is_piece=True):
        read = 0
        for data in batches:
            for events in read_in_pieces(data):
                read += len(events)
                room = MOST_EVENTS - len(kept)
                kept += [_event(event) for event in events[: max(0, room)]]
        if not read:
            break
        since += read
    return kept, max(0, since - MOST_EVENTS)


def _event(event: Event) -> Line:
    plain = plain_event(event)
    text = json.write_text(plain["fields"])
    name = event.name if isinstance(event, Extension) else plain["event"]
    return {"name": name, "attributes": attributes_of({"carnet.event": text[:MOST_CHARACTERS]})}


def _trace(turn: Turn) -> Any:
    return trace_of(Carnet(run=turn.run, turn=turn.turn))


def _turn_span(turn: Turn, events: Sequence[Line], dropped: int) -> Line:
    trace = _trace(turn)
    attributes = {
        "carnet.run": turn.run,
        "carnet.turn": turn.turn,
        "carnet.agent": turn.agent,
        "carnet.actor": turn.actor,
        "carnet.payer": str(turn.payer),
        "carnet.depth": turn.depth,
        "carnet.state": turn.state,
        "carnet.attempt": turn.attempt,
        "carnet.dialect": turn.dialect,
        "carnet.code": turn.code,
        "carnet.cost": None if turn.cost is None else format_amount(turn.cost),
        "gen_ai.agent.name": turn.agent,
        "gen_ai.usage.input_tokens": turn.tokens_in,
        "gen_ai.usage.output_tokens": turn.tokens_out,
    }
    return _span(
        turn,
        id=span_id(trace, turn.turn),
        parent=turn.parent_turn,
        name=f"turn {turn.agent}",
        kind=_SERVER,
        attributes=attributes,
        code=turn.code,
    ) | {"events": list(events), "droppedEventsCount": dropped}


def _hop_span(turn: Turn, hop: OutboundCall) -> Line:
    """A call out; when it left and ended is not kept, and is told as the time of its turn."""
    trace = _trace(turn)
    attributes = {f"carnet.hop.{name}": value for name, value in hop_fields(hop).items()}
    # A turn that is the call out itself has one span more, of its own name.
    name = hop.child_turn if hop.child_turn != turn.turn else f"{turn.turn}/out"
    return _span(
        turn,
        id=span_id(trace, name),
        parent=turn.turn,
        name=f"call {hop.to}",
        kind=_CLIENT,
        attributes=attributes,
        code=hop.code,
    )


def _span(
    turn: Turn,
    *,
    id: str,
    parent: str | None,
    name: str,
    kind: int,
    attributes: dict[str, Any],
    code: str | None,
) -> Line:
    trace = _trace(turn)
    ended = turn.ended if turn.ended is not None else turn.created
    return {
        "traceId": trace.trace_id,
        "spanId": id,
        "parentSpanId": "" if parent is None else span_id(trace, parent),
        "name": name,
        "kind": kind,
        "startTimeUnixNano": str(turn.created * _NANOSECONDS),
        "endTimeUnixNano": str(ended * _NANOSECONDS),
        "attributes": attributes_of(attributes),
        "status": {"code": _OK} if code is None else {"code": _ERROR, "message": code},
    }
