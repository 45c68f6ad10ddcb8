"""What a turn said then and says now, compared byte by byte.

Law 1. Compared is what whoever called is told, in the form of the journal: texts, tool calls and
       their results, data, results of skills, and how it ended.
Law 2. How a stream was cut into pieces is no part of it: texts that follow one another are one.
       Nor are the notes of the ledger, incidents, and the time until which a question is open.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.chain.turn import Turn
from carnet.core.messages.events import (
    CHILD,
    OUTBOUND_CALL,
    RECEIPT,
    UNKNOWN_COST,
    Event,
    Extension,
    Failed,
    Text,
    Usage,
    Waiting,
    joined_text,
    write_event,
)

_NOTES: Final = frozenset({CHILD, OUTBOUND_CALL, RECEIPT, UNKNOWN_COST})
_INCIDENT: Final = "incident"

# given: it was answered from the record alone. unrecorded: something that it did is not kept.
# cut: it was stopped from outside.
Verdict = Literal["equal", "different", "given", "unrecorded", "cut"]


class TurnVerdict(Struct, frozen=True, kw_only=True):
    """What became of one turn."""

    turn: str
    agent: str
    verdict: Verdict
    reason: str = ""
    event: int | None = None  # the first that differs, counted from 0
    recorded: str | None = None
    now: str | None = None


def compared(events: Sequence[Event]) -> list[bytes]:
    """What is compared."""
    kept: list[Event] = []
    spoken = [event for event in events if not _is_note(event)]
    for is_text, pieces in groupby(spoken, key=lambda event: isinstance(event, Text)):
        if is_text:
            kept.append(Text(joined_text(list(pieces))))
        else:
            kept += map(_plain, pieces)
    return [write_event(event) for event in kept if event != Text("")]


def _is_note(event: Event) -> bool:
    return isinstance(event, Usage) or (isinstance(event, Extension) and event.name in _NOTES)


def _plain(event: Event) -> Event:
    match event:
        case Failed():
            facts = {name: value for name, value in event.facts.items() if name != _INCIDENT}
            return Failed(event.code, facts)
        case Waiting():
            return Waiting(
                tuple(
                    [
                        replace(each, state="", expires_at=None, lasts=None, currency=None)
                        for each in event.interrupts
                    ]
                )
            )
    return event


def compare(turn: Turn, recorded: Sequence[Event], now: Sequence[Event]) -> TurnVerdict:
    """Whether a turn says the same, or the first event in which it does not."""
    then, since = compared(recorded), compared(now)
    if then == since:
        return TurnVerdict(turn=turn.turn, agent=turn.agent, verdict="equal")
    longest = max(len(then), len(since))
    place = next(n for n in range(longest) if then[n : n + 1] != since[n : n + 1])
    return TurnVerdict(
        turn=turn.turn,
        agent=turn.agent,
        verdict="different",
        event=place,
        recorded=_shown(then, place),
        now=_shown(since, place),
    )


def _shown(events: list[bytes], place: int) -> str | None:
    return events[place].decode() if place < len(events) else None
