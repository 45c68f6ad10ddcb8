"""What the events of a run come to."""

from typing import Any

from carnet.core.dialogue.events import (
    ConversationEnded,
    ConversationStarted,
    DialogueEvent,
    TurnDiscarded,
    TurnEnded,
    TurnRetried,
    TurnSkipped,
    TurnStarted,
)
from carnet.core.dialogue.halt import DialogueLimits, Halt
from carnet.core.dialogue.record import DialogueRecord
from carnet.core.dialogue.transcript import SpokenTurn, messages_for, text_for

TURN: dict[str, Any] = {"run_id": "r", "index": 0, "speaker": "a", "turn_id": "r.t0.a", "at": 1}


def started() -> ConversationStarted:
    return ConversationStarted(
        run_id="r",
        participants=("a", "b"),
        seed="Go.",
        at=1,
        fingerprint="f",
        limits=DialogueLimits(max_turns=2),
    )


def spoken(**more: Any) -> TurnEnded:
    fields: dict[str, Any] = {"index": 0, "speaker": "a", "turn_id": "r.t0.a", "text": "x", **more}
    return TurnEnded(run_id="r", turn=SpokenTurn(**fields), at=2)


def test_attempts_at_an_open_turn_are_counted_and_paid() -> None:
    begun: list[DialogueEvent] = [
        started(),
        TurnStarted(**TURN, attempt=1),
        TurnDiscarded(**TURN, attempt=1, code="x", message="y", cost=3, counted={"call:0:b": 2}),
        TurnRetried(**TURN, attempt=2, reason="again"),
    ]
    record = DialogueRecord.of(begun)
    assert (record.index, record.attempts, record.spent) == (0, 2, 3)
    assert record.counted == {"call:0:b": 2}
    assert record.open == begun[-1]
    record.add(spoken(cost=None))
    assert (record.index, record.attempts, record.counted) == (1, 0, {})
    assert (record.spent, record.unknown_costs) == (3, 1)
    assert (record.seed, record.participants, record.fingerprint) == ("Go.", ("a", "b"), "f")


def test_who_was_left_out_takes_an_index_and_no_place_in_the_transcript() -> None:
    record = DialogueRecord.of([started(), TurnSkipped(**TURN, attempts=1, code="x", message="y")])
    assert (record.index, record.turns) == (1, [])


def test_an_end_holds_until_it_goes_on() -> None:
    record = DialogueRecord.of([started(), spoken(cost=1)])
    halt = Halt(kind="abort")
    result = record.result(halt, 9)
    record.add(ConversationEnded(run_id="r", result=result, at=9))
    assert (record.halt, record.ended, result.started, result.spent) == (halt, 9, 1, 1)


def test_what_each_is_given_names_who_spoke() -> None:
    turns = [spoken().turn, spoken(speaker="b", text="y").turn]
    given = messages_for("b", "Go.", turns)
    assert [(message.role, message.text) for message in given] == [
        ("user", "Go."),
        ("user", "[a] x"),
        ("assistant", "y"),
    ]
    assert text_for(given, "b") == "Go.\n\n[a] x\n\n[b] y"
    assert messages_for("b", "", []) == ()
