"""What is told of a dialogue while it runs; the same is what its journal holds.

Law 1. The first event is `ConversationStarted` or `ConversationResumed`, the last one
       `ConversationEnded`.
Law 2. Text belongs to one attempt. `TurnDiscarded` names the attempt whose text counts no more,
       with what it has cost all the same.
Law 3. `read_event(write_event(x)) == x`.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Struct

from carnet.core.dialogue.halt import DialogueLimits, Halt
from carnet.core.dialogue.transcript import SpokenTurn


class ConversationStarted(Struct, frozen=True, kw_only=True, tag="conversation_start"):
    """A run begins."""

    run_id: str
    participants: tuple[str, ...]
    seed: str
    at: int  # microseconds since the epoch
    fingerprint: str  # of the definition: who takes part, in which order, under which policies
    limits: DialogueLimits
    parent_turn_id: str | None = None
    inbound_depth: int = 0
    forwards: bool = False  # it was given a credential of whoever pays, which is not recorded


class ConversationResumed(Struct, frozen=True, kw_only=True, tag="conversation_resumed"):
    """A run goes on where it was left."""

    run_id: str
    participants: tuple[str, ...]
    seed: str
    transcript: tuple[SpokenTurn, ...]
    at: int
    fingerprint: str
    limits: DialogueLimits


class TurnStarted(Struct, frozen=True, kw_only=True, tag="turn_start"):
    """A participant is called for the first time in this turn."""

    run_id: str
    index: int
    speaker: str
    turn_id: str
    attempt: int
    at: int

    @property
    def attempt_id(self) -> str:
        """The name of this attempt."""
        return attempt_id(self.turn_id, self.attempt)


class TurnRetried(Struct, frozen=True, kw_only=True, tag="turn_retry"):
    """It is called again, under the same turn id."""

    run_id: str
    index: int
    speaker: str
    turn_id: str
    attempt: int
    reason: str
    at: int
    by: str | None = None  # who is called in its place

    @property
    def attempt_id(self) -> str:
        """The name of this attempt."""
        return attempt_id(self.turn_id, self.attempt)


class TurnText(Struct, frozen=True, kw_only=True, tag="turn_text"):
    """A piece of what an attempt says."""

    run_id: str
    index: int
    speaker: str
    turn_id: str
    attempt: int
    text: str

    @property
    def attempt_id(self) -> str:
        """The name of the attempt that it belongs to."""
        return attempt_id(self.turn_id, self.attempt)


class TurnDiscarded(Struct, frozen=True, kw_only=True, tag="turn_discard"):
    """What an attempt has said counts no more; what it has cost is paid."""

    run_id: str
    index: int
    speaker: str
    turn_id: str
    attempt: int
    code: str
    message: str
    at: int
    cost: int | None = None  # micro-units; None: nobody said
    detail: str = ""  # of the error, for whoever runs the driver
    counted: dict[str, int] = {}  # of that, by name, what is answered from a record from now on

    @property
    def attempt_id(self) -> str:
        """The name of the attempt."""
        return attempt_id(self.turn_id, self.attempt)


class TurnSkipped(Struct, frozen=True, kw_only=True, tag="turn_skip"):
    """A participant has failed and is left out this time."""

    run_id: str
    index: int
    speaker: str
    turn_id: str
    attempts: int
    code: str
    message: str
    at: int


class TurnEnded(Struct, frozen=True, kw_only=True, tag="turn_end"):
    """A turn was spoken: it is never spoken again."""

    run_id: str
    turn: SpokenTurn
    at: int


class ConversationResult(Struct, frozen=True, kw_only=True):
    """What a run has come to."""

    run_id: str
    transcript: tuple[SpokenTurn, ...]
    halted: Halt
    spent: int  # micro-units, failed attempts included
    unknown_costs: int  # attempts of which nobody said what they cost
    started: int  # microseconds since the epoch
    ended: int

    @property
    def turns(self) -> int:
        """How many turns were spoken."""
        return len(self.transcript)

    @property
    def text(self) -> str:
        """What was spoken last."""
        return self.transcript[-1].text if self.transcript else ""


class ConversationEnded(Struct, frozen=True, kw_only=True, tag="conversation_end"):
    """A run has halted."""

    run_id: str
    result: ConversationResult
    at: int


DialogueEvent = (
    ConversationStarted
    | ConversationResumed
    | TurnStarted
    | TurnRetried
    | TurnText
    | TurnDiscarded
    | TurnSkipped
    | TurnEnded
    | ConversationEnded
)

TEXT_KIND: Final = "turn_text"

_encoder: Final = msgspec.json.Encoder()
_decoder: Final[msgspec.json.Decoder[Any]] = msgspec.json.Decoder(DialogueEvent)

write_dialogue_event: Final[Callable[[DialogueEvent], bytes]] = _encoder.encode


def read_dialogue_event(data: bytes) -> DialogueEvent:
    """An event as the journal holds it."""
    event: DialogueEvent = _decoder.decode(data)
    return event


def kind_of_event(event: DialogueEvent) -> str:
    """The word for what it tells."""
    kind = event.__struct_config__.tag
    return str(kind)


def attempt_id(turn_id: str, attempt: int) -> str:
    """The name of one attempt at a turn: other text than that of the same name is another's."""
    return f"{turn_id}#{attempt}"
