"""What is told of a dialogue, as its journal holds it."""

from hypothesis import given
from hypothesis import strategies as st

from carnet.core.dialogue.events import (
    ConversationEnded,
    ConversationResult,
    ConversationResumed,
    ConversationStarted,
    DialogueEvent,
    TurnDiscarded,
    TurnEnded,
    TurnText,
    kind_of_event,
    read_dialogue_event,
    write_dialogue_event,
)
from carnet.core.dialogue.halt import DialogueLimits, Halt
from carnet.core.dialogue.transcript import SpokenTurn

NUMBER = st.integers(0, 2**53)
PERHAPS = st.none() | NUMBER
TEXT = st.text(max_size=20)
LIMITS = st.builds(DialogueLimits, max_turns=st.integers(1, 99), max_spend=PERHAPS)
TURN = st.builds(
    SpokenTurn,
    index=NUMBER,
    speaker=TEXT,
    turn_id=TEXT,
    text=TEXT,
    cost=PERHAPS,
    by=st.none() | TEXT,
)
TURNS = st.lists(TURN, max_size=3).map(tuple)
NAMES = st.lists(TEXT, max_size=3).map(tuple)
OPENING = {
    "run_id": TEXT,
    "participants": NAMES,
    "seed": TEXT,
    "at": NUMBER,
    "fingerprint": TEXT,
    "limits": LIMITS,
}
OF_TURN = {"run_id": TEXT, "index": NUMBER, "speaker": TEXT, "turn_id": TEXT, "attempt": NUMBER}
RESULT = st.builds(
    ConversationResult,
    run_id=TEXT,
    transcript=TURNS,
    halted=st.builds(Halt, kind=st.just("max_spend"), spent=PERHAPS, reason=st.none() | TEXT),
    spent=NUMBER,
    unknown_costs=NUMBER,
    started=NUMBER,
    ended=NUMBER,
)
EVENTS: st.SearchStrategy[DialogueEvent] = st.one_of(
    st.builds(ConversationStarted, **OPENING, parent_turn_id=st.none() | TEXT),
    st.builds(ConversationResumed, **OPENING, transcript=TURNS),
    st.builds(TurnText, **OF_TURN, text=TEXT),
    st.builds(TurnDiscarded, **OF_TURN, code=TEXT, message=TEXT, at=NUMBER, cost=PERHAPS),
    st.builds(TurnEnded, run_id=TEXT, turn=TURN, at=NUMBER),
    st.builds(ConversationEnded, run_id=TEXT, result=RESULT, at=NUMBER),
)


@given(EVENTS)
def test_an_event_is_read_as_it_was_written(event: DialogueEvent) -> None:
    assert read_dialogue_event(write_dialogue_event(event)) == event


def test_text_is_told_apart_by_its_kind_and_by_its_attempt() -> None:
    text = TurnText(run_id="r", index=0, speaker="a", turn_id="r.t0.a", attempt=2, text="x")
    assert (kind_of_event(text), text.attempt_id) == ("turn_text", "r.t0.a#2")
