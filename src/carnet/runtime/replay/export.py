"""A run as lines of JSON: each says what it is, and the last that nothing is missing.

Law 1. Everything that is kept of a run is told: its turns, what was asked and said, its calls to
       others, what it cost. What is no longer kept is left out, and not made up.
Law 2. No secret is told: the journal holds none, and the words that answer a question are sealed.
Law 3. Of what was said a piece is in memory at a time, however much that is; of the turns and the
       postings, which are small, all.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any, Final

import msgspec

from carnet.core.chain.turn import Turn
from carnet.core.messages.events import Event, read_in_pieces
from carnet.core.messages.interrupt import InterruptRecord
from carnet.core.messages.outbound_call import OutboundCall
from carnet.core.money.amount import format_amount
from carnet.ports.world.records import JournalEntry, Records
from carnet.runtime.replay.record import entries_of
from carnet.wire.grammar.times import when

VERSION: Final = 1
ALL: Final = 2**31 - 1  # postings: a run has a few for each of its turns

Line = dict[str, Any]


async def export_lines(records: Records, run: str, currency: str) -> AsyncIterator[Line]:
    """The lines of a run; none if there is no such run."""
    turns = await records.run(run, reader=None)
    if not turns:
        return
    count = 1
    yield {
        "kind": "run",
        "version": VERSION,
        "run": run,
        "payer": str(turns[0].payer),
        "currency": currency,
        "turns": len(turns),
    }
    async for line in _lines(records, run, turns):
        count += 1
        yield line
    yield {"kind": "end", "run": run, "lines": count + 1}


async def _lines(records: Records, run: str, turns: Sequence[Turn]) -> AsyncIterator[Line]:
    outbound = await records.outbound(run, reader=None)
    asked = await records.questions(turns)
    for turn in turns:
        yield turn_line(turn)
        for hop in outbound.get(turn.n, ()):
            yield {"kind": "hop", "n": turn.n, **hop_fields(hop)}
        for question in asked.get(turn.n, ()):
            yield {"kind": "question", "n": turn.n, **_question(question)}
    for posting in reversed(await records.ledger(run=run, account=None, limit=ALL)):
        yield {
            "kind": "posting",
            "turn": posting.turn,
            "at": when(posting.at),
            "debit": str(posting.debit),
            "credit": posting.credit,
            "amount": format_amount(posting.amount),
        }
    async for entry in entries_of(records, run):
        for line in _entry_lines(entry):
            yield line


def turn_line(turn: Turn) -> Line:
    """One turn: whose it is, where it stands, how it ended and what it cost."""
    return {
        "kind": "turn",
        "n": turn.n,  # two callers may use one id
        "turn": turn.turn,
        "parent_turn": turn.parent_turn,
        "agent": turn.agent,
        "speaker": turn.speaker,
        "actor": turn.actor,
        "payer": str(turn.payer),
        "depth": turn.depth,
        "last_depth": turn.last_depth,
        "dialect": turn.dialect,
        "correlation": turn.correlation,
        "state": turn.state,
        "attempt": turn.attempt,
        "code": turn.code,
        "started": when(turn.created),
        "ended": when(turn.ended),
        "tokens_in": turn.tokens_in,
        "tokens_out": turn.tokens_out,
        "cost": None if turn.cost is None else format_amount(turn.cost),
        "run_cost": None if turn.run_cost is None else format_amount(turn.run_cost),
    }


def hop_fields(hop: OutboundCall) -> Line:
    """One call to another organisation."""
    return {
        "turn": hop.child_turn,
        "to": hop.to,
        "depth": hop.depth,
        "state": hop.state,
        "dialect": hop.dialect or None,
        "cost": None if hop.cost is None else format_amount(hop.cost),
        "currency": hop.currency,
        "code": hop.code,
        "peer_status": hop.peer_status,
        "peer_code": hop.peer_code,
        "receipt": hop.receipt,
    }


def _question(record: InterruptRecord) -> Line:
    asked = record.interrupt
    return {
        "id": asked.id,
        "asks": asked.kind,
        "message": asked.message,
        "origin": asked.origin,
        "status": record.status,
        "outcome": record.outcome,
        "resolver": record.resolver,
        "resolved": when(record.resolved),
    }


def _entry_lines(entry: JournalEntry) -> Iterator[Line]:
    place = {"n": entry.turn_n, "turn": entry.turn}
    if entry.kind == "accepted":
        yield {"kind": "asked", **place, "asked": _read(entry.data)}
    elif entry.kind != "events":
        yield {"kind": entry.kind, **place}
    else:
        number = entry.first
        for events in read_in_pieces(entry.data):
            for event in events:
                yield {"kind": "event", **place, "number": number, **plain_event(event)}
                number += 1


def plain_event(event: Event) -> Line:
    """An event by the names of its fields."""
    fields = {name: msgspec.to_builtins(getattr(event, name)) for name in event.__struct_fields__}
    return {"event": str(type(event).__struct_config__.tag), "fields": fields}


def _read(asked: bytes) -> Any:
    try:
        return msgspec.json.decode(asked)
    except msgspec.DecodeError:
        return None  # no longer kept
