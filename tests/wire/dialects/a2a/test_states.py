"""States of turns, in the words of A2A."""

import pytest

from carnet.core.chain.turn import TRANSITIONS
from carnet.core.messages.events import Done, Failed, Waiting
from carnet.core.messages.interrupt import Interrupt
from carnet.wire.dialects.a2a import states

SIGN_IN = Interrupt(kind="sign_in", id="1", state="s", message="sign in")
INPUT = Interrupt(kind="input", id="2", state="t", message="which?")


def test_every_state_of_a_turn_is_one_of_a_task_and_is_listed_by_it() -> None:
    for state in TRANSITIONS:
        for code in (None, "cancelled", "rejected", "internal"):
            word = states.state_of(state, code)
            wanted = states.WANTED[word]
            assert state in wanted.states
            assert wanted.codes is None or code in wanted.codes
            assert state != "failed" or code not in wanted.other_codes
    assert states.state_of("unknown", "cancelled") == states.FAILED


@pytest.mark.parametrize(
    ("asked", "state"),
    [
        ((SIGN_IN,), states.AUTH_REQUIRED),
        ((SIGN_IN, INPUT), states.INPUT_REQUIRED),
        ((INPUT,), states.INPUT_REQUIRED),
        ((), states.INPUT_REQUIRED),
    ],
)
def test_who_waits_for_a_sign_in_alone_says_so(asked: tuple[Interrupt, ...], state: str) -> None:
    assert states.state_of("waiting", None, asked) == state
    assert not asked or states.end_state(Waiting(asked)) == state


def test_an_end_is_one_state() -> None:
    assert states.end_state(Done()) == states.COMPLETED
    assert states.end_state(Failed("cancelled")) == states.CANCELED
    assert states.end_state(Failed("rejected")) == states.REJECTED
    assert states.end_state(Failed("internal")) == states.FAILED
