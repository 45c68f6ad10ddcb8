"""The journal of a dialogue that a turn of a gateway speaks: steps of that turn.

Law 1. It is no second journal. What another record holds, that of a call out of the turn, is held
       back: whoever drives the turn again makes that call again, and is answered from its record.
Law 2. What no other record holds is durable before it counts: how it began, what a function or a
       model has said, who failed and who was left out. What was held back is written before it, so
       that what is kept is always the beginning of what happened.
Law 3. What a turn of it has used and called is kept with its end, and noted again where that end is
       read: the turn of the gateway costs the same, however often it runs.
Law 4. Only the owner of the turn writes: who has lost it is fenced off.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from hashlib import blake2b
from typing import Any, Final

import msgspec
from msgspec import Struct

from carnet.core.chain.turn import Turn
from carnet.core.dialogue.events import (
    ConversationStarted,
    DialogueEvent,
    TurnDiscarded,
    TurnEnded,
    TurnSkipped,
    read_dialogue_event,
    write_dialogue_event,
)
from carnet.core.messages.events import CHILD, Extension, Usage
from carnet.core.messages.output import Output
from carnet.errors import Cancelled
from carnet.ports.calls.steps import Step, Steps
from carnet.runtime.visit.steps import patiently

STEP: Final = "conversation"
_KEPT: Final = (ConversationStarted, TurnDiscarded, TurnEnded, TurnSkipped)
_ROOM: Final = 20  # bits: so many steps one of them may have
_SCOPE_BITS: Final = 40
_JOURNALS: Final = 1 << 62
_FUNCTIONS: Final = 1 << 61


def first_place(scope: str, *, of_function: bool = False) -> int:
    """Where the steps of a dialogue, or of a function that speaks in one, begin in their turn."""
    digest = blake2b(scope.encode(), digest_size=_SCOPE_BITS // 8).digest()
    return (_FUNCTIONS if of_function else _JOURNALS) | int.from_bytes(digest) << _ROOM


Noted = Extension | Usage


class KeptPart(Struct, frozen=True):
    """What one step holds."""

    events: list[msgspec.Raw]
    calls: list[Any] = []  # what calls have cost that were made
    usage: list[Usage] = []


_part: Final = msgspec.json.Decoder(KeptPart)


class TurnDialogues:
    """The journals of the dialogues of one turn."""

    def __init__(self, record: Turn, steps: Steps, out: Output) -> None:
        """`out` is that of the turn."""
        self.recorded: set[str] = set()  # turns of dialogues that have a record of their own
        self._record = record
        self._steps = steps
        self._out = out
        self._noted: dict[str, list[Noted]] = {}  # by turns of dialogues
        self._scopes: list[str] = []  # of the dialogues that are driven, each within the last

    def note(self, turn: str, noted: Noted) -> None:
        """Take what a turn used or called, for it and for those that it is spoken in."""
        for each in {turn, *self._scopes[1:]}:
            self._noted.setdefault(each, []).append(noted)

    def take_notes(self, events: Sequence[DialogueEvent]) -> list[Noted]:
        """What was noted of the turns that these events end."""
        found: list[Noted] = []
        for event in events:
            turn = event.turn.turn_id if isinstance(event, TurnEnded) else ""
            turn = event.turn_id if isinstance(event, TurnDiscarded) else turn
            found += self._noted.pop(turn, [])
        return found

    async def note_again(self, part: KeptPart) -> None:
        """Note in the turn what those have used and called who are not asked again."""
        for payload in part.calls:
            await self._out.write(Extension(CHILD, payload))
        for usage in part.usage:
            self._out.usage(usage)

    @asynccontextmanager
    async def hold(self, run: str, scope: str) -> AsyncIterator["TurnPages"]:
        """Be the one who writes a dialogue: that is who has the turn."""
        self._scopes.append(scope)
        try:
            yield TurnPages(self, first_place(f"{run}\0{scope}"))
        finally:
            self._scopes.pop()

    async def read(self, first: int) -> list[Step]:
        """What is kept of one of them."""
        last = first + (1 << _ROOM)
        steps = await self._steps.of(self._record)
        return [step for step in steps if step.name == STEP and first <= step.place < last]

    async def keep(self, place: int, events: Sequence[DialogueEvent]) -> None:
        """Make events durable, with what was noted of the turns that they end."""
        noted = self.take_notes(events)
        part = KeptPart(
            [msgspec.Raw(write_dialogue_event(event)) for event in events],
            [each.payload for each in noted if isinstance(each, Extension)],
            [each for each in noted if isinstance(each, Usage)],
        )
        step = Step(place, STEP, msgspec.json.encode(part))
        await patiently(partial(self._steps.keep, self._record, step))


class TurnPages:
    """The journal of one dialogue."""

    def __init__(self, dialogues: TurnDialogues, first: int) -> None:
        self._dialogues = dialogues
        self._next = self._first = first
        self._held: list[DialogueEvent] = []

    async def read(self) -> Sequence[DialogueEvent]:
        """All its events that were kept, in order."""
        steps = await self._dialogues.read(self._first)
        found: list[DialogueEvent] = []
        for step in steps:
            part = _part.decode(step.result)
            self._next = step.place + 1
            found += [read_dialogue_event(bytes(raw)) for raw in part.events]
            await self._dialogues.note_again(part)
        return found

    async def append(self, events: Sequence[DialogueEvent]) -> None:
        """Write these after the others, unless they are found again."""
        self._held += [event for event in events if isinstance(event, _KEPT)]
        if all(map(self._is_found_again, self._held)):
            return
        held, self._held = self._held, []
        place, self._next = self._next, self._next + 1
        await self._dialogues.keep(place, held)

    def _is_found_again(self, event: DialogueEvent) -> bool:
        """Whether it follows from the record of a call, or is the end of who waits no more."""
        if isinstance(event, TurnEnded):
            return event.turn.turn_id in self._dialogues.recorded
        return isinstance(event, TurnDiscarded) and event.code == Cancelled.code
