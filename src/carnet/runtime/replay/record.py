"""All that is kept of a run, in memory, for whoever runs it again.

Law 1. What is read is bounded: a run that is larger is refused, and nothing of it is run.
Law 2. A turn is that of its last attempt. What was asked for is there as long as it is kept.
Law 3. Whose child a turn is follows from its ids and from who called: two callers may use one id.
"""

from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct, convert

from carnet.core.call import Ask
from carnet.core.chain.turn import IN_PROCESS, Turn
from carnet.core.chain.turn_id import is_unscoped
from carnet.core.messages.events import (
    PIECE_BYTES,
    Event,
    Failed,
    Message,
    Usage,
    is_terminal,
    read_events,
)
from carnet.core.messages.interrupt import Answered
from carnet.core.messages.outbound_call import OutboundCall
from carnet.errors import (
    Cancelled,
    OutcomeUnknown,
    ProviderTimeout,
    ShuttingDown,
    UsageInvalid,
)
from carnet.ports.calls.steps import Step, Steps
from carnet.ports.calls.turns import Turns
from carnet.ports.world.records import JournalEntry, Records
from carnet.wire.dialects.dialect import Dialect
from carnet.wire.dialects.openai.request import read_messages
from carnet.wire.grammar import json

MOST_BYTES: Final = 64 * 1024 * 1024  # of events, requests and steps, as they are kept
MOST_ROWS: Final = 500

# How a turn ends that was stopped from outside; where it was not, it ends so again.
CUT: Final = frozenset(
    {each.code for each in (Cancelled, OutcomeUnknown, ShuttingDown, ProviderTimeout)}
)

_MESSAGES: Final = frozenset({"messages", "skill", "payload"})


class ReadsRuns(Protocol):
    """The store, as far as runs are read of it."""

    @property
    def records(self) -> Records:
        """What happened."""

    @property
    def turns(self) -> Turns:
        """The events of turns."""

    @property
    def steps(self) -> Steps:
        """What agents have done."""


def is_cut(turn: Turn) -> bool:
    """Whether a turn was stopped from outside."""
    return turn.code in CUT


class RecordedTurn(Struct, frozen=True, kw_only=True, eq=False):
    """What is kept of one turn."""

    turn: Turn
    asked: bytes | None = None  # canonically; None: no longer kept
    events: tuple[Event, ...] = ()
    steps: tuple[Step, ...] = ()
    answers: tuple[Answered, ...] = ()  # to what it asked for
    outbound: tuple[OutboundCall, ...] = ()

    def spoken(self) -> tuple[Event, ...]:
        """What it has said before its end."""
        events = self.events
        return events[:-1] if events and is_terminal(events[-1]) else events

    def answer(self) -> tuple[Event, ...]:
        """What whoever called it was given: its events, what it used, its end."""
        turn, spoken = self.turn, self.spoken()
        usage = Usage(turn.tokens_in, turn.tokens_out, turn.cost, turn.run_cost)
        ended = self.events[len(spoken) :] or (Failed.of(OutcomeUnknown()),)
        return (*spoken, usage, *ended)

    def ask(self, dialects: Sequence[Dialect]) -> Ask:
        """What was asked; InvalidRequest if that cannot be read.

        What came in none of these dialects is written in the words of the first: conversations of
        people here, for one.
        """
        asked, name = self.asked or b"", self.turn.dialect
        if not name:
            return _child(asked)
        return next((each for each in dialects if each.name == name), dialects[0]).asked(asked)


def _child(request: bytes) -> Ask:
    """What an agent here has asked, in the form of `guards.admission.children`."""
    asked: dict[str, Any] = json.read_object(request)
    listed = asked.get("messages") or []
    if any("parts" in each for each in listed):
        messages = convert(listed, tuple[Message, ...])
    else:
        messages = read_messages(listed) if listed else ()
    if not asked.keys() <= _MESSAGES:
        return Ask(messages=messages, body=asked)
    return Ask(messages=messages, skill=asked.get("skill"), payload=asked.get("payload"))


