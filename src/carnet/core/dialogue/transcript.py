"""What was spoken in a dialogue, and what each participant is given of it.

Law 1. Own turns are the assistant's, as they were spoken; those of others are the user's, each
       behind the name of who spoke: `[critic] No.`
Law 2. The seed is the first thing that everybody is given; an empty one is left out.
Law 3. Amounts are whole micro-units and are added, never rounded. What nobody has told is None, and
       counted as unknown, not as nothing.
"""

from collections.abc import Sequence

from msgspec import Struct

from carnet.core.messages.events import Message


class SpokenTurn(Struct, frozen=True, kw_only=True):
    """One turn of a dialogue that was spoken to its end."""

    index: int
    speaker: str
    turn_id: str
    text: str
    attempts: int = 1
    started: int = 0  # microseconds since the epoch
    ended: int = 0
    cost: int | None = None  # micro-units, of the attempt that was spoken; None: nobody said
    tokens_in: int | None = None
    tokens_out: int | None = None
    by: str | None = None  # who spoke it in the place of the speaker, who could not


class DialogueState(Struct, frozen=True, kw_only=True):
    """How far a dialogue is: what those who decide on its course are given."""

    run_id: str
    seed: str
    participants: tuple[str, ...]
    transcript: tuple[SpokenTurn, ...] = ()
    turn_index: int = 0  # of the turn that comes next
    spent: int = 0  # micro-units, failed attempts included

    @property
    def last(self) -> SpokenTurn | None:
        """The turn that was spoken last."""
        return self.transcript[-1] if self.transcript else None


def named(turn: SpokenTurn) -> str:
    """A turn as others are given it."""
    return f"[{turn.speaker}] {turn.text}"


def messages_for(speaker: str, seed: str, turns: Sequence[SpokenTurn]) -> tuple[Message, ...]:
    """All that was spoken so far, as one participant is given it."""
    opening = (Message.user(seed),) if seed else ()
    spoken = [
        Message.assistant(turn.text) if turn.speaker == speaker else Message.user(named(turn))
        for turn in turns
    ]
    return (*opening, *spoken)


def text_for(messages: Sequence[Message], speaker: str) -> str:
    """The same as one text, for who takes no more than that."""
    return "\n\n".join(
        [
            f"[{speaker}] {message.text}" if message.role == "assistant" else message.text
            for message in messages
        ]
    )
