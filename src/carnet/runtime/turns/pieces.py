"""Long answers: how their events grow few, and what is written to the journal at a time.

Nothing here runs for an answer of a word or two.

Law 1. No piece is larger than `PIECE_BYTES`, unless a single event is: a text is divided, since its
       readers put texts together, and nothing else can be.
Law 2. Whatever is done here is linear in the bytes: an event is looked at once.
Law 3. Beyond the first `EVENTS_A_TURN`, the texts of a whole answer run together: what is done for
       each event later is done seldom. An agent that says so much and never waits lets others have
       their turn (A73).
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

from carnet.core.call import Call
from carnet.core.messages.events import PIECE_BYTES, Event, Text, join_events, write_event
from carnet.errors import AgentFailed
from carnet.ports.calls.turns import Turns

MOST_BYTES: Final = 64 * 1024 * 1024  # of one turn
EVENTS_A_TURN: Final = 256  # of a whole answer, before others have their turn of the loop
RUN_BYTES: Final = 64 * 1024  # of texts that run together, as they were said one by one
# A character takes six bytes at the most (\u0000), so that a text stays below a piece.
MOST_CHARACTERS: Final = 32 * 1024

Piece = tuple[list[Event], list[bytes]]  # events, and the journal's form of each


class TextRun:
    """Texts of a whole answer that follow one another, to be recorded as one."""

    __slots__ = ("_parts", "size")

    def __init__(self, first: Text) -> None:
        """It goes on from this one."""
        self._parts = [first.text]
        self.size = 0  # of what was added, in the journal's form

    def add(self, text: str, size: int) -> bool:
        """Take the next one; whether that is enough."""
        self._parts.append(text)
        self.size += size
        return self.size > RUN_BYTES

    def event(self) -> Text:
        """All of them as one."""
        return Text("".join(self._parts))


def in_pieces(events: Sequence[Event], encoded: Sequence[bytes]) -> Iterator[Piece]:
    """The events of a turn, divided into pieces; the last holds the last event."""
    kept: list[Event] = []
    data: list[bytes] = []
    room = PIECE_BYTES
    for event, form in _divided(events, encoded):
        if data and len(form) >= room:
            yield kept, data
            kept, data, room = [], [], PIECE_BYTES
        kept.append(event)
        data.append(form)
        room -= len(form) + 1  # the comma
    yield kept, data


def _divided(events: Sequence[Event], encoded: Sequence[bytes]) -> Iterator[tuple[Event, bytes]]:
    for event, form in zip(events, encoded, strict=True):
        if len(form) < PIECE_BYTES or type(event) is not Text:
            yield event, form
            continue
        for at in range(0, len(event.text), MOST_CHARACTERS):
            part = Text(event.text[at : at + MOST_CHARACTERS])
            yield part, write_event(part)


class Grown:
    """The part of a recording that a long answer needs."""

    _turns: Turns
    _call: Call
    _waiting: list[Event]  # what is not durable yet
    _encoded: list[bytes]  # the journal's form of each
    _waiting_bytes: int
    _event_bytes: int  # of all that was said
    _written: int  # events, those that were taken back left out
    _sequence: int  # the number of the first that is not durable
    _marked: int  # how many were written at the last mark
    _counted: int  # events of a whole answer, beyond its first
    _text: TextRun | None  # what its last event becomes
    _spared: int  # bytes that texts took by themselves, and not as one; since the last mark

    async def _runs_on(self, event: Event) -> bool:
        """Whether an event of a whole answer goes on with the text before it, and is kept so."""
        self._counted += 1
        if self._counted % EVENTS_A_TURN == 0:
            await asyncio.sleep(0)
        last = self._waiting[-1]
        if type(event) is Text and type(last) is Text and self._written != self._marked:
            if self._counted >= EVENTS_A_TURN:
                self._add_text(event, last)
                return True
        elif self._text is not None:
            self._end_text()
        return False

    def _add_text(self, event: Text, last: Text) -> None:
        try:
            size = len(write_event(event))
        except ValueError as error:  # half a surrogate pair
            raise AgentFailed(f"said what cannot be recorded: {error}") from None
        if self._event_bytes + size > MOST_BYTES:
            raise AgentFailed(f"said more than {MOST_BYTES} bytes")
        self._event_bytes += size
        self._waiting_bytes += size
        if self._text is None:
            self._text = TextRun(last)
        if self._text.add(event.text, size):
            self._end_text()

    def _end_text(self) -> None:
        """Make one event of the texts that ran together; each still counts by itself."""
        if self._text is not None:
            self._waiting[-1] = event = self._text.event()
            before, self._encoded[-1] = self._encoded[-1], write_event(event)
            spared = len(before) + self._text.size - len(self._encoded[-1])
            self._waiting_bytes -= spared
            self._spared += spared
            self._text = None

    def _take_all(self) -> Piece:
        taken = self._waiting, self._encoded
        self._waiting, self._encoded, self._waiting_bytes = [], [], 0
        return taken

    def _take_piece(self) -> Piece:
        """The first piece of more than one that waits."""
        count, (first, *rest) = len(self._waiting), in_pieces(*self._take_all())
        for batch, encoded in rest:
            self._waiting += batch
            self._encoded += encoded
            self._waiting_bytes += sum(map(len, encoded))
        self._written += len(first[0]) + len(self._waiting) - count  # a text was divided
        return first

    async def _write_ahead(self) -> list[Event]:
        """Make all but the last piece of what waits durable, one by one; the events of those."""
        *pieces, last = in_pieces(*self._take_all())
        for batch, encoded in pieces:
            first, self._sequence = self._sequence, self._sequence + len(batch)
            data = join_events(encoded)
            await self._turns.append(self._call.record, first, self._sequence - 1, data)
        self._waiting, self._encoded = last
        return [event for batch, _ in pieces for event in batch]
