"""What the events of a run come to: where it stands, and how it goes on.

Law 1. A record follows from its events alone, whoever reads them.
Law 2. A turn that ended is in the transcript once. One that began and did not end is open: it is
       spoken again under the same id, by an attempt with a number of its own.
Law 3. What a discarded attempt has cost is spent.
"""

from collections.abc import Iterable

from carnet.core.dialogue.events import (
    ConversationEnded,
    ConversationResult,
    ConversationResumed,
    ConversationStarted,
    DialogueEvent,
    TurnDiscarded,
    TurnEnded,
    TurnRetried,
    TurnSkipped,
    TurnStarted,
)
from carnet.core.dialogue.halt import Halt
from carnet.core.dialogue.transcript import SpokenTurn


class DialogueRecord:
    """A run as far as it is recorded. It grows event by event."""

    def __init__(self) -> None:
        self.started: ConversationStarted | None = None
        self.seed = ""
        self.fingerprint = ""
        self.participants: tuple[str, ...] = ()
        self.turns: list[SpokenTurn] = []
        self.skipped = 0
        self.spent = 0
        self.unknown_costs = 0
        self.turn_id = ""  # of the turn that is open
        self.attempts = 0  # at it
        self.paid = 0  # by attempts at the turn that is open, which were discarded
        self.open: TurnStarted | TurnRetried | None = None  # an attempt that has not ended
        self.halt: Halt | None = None
        self.ended = 0

    @classmethod
    def of(cls, events: Iterable[DialogueEvent]) -> "DialogueRecord":
        """The record that these events make."""
        record = cls()
        for event in events:
            record.add(event)
        return record

    @property
    def index(self) -> int:
        """Of the turn that is open, or comes next."""
        return len(self.turns) + self.skipped

    def add(self, event: DialogueEvent) -> None:
        """Take the next event."""
        match event:
            case ConversationStarted():
                self.started = event
                self._define(event)
            case ConversationResumed():
                self._define(event)
                self.halt = None
            case TurnStarted() | TurnRetried():
                self._begin(event)
            case TurnDiscarded():
                self.open = None
                self.paid += event.cost or 0
                self._pay(event.cost)
            case TurnEnded(turn=turn):
                self.turns.append(turn)
                self._pay(turn.cost)
                self._close()
            case TurnSkipped():
                self.skipped += 1
                self._close()
            case ConversationEnded(result=result):
                self.halt, self.ended = result.halted, result.ended
            case _:
                pass  # text is that of the turn, once that has ended

    def result(self, halt: Halt, ended: int) -> ConversationResult:
        """What it has come to."""
        return ConversationResult(
            run_id=self.started.run_id if self.started else "",
            transcript=tuple(self.turns),
            halted=halt,
            spent=self.spent,
            unknown_costs=self.unknown_costs,
            started=self.started.at if self.started else ended,
            ended=ended,
        )

    def _define(self, event: ConversationStarted | ConversationResumed) -> None:
        self.seed, self.fingerprint = event.seed, event.fingerprint
        self.participants = event.participants

    def _begin(self, event: TurnStarted | TurnRetried) -> None:
        if event.turn_id != self.turn_id:
            self._close()
        self.open, self.turn_id, self.attempts = event, event.turn_id, event.attempt

    def _pay(self, cost: int | None) -> None:
        self.spent += cost or 0
        self.unknown_costs += cost is None

    def _close(self) -> None:
        self.open, self.turn_id, self.attempts, self.paid = None, "", 0, 0
