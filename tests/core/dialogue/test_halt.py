"""Why a dialogue has stopped, and what of that may be gone beyond."""

import pytest

from carnet.core.dialogue.halt import DialogueLimits, Halt


@pytest.mark.parametrize(
    ("halt", "limits", "goes_on"),
    [
        (Halt(kind="predicate", reason="x"), DialogueLimits(max_turns=99), False),
        (Halt(kind="abort"), DialogueLimits(max_turns=4), True),
        (Halt(kind="deadline"), DialogueLimits(max_turns=4), True),
        (Halt(kind="participant_error", participant="a"), DialogueLimits(max_turns=4), True),
        (Halt(kind="max_turns", turns=4), DialogueLimits(max_turns=4), False),
        (Halt(kind="max_turns", turns=4), DialogueLimits(max_turns=5), True),
        (Halt(kind="max_spend", spent=9, cap=8), DialogueLimits(max_turns=9, max_spend=8), False),
        (Halt(kind="max_spend", spent=9, cap=8), DialogueLimits(max_turns=9, max_spend=9), False),
        (Halt(kind="max_spend", spent=9, cap=8), DialogueLimits(max_turns=9, max_spend=10), True),
        (Halt(kind="max_spend", spent=9, cap=8), DialogueLimits(max_turns=9), True),
        # What was reserved for the next turn did not fit: only a larger cap helps.
        (Halt(kind="max_spend", spent=6, cap=8), DialogueLimits(max_turns=9, max_spend=8), False),
    ],
)
def test_it_goes_on_after_what_was_no_last_word(
    halt: Halt, limits: DialogueLimits, *, goes_on: bool
) -> None:
    assert halt.may_go_on(limits, turns=4, spent=halt.spent or 0) is goes_on


def test_it_is_told_in_one_line() -> None:
    assert str(Halt(kind="max_turns", turns=3)) == "max_turns (3)"
    assert str(Halt(kind="max_spend", spent=2_500_000, cap=2_000_000)) == "max_spend (2.5 of 2)"
    assert str(Halt(kind="predicate", reason="agreed")) == "predicate: agreed"
    assert str(Halt(kind="abort")) == "abort"
    failed = Halt(kind="participant_error", participant="b", message="no")
    assert str(failed) == "participant_error[b]: no"
