"""Turns: which calls are the same call, and what a repeat gets."""

from itertools import product
from typing import get_args

import pytest
from msgspec.structs import replace

from carnet.core.call import turn_key
from carnet.core.chain.carnet import Carnet
from carnet.core.chain.turn import TRANSITIONS, Repeat, Turn, TurnState, may_become, on_repeat
from carnet.core.people.identity import Account

ALICE = Account("acme.example", "alice")
FIRST = Carnet(run="conv_abc", turn="conv_abc.t0.critic")
NESTED = replace(FIRST, parent_turn="conv_abc.t0.researcher")


def key(
    *,
    payer: Account = ALICE,
    actor: str = "token:alice",
    agent: str = "critic",
    carnet: Carnet = FIRST,
    digest: bytes = b"1",
) -> bytes:
    return turn_key(payer=payer, actor=actor, agent=agent, carnet=carnet, digest=digest)


def test_the_same_call_has_the_same_key_whatever_was_asked() -> None:
    assert key() == key(digest=b"2")
    assert len(key()) == 16


@pytest.mark.parametrize(
    "other",
    [
        key(payer=Account("acme.example", "bob")),
        key(payer=Account("globex.example", "alice")),
        key(actor="token:bob"),
        key(agent="researcher"),
        key(carnet=replace(FIRST, run="conv_abd")),
        key(carnet=replace(FIRST, turn="conv_abc.t1.critic")),
        key(carnet=NESTED),
    ],
)
def test_another_payer_caller_agent_run_turn_or_parent_is_another_call(other: bytes) -> None:
    assert other != key()


def test_the_same_opaque_turn_under_another_parent_is_another_call() -> None:
    opaque = replace(FIRST, turn="step-7", parent_turn="a")
    assert key(carnet=opaque) != key(carnet=replace(opaque, parent_turn="b"))
    assert key(carnet=opaque) != key(carnet=replace(opaque, parent_turn=None))


def test_a_nested_turn_with_an_unscoped_id_is_told_apart_by_what_was_asked() -> None:
    assert key(carnet=NESTED, digest=b"1") != key(carnet=NESTED, digest=b"2")
    assert key(carnet=NESTED, digest=b"1") == key(carnet=NESTED, digest=b"1")
    scoped = replace(NESTED, turn="conv_abc.f4be5bba.t0.critic")
    assert key(carnet=scoped, digest=b"1") == key(carnet=scoped, digest=b"2")


def test_neighbouring_parts_of_a_key_do_not_run_into_one_another() -> None:
    assert key(actor="ab", agent="c") != key(actor="a", agent="bc")


@pytest.mark.parametrize(
    ("state", "retryable", "worker_alive", "answer"),
    [
        ("done", False, False, "replay"),
        ("running", False, True, "attach"),
        ("running", False, False, "run_again"),
        ("queued", False, True, "attach"),
        ("queued", False, False, "attach"),
        ("waiting", False, False, "replay"),
        ("failed", True, False, "run_again"),
        ("failed", False, False, "replay"),
        ("unknown", False, False, "run_again"),
    ],
)
def test_a_repeat_gets_what_its_state_says(
    state: TurnState, answer: Repeat, *, retryable: bool, worker_alive: bool
) -> None:
    repeat = on_repeat(state, same_digest=True, retryable=retryable, worker_alive=worker_alive)
    assert repeat == answer


@pytest.mark.parametrize("state", get_args(TurnState))
def test_another_request_under_the_same_turn_is_a_mismatch_in_every_state(
    state: TurnState,
) -> None:
    for retryable, alive in product((True, False), repeat=2):
        repeat = on_repeat(state, same_digest=False, retryable=retryable, worker_alive=alive)
        assert repeat == "mismatch"


def test_states_change_along_the_table_and_done_is_for_good() -> None:
    assert TRANSITIONS.keys() == set(get_args(TurnState))
    assert may_become("running", "done")
    assert may_become("failed", "running")
    assert may_become("waiting", "running")
    assert not any(may_become("done", state) for state in TRANSITIONS)
    assert not may_become("unknown", "done")


def test_whatever_may_run_again_may_become_running() -> None:
    for state in TRANSITIONS:
        repeat = on_repeat(state, same_digest=True, retryable=True, worker_alive=False)
        if repeat == "run_again" and state != "running":
            assert may_become(state, "running")


def test_a_new_record_is_the_first_attempt_and_runs() -> None:
    turn = Turn(n=1, agent="echo", run="r", turn="t", payer=ALICE, created=0)
    assert (turn.state, turn.attempt, turn.fence) == ("running", 1, 1)
