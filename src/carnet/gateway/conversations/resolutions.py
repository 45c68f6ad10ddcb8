"""What somebody was asked in a turn and has answered, in the place where its client reads it.

Law 1. Each question and each answer is told once in a stream, the question first. What a rule has
       answered nobody was asked: its answer alone is told.
Law 2. A question that was not answered in time is told as one, and is not the end.
Law 3. What a tool needed is told before what the tool gave; all else before the end.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from carnet.core.chain.turn import Turn
from carnet.core.messages.events import (
    Event,
    Interrupted,
    Resolved,
    ToolResult,
    Waiting,
    is_terminal,
)
from carnet.core.messages.interrupt import InterruptRecord, Resolution
from carnet.ports.calls.turns import Turns
from carnet.wire.dialects.policy import own_id

RULE: Final = "rule:"  # how the name of a rule begins that has answered


class Resolutions:
    """The answers to what one turn asks for, as far as one stream has told them."""

    def __init__(self, turns: Turns, turn: Turn) -> None:
        """`turns` keeps what was asked."""
        self._turns = turns
        self._turn = turn
        self._asked: set[str] = set()
        self._shown: set[str] = set()

    async def within(self, events: Sequence[Event]) -> Sequence[Event]:
        """The events, with what was asked and answered before what came of it."""
        if not events:
            return events
        if any(isinstance(event, Waiting) for event in events[:-1]):
            events = self._reopened(events)
        for event in events:
            if isinstance(event, Interrupted):
                self._asked.add(event.interrupt.id)
            elif isinstance(event, Resolved):
                self._shown.add(event.interrupt_id)
        if not is_terminal(events[-1]) and not any(isinstance(e, ToolResult) for e in events):
            return events
        records = await self._turns.interrupts(self._turn)
        left = {each.interrupt.id: each for each in records if each.outcome is not None}
        left = {id: each for id, each in left.items() if id not in self._shown}
        return self._inserted(events, left) if left else events

    def _reopened(self, events: Sequence[Event]) -> list[Event]:
        """The events of a turn that has waited in vain: its question is not its end."""
        found: list[Event] = []
        for event in events[:-1]:
            if isinstance(event, Waiting):
                new = [each for each in event.interrupts if each.id not in self._asked]
                found += [Interrupted(each) for each in new]
            else:
                found.append(event)
        return [*found, events[-1]]

    def _inserted(self, events: Sequence[Event], left: dict[str, InterruptRecord]) -> list[Event]:
        found: list[Event] = []
        for event in events:
            if isinstance(event, ToolResult):
                record = left.pop(own_id(self._turn.key, event.id), None)
                found += self._pair(record) if record is not None else []
            elif is_terminal(event):  # of what was no tool
                for record in left.values():
                    found += self._pair(record)
            found.append(event)
        return found

    def _pair(self, record: InterruptRecord) -> list[Event]:
        id = record.interrupt.id
        is_shown = id in self._asked or (record.resolver or "").startswith(RULE)
        self._shown.add(id)
        return [*([] if is_shown else [Interrupted(record.interrupt)]), resolved(record)]


def resolved(record: InterruptRecord) -> Resolved:
    """The answer to a question; with a value only if it stands in the place of the arguments."""
    resolution = record.answered.resolution
    arguments = (record.interrupt.more or {}).get("arguments")
    is_edited = resolution.accepted and arguments is not None and resolution.value is not None
    value = resolution.value if is_edited and resolution.value != arguments else None
    result = Resolution(outcome=resolution.outcome, resolver=resolution.resolver, value=value)
    return Resolved(record.interrupt.id, result)


def answered(records: Iterable[InterruptRecord], ids: Iterable[str]) -> list[InterruptRecord]:
    """Those of these questions that somebody has answered."""
    asked = set(ids)
    return [each for each in records if each.interrupt.id in asked and each.outcome is not None]
