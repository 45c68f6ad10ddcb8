"""The journal of the dialogues that a turn of a gateway speaks: steps of that turn.

Law 1. It is no second journal. What another record holds, that of a call out of the turn, is held
       back: whoever drives the turn again makes that call again, and is answered from its record.
Law 2. What no other record holds is durable before it counts: how it began, what a function or a
       model has said, who failed and who was left out. What was held back is written before it, so
       that what is kept is always the beginning of what happened, in the dialogues within as well.
Law 3. What was used and called is kept with the end of what used it, in one step and no other. A
       process that reads them notes each once: the turn of the gateway costs the same, however
       often it runs, and however often it tries.
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
from carnet.runtime.dialogue.place import turn_of
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
Path = tuple[str, ...]  # turns of dialogues, each spoken within the one before


class KeptPart(Struct, frozen=True):
    """What one step holds."""

    events: list[msgspec.Raw]
    calls: list[Any] = []  # what calls have cost that were made
    usage: list[Usage] = []
    root: int = 0  # the first place of the dialogue that all of it is within


_part: Final = msgspec.json.Decoder(KeptPart)


class TurnDialogues:
    """The journals of one dialogue of a turn, and of all that are within it."""

    def __init__(self, record: Turn, steps: Steps, out: Output) -> None:
        """`out` is that of the turn."""
        self.recorded: set[str] = set()  # turns of dialogues that have a record of their own
        self._record = record
        self._steps = steps
        self._out = out
        self._root: int | None = None
        self._noted: list[tuple[Path, Noted]] = []  # in no step yet
        self._found: dict[int, list[tuple[int, KeptPart]]] = {}  # by first places
        self._pages: dict[int, TurnPages] = {}

    async def open(self, first: int, within: Path) -> "TurnPages":
        """The journal of one of them; the first one that is asked for is the outermost."""
        if self._root is None:
            self._root = first
            await self._read()
        found = self._pages.get(first)
        if found is None:
            parts = self._found.pop(first, [])
            found = self._pages[first] = TurnPages(self, first, within, parts)
        return found

    async def _read(self) -> None:
        """Read all that is kept, and note in the turn what was used and called for it."""
        for step in await self._steps.of(self._record):
            part = _part.decode(step.result) if step.name == STEP else None
            if part is None or part.root != self._root:
                continue
            first = step.place >> _ROOM << _ROOM
            self._found.setdefault(first, []).append((step.place, part))
            for payload in part.calls:
                await self._out.write(Extension(CHILD, payload))
            for usage in part.usage:
                self._out.usage(usage)

    def note(self, path: Path, noted: Noted) -> None:
        """Take what a turn used or called; the path leads to it."""
        self._noted.append((path, noted))

    async def keep(self, place: int, events: Sequence[DialogueEvent]) -> None:
        """Make events durable, with what was noted of the turns that they end."""
        ended = set(map(_ended_turn, events)) - {""}
        for pages in list(self._pages.values()):
            if not ended.isdisjoint(pages.within):
                await pages.write_held()
        taken = [noted for noted in self._noted if not ended.isdisjoint(noted[0])]
        part = KeptPart(
            [msgspec.Raw(write_dialogue_event(event)) for event in events],
            [each.payload for _, each in taken if isinstance(each, Extension)],
            [each for _, each in taken if isinstance(each, Usage)],
            self._root or 0,
        )
        step = Step(place, STEP, msgspec.json.encode(part))
        await patiently(partial(self._steps.keep, self._record, step))
        done = set(map(id, taken))  # two of them may be equal
        self._noted = [noted for noted in self._noted if id(noted) not in done]


class DialoguesWithin:
    """Those of one host, each within the last: `Dialogues`."""

    def __init__(self, dialogues: TurnDialogues, path: Path = ()) -> None:
        """`path` leads to the turn that they are driven in, if that is one of a dialogue."""
        self.dialogues = dialogues
        self._path = path
        self._turns: list[str] = []  # that those are within which are driven

    def path(self, turn: str) -> Path:
        """Where a turn is that is spoken now."""
        return (*self._path, *self._turns[1:], turn)

    @asynccontextmanager
    async def hold(self, run: str, scope: str) -> AsyncIterator["TurnPages"]:
        """Be the one who writes a dialogue: that is who has the turn."""
        self._turns.append(turn_of(scope))
        try:
            within = (*self._path, *self._turns[1:])
            yield await self.dialogues.open(first_place(f"{run}\0{scope}"), within)
        finally:
            self._turns.pop()


class TurnPages:
    """The journal of one dialogue."""

    def __init__(
        self,
        dialogues: TurnDialogues,
        first: int,
        within: Path,
        parts: Sequence[tuple[int, KeptPart]],
    ) -> None:
        """`parts` are those that were kept, with their places."""
        self.within = within
        self._dialogues = dialogues
        self._next = parts[-1][0] + 1 if parts else first
        self._events = [read_dialogue_event(bytes(raw)) for _, part in parts for raw in part.events]
        self._held: list[DialogueEvent] = []

    async def read(self) -> Sequence[DialogueEvent]:
        """All its events that were kept or are held back, in order."""
        return list(self._events)

    async def append(self, events: Sequence[DialogueEvent]) -> None:
        """Write these after the others, unless they are found again."""
        kept = [event for event in events if isinstance(event, _KEPT)]
        self._events += kept
        self._held += kept
        if not all(map(self._is_found_again, self._held)):
            await self.write_held()

    async def write_held(self) -> None:
        """Write what was held back, since something that comes after it is written."""
        held, self._held = self._held, []
        if not held:
            return
        try:
            await self._dialogues.keep(self._next, held)
        except BaseException:
            self._held[:0] = held
            raise
        self._next += 1

    def _is_found_again(self, event: DialogueEvent) -> bool:
        """Whether it follows from the record of a call, or is the end of who waits no more."""
        if isinstance(event, TurnEnded):
            return event.turn.turn_id in self._dialogues.recorded
        return isinstance(event, TurnDiscarded) and event.code == Cancelled.code


def _ended_turn(event: DialogueEvent) -> str:
    """The turn that an event ends, or an attempt at it."""
    if isinstance(event, TurnEnded):
        return event.turn.turn_id
    return event.turn_id if isinstance(event, TurnDiscarded | TurnSkipped) else ""
