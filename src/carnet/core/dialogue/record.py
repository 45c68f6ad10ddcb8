"""What the events of a run come to: where it stands, and how it goes on.

Law 1. A record follows from its events alone, whoever reads them.
Law 2. A turn that ended is in the transcript once. One that began and did not end is open: it is
       spoken again under the same id, by an attempt with a number of its own.
Law 3. What a discarded attempt has cost is spent. What of that a record answers for from then on is
       remembered while its turn is open: the next attempt does not count it again.
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
from carnet.core.messages.events import Usage


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
        self.counted: dict[str, int] = {}  # at it, by name: what later attempts find in a record
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
                self._discard(event)
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

    def usage(self) -> Usage:
        """What all of it has used, for the turn that it is spoken in."""
        tokens_in = [turn.tokens_in for turn in self.turns if turn.tokens_in is not None]
        tokens_out = [turn.tokens_out for turn in self.turns if turn.tokens_out is not None]
        is_known = bool(self.spent) or not self.unknown_costs
        return Usage(
            tokens_in=sum(tokens_in) if tokens_in else None,
            tokens_out=sum(tokens_out) if tokens_out else None,
            cost=self.spent if is_known else None,
        )

    def _define(self, event: ConversationStarted | ConversationResumed) -> None:
        self.seed, self.fingerprint = event.seed, event.fingerprint
        self.participants = event.participants

    def _begin(self, event: TurnStarted | TurnRetried) -> None:
        if event.turn_id != self.turn_id:
            self._close()
        self.open, self.turn_id, self.attempts = event, event.turn_id, event.attempt

    def _discard(self, event: TurnDiscarded) -> None:
        if event.turn_id != self.turn_id:  # a journal may hold the ends alone
            self._close()
        self.open, self.turn_id, self.attempts = None, event.turn_id, event.attempt
        for name, cost in event.counted.items():
            self.counted[name] = self.counted.get(name, 0) + cost

    def _pay(self, cost: int | None) -> None:
        self.spent += cost or 0
        self.unknown_costs += cost is None

    def _close(self) -> None:
        self.open, self.turn_id, self.attempts, self.counted = None, "", 0, {}