class RecordedRun:
    """What is kept of all turns of a run."""

    def __init__(self, run: str, turns: Sequence[RecordedTurn]) -> None:
        """The turns, oldest first."""
        self.run = run
        self.turns = tuple(turns)
        self._by_number = {each.turn.n: each for each in self.turns}
        self._by_id: dict[str, list[RecordedTurn]] = {}
        for each in self.turns:
            self._by_id.setdefault(each.turn.turn, []).append(each)
        self._roots = [each for each in self.turns if not each.turn.actor.startswith(IN_PROCESS)]
        self._children: dict[int, dict[str, RecordedTurn]] = {}
        for each in self.turns:
            above = self.parent(each.turn)
            if above is not None:
                self._children.setdefault(above.turn.n, {}).setdefault(each.turn.turn, each)

    def find(self, n: int) -> RecordedTurn | None:
        """The turn with this number."""
        return self._by_number.get(n)

    def parent(self, child: Turn) -> RecordedTurn | None:
        """The turn here that has made a call; None where somebody else has."""
        if not child.actor.startswith(IN_PROCESS):
            return None
        named = child.parent_turn is not None or not is_unscoped(child.run, child.turn)
        among = self._by_id.get(child.parent_turn or "", ()) if named else self._roots
        agent = child.actor.removeprefix(IN_PROCESS)
        found = [each for each in among if each.turn.agent == agent]
        return max(found, key=lambda each: _likeness(each.turn, child), default=None)

    def child(self, parent: Turn, turn: str) -> RecordedTurn | None:
        """The call that a turn made under this id."""
        return self._children.get(parent.n, {}).get(turn)

    def children(self, parent: Turn) -> list[RecordedTurn]:
        """The calls that a turn made."""
        return list(self._children.get(parent.n, {}).values())

    def above(self, agent: str) -> frozenset[int]:
        """The numbers of the turns of an agent, and of all that have called it, at any depth."""
        found: set[int] = set()
        for each in self.turns:
            here = each if each.turn.agent == agent else None
            while here is not None and here.turn.n not in found:
                found.add(here.turn.n)
                here = self.parent(here.turn)
        return frozenset(found)

    def roots(self) -> list[RecordedTurn]:
        """The turns that no agent here has made."""
        return list(self._roots)


def _likeness(parent: Turn, child: Turn) -> tuple[bool, ...]:
    """How much speaks for it that one of several has made a call: two callers may use one id."""
    return (
        parent.correlation == child.correlation,
        parent.payer == child.payer,
        parent.created <= child.created <= (parent.ended or child.created),
    )


async def read_recorded(store: ReadsRuns, run: str) -> RecordedRun | None:
    """All that is kept of a run; None if there is no such run."""
    turns = await store.records.run(run, reader=None)
    if not turns:
        return None
    asked: dict[int, bytes] = {}
    size = 0
    async for entry in entries_of(store.records, run):
        size += len(entry.data)
        _refuse_large(run, size)
        if entry.kind == "accepted" and entry.data:
            asked[entry.turn_n] = entry.data
    outbound = await store.records.outbound(run, reader=None)
    found: list[RecordedTurn] = []
    for turn in turns:
        found.append(await _recorded(store, turn, asked, outbound.get(turn.n, ())))
        size += sum(len(step.result) for step in found[-1].steps)
        _refuse_large(run, size)
    return RecordedRun(run, found)


def _refuse_large(run: str, size: int) -> None:
    if size > MOST_BYTES:
        raise UsageInvalid(
            reason=f"The record of {run} has more than {MOST_BYTES // (1024 * 1024)} MiB.",
            fix=f"Write it out instead: carnet run export {run}",
        )


async def _recorded(
    store: ReadsRuns, turn: Turn, asked: dict[int, bytes], outbound: Sequence[OutboundCall]
) -> RecordedTurn:
    batches = await store.turns.events(turn)
    answered = [each for each in await store.turns.interrupts(turn) if each.outcome]
    return RecordedTurn(
        turn=turn,
        asked=asked.get(turn.n),
        events=tuple([event for data in batches for event in read_events(data)]),
        steps=tuple(await store.steps.of(turn)),
        answers=tuple([each.answered for each in answered]),
        outbound=tuple(outbound),
    )


async def entries_of(records: Records, run: str) -> AsyncIterator[JournalEntry]:
    """The journal of a run, row by row: no more than a piece of it is in memory at a time."""
    after, room = 0, PIECE_BYTES
    while True:
        entries = await records.entries(
            run, reader=None, after=after, limit=MOST_ROWS, most_bytes=room
        )
        if not entries:
            return
        size = entries[0].size
        if size is not None:  # a row that is larger than a piece: once more, with room for it
            room = size
            continue
        room = PIECE_BYTES
        for entry in entries:
            after = entry.n
            yield entry
