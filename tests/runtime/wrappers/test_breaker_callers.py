"""Whose failures leave a callee alone, and for whom."""

from contextlib import suppress

import pytest

from carnet.core.people.identity import Account, Payer
from carnet.errors import CircuitOpen
from carnet.ports.world.clock import Clock
from carnet.runtime.wrappers.breaker import MOST_CALLERS, Breaker, Verdict
from carnet.testing.clock import FakeClock


def payer(name: str, quota: str = "") -> Payer:
    return Payer(account=Account("acme.example", name), quota=quota or f"token:{name}")


ALICE, BOB, MALLORY = payer("alice"), payer("bob"), payer("mallory")


def make_breaker(clock: Clock) -> Breaker:
    return Breaker(failures_to_open=3, cooldown_seconds=30, clock=clock)


def call(breaker: Breaker, verdict: Verdict, who: Payer, times: int = 1) -> None:
    for _ in range(times):
        breaker.leave(breaker.enter(who), verdict, who)


def is_refused(breaker: Breaker, who: Payer) -> bool:
    with suppress(CircuitOpen):
        breaker.leave(breaker.enter(who), "neither", who)
        return False
    return True


def test_a_caller_whose_calls_alone_fail_is_left_alone_by_itself() -> None:
    breaker = make_breaker(FakeClock())
    call(breaker, "suspect", MALLORY, 3)
    assert is_refused(breaker, MALLORY)
    assert not is_refused(breaker, ALICE)
    assert (breaker.state, breaker.callers, breaker.most_failures) == ("closed", 1, 3)


def test_its_own_circuit_closes_as_the_one_of_all_does() -> None:
    clock = FakeClock()
    breaker = make_breaker(clock)
    call(breaker, "suspect", MALLORY, 3)
    clock.advance(30)
    call(breaker, "suspect", MALLORY)
    assert is_refused(breaker, MALLORY)
    clock.advance(30)
    call(breaker, "good", MALLORY)
    assert breaker.callers == 0
    call(breaker, "suspect", MALLORY, 2)
    assert not is_refused(breaker, MALLORY)


def test_what_two_callers_meet_is_the_callees_doing() -> None:
    breaker = make_breaker(FakeClock())
    call(breaker, "suspect", MALLORY, 2)
    call(breaker, "suspect", ALICE)
    assert breaker.state == "open"
    assert is_refused(breaker, BOB)


def test_a_good_answer_to_anybody_takes_the_suspicion_away() -> None:
    breaker = make_breaker(FakeClock())
    for _ in range(10):
        call(breaker, "suspect", MALLORY, 2)
        call(breaker, "good", ALICE)
        call(breaker, "suspect", BOB)
        call(breaker, "good", BOB)
        call(breaker, "good", MALLORY)
    assert breaker.state == "closed"


def test_whom_one_organisation_vouches_for_are_one_caller() -> None:
    """A92: it can name as many payers as it likes."""
    breaker = make_breaker(FakeClock())
    for number in range(3 * MOST_CALLERS):
        call(breaker, "suspect", payer(f"minted-{number}", "peer:globex.example"))
    assert breaker.state == "closed"
    assert not is_refused(breaker, ALICE)


def test_one_callers_failing_probe_keeps_it_closed_to_nobody() -> None:
    """A92: who can make a call fail would take every probe."""
    clock = FakeClock()
    breaker = make_breaker(clock)
    call(breaker, "bad", ALICE, 3)
    clock.advance(30)
    call(breaker, "suspect", MALLORY)
    assert is_refused(breaker, MALLORY)
    states = [breaker.state]
    call(breaker, "good", ALICE)
    assert [*states, breaker.state] == ["half_open", "closed"]


def test_probes_of_two_callers_that_fail_open_it_again() -> None:
    clock = FakeClock()
    breaker = make_breaker(clock)
    call(breaker, "bad", ALICE, 3)
    clock.advance(30)
    call(breaker, "suspect", MALLORY)
    call(breaker, "suspect", ALICE)
    assert breaker.state == "open"


def test_without_callers_every_failure_counts() -> None:
    breaker = make_breaker(FakeClock())
    for _ in range(3):
        breaker.leave(breaker.enter(), "suspect")
    with pytest.raises(CircuitOpen):
        breaker.enter()
