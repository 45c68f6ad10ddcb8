"""The journals of dialogues in memory, which can be told to fail as a dying driver would."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from carnet.core.dialogue.events import (
    TEXT_KIND,
    DialogueEvent,
    kind_of_event,
    read_dialogue_event,
    write_dialogue_event,
)
from carnet.errors import InProgress, StorageUnavailable


class MemoryDialogues:
    """Keeps what is appended, as bytes, for as long as the test lasts."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], list[bytes]] = {}
        self.fails_after: int | None = None  # so many more events are kept, then none
        self._held: set[tuple[str, str]] = set()

    def events(self, run: str, scope: str = "") -> list[DialogueEvent]:
        """All that was kept of a dialogue."""
        return [read_dialogue_event(body) for body in self.kept.get((run, scope), [])]

    @asynccontextmanager
    async def hold(self, run: str, scope: str) -> AsyncIterator["MemoryPages"]:
        """Be the one who writes a dialogue; InProgress while somebody else is."""
        if (run, scope) in self._held:
            raise InProgress("somebody else writes it")
        self._held.add((run, scope))
        try:
            yield MemoryPages(self, (run, scope))
        finally:
            self._held.discard((run, scope))


class MemoryPages:
    """The journal of one dialogue."""

    def __init__(self, dialogues: MemoryDialogues, key: tuple[str, str]) -> None:
        self._dialogues = dialogues
        self._key = key

    async def read(self) -> Sequence[DialogueEvent]:
        events = self._dialogues.events(*self._key)
        return [event for event in events if kind_of_event(event) != TEXT_KIND]

    async def append(self, events: Sequence[DialogueEvent]) -> None:
        dialogues = self._dialogues
        if dialogues.fails_after is not None:
            if dialogues.fails_after <= 0:
                raise StorageUnavailable("the driver is dead")
            dialogues.fails_after -= 1
        bodies = [write_dialogue_event(event) for event in events]
        dialogues.kept.setdefault(self._key, []).extend(bodies)
