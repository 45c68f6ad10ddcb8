"""Long answers in pieces."""

import pytest

from carnet.core.messages.events import (
    PIECE_BYTES,
    Data,
    Done,
    Event,
    Text,
    joined_text,
    read_events,
    read_in_pieces,
    write_event,
    write_events,
)
from carnet.runtime.turns.pieces import RUN_BYTES, TextRun, in_pieces

ANSWERS: dict[str, list[Event]] = {
    "short": [Text("a"), Done()],
    "many words": [*(Text("a ") for _ in range(100_000)), Done()],
    "one long text": [Text("\u0000é" * 300_000), Done()],
    "between others": [Data([1]), Text("x" * 700_000), Data({"b": 2}), Text(""), Done()],
}


@pytest.mark.parametrize("name", ANSWERS)
def test_pieces_hold_all_that_was_said_in_its_order_and_are_small(name: str) -> None:
    events = ANSWERS[name]
    pieces = list(in_pieces(events, [write_event(event) for event in events]))
    flat = [event for batch, _ in pieces for event in batch]
    assert joined_text(flat) == joined_text(events)
    assert [event for event in flat if not isinstance(event, Text)] == [
        event for event in events if not isinstance(event, Text)
    ]
    assert max(sum(map(len, encoded)) for _, encoded in pieces) <= PIECE_BYTES
    assert [write_event(event) for event in flat] == [one for _, each in pieces for one in each]


def test_an_event_that_cannot_be_divided_is_a_piece_by_itself() -> None:
    events: list[Event] = [Text("a"), Data("x" * PIECE_BYTES), Done()]
    pieces = list(in_pieces(events, [write_event(event) for event in events]))
    assert [batch for batch, _ in pieces] == [[event] for event in events]


def test_texts_run_together_up_to_a_size() -> None:
    run, count = TextRun(Text("a")), 0
    while not run.add("b", 1024):
        count += 1
    assert count == RUN_BYTES // 1024
    assert run.event() == Text("a" + "b" * (count + 1))


@pytest.mark.parametrize("name", ANSWERS)
def test_a_batch_is_read_in_pieces_as_it_is_read_at_once(name: str) -> None:
    data = write_events(ANSWERS[name])
    assert [event for piece in read_in_pieces(data) for event in piece] == read_events(data)
