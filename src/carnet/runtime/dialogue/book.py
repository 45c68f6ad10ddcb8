"""What is known of a run while it is driven: kept first, then shown.

Law 1. An event is durable before anybody is shown it.
Law 2. What the run has come to follows from its events, also while it runs.
"""

from typing import TypeVar

from carnet.core.dialogue.events import DialogueEvent
from carnet.core.dialogue.record import DialogueRecord
from carnet.core.dialogue.transcript import DialogueState
from carnet.faults import point
from carnet.ports.calls.dialogues import DialoguePages

E = TypeVar("E", bound=DialogueEvent)


class DialogueBook:
    """The record of one run and the journal that it is kept in, if there is one."""

    def __init__(self, run: str, record: DialogueRecord, pages: DialoguePages | None) -> None:
        """Without pages nothing outlives the process."""
        self.run = run
        self.record = record
        self.cost: int | None = None  # of the last attempt, where somebody has told it
        self.counted: dict[str, int] = {}  # of that, what a record answers for from now on
        self.failure: Exception | None = None  # of the journal: the run cannot go on
        self._pages = pages

    async def keep(self, event: E) -> E:
        """Make an event durable; then it may be shown."""
        if self._pages is not None:
            point("dialogue.before_keep")
            try:
                await self._pages.append([event])
            except Exception as error:
                self.failure = error
                raise
            point("dialogue.kept")
        self.record.add(event)
        return event

    def state(self) -> DialogueState:
        """How far it is."""
        record = self.record
        return DialogueState(
            run_id=self.run,
            seed=record.seed,
            participants=record.participants,
            transcript=tuple(record.turns),
            turn_index=record.index,
            spent=record.spent,
        )


async def open_book(run: str, pages: DialoguePages | None) -> DialogueBook:
    """The book of a run, with what its journal holds."""
    events = [] if pages is None else await pages.read()
    return DialogueBook(run, DialogueRecord.of(events), pages)
