"""A policy for calls of one's own."""

import asyncio
from typing import Any

import pytest

import carnet
from carnet.errors import CircuitOpen, PeerBusy, ProviderTimeout
from carnet.runtime.dialogue.policy import is_passing
from carnet.testing.clock import FakeClock, FakeIds


async def test_a_call_of_ones_own_is_repeated_and_gives_what_it_gives() -> None:
    seen: list[int] = []

    async def flaky(number: int) -> int:
        seen.append(number)
        if len(seen) < 3:
            raise ConnectionResetError
        return number * 2

    assert await carnet.CallPolicy(retries=2, backoff=0).call(flaky, 21) == 42
    assert seen == [21, 21, 21]


async def test_what_fails_for_good_is_raised_as_it_is() -> None:
    async def wrong() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        await carnet.CallPolicy(retries=2, backoff=0).call(wrong)


async def test_a_deadline_holds_against_a_call_that_ignores_it() -> None:
    gone = asyncio.Event()

    async def stubborn() -> None:
        while not gone.is_set():
            try:
                await gone.wait()
            except asyncio.CancelledError:
                continue

    with pytest.raises(ProviderTimeout):
        await carnet.CallPolicy(seconds=0.02).call(stubborn)
    gone.set()


async def test_a_cancelled_call_is_cancelled_and_counts_as_nothing() -> None:
    breaker = carnet.Breaker(failures_to_open=1)
    begun = asyncio.Event()

    async def waits() -> None:
        begun.set()
        await asyncio.Event().wait()

    policy = carnet.CallPolicy(retries=3, breaker=breaker)
    calling = asyncio.ensure_future(policy.call(waits))
    await begun.wait()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert breaker.state == "closed"


async def test_a_breaker_opens_is_half_open_after_its_time_and_closes() -> None:
    clock = FakeClock(monotonic=1.0)
    breaker = carnet.Breaker(failures_to_open=1, cooldown_seconds=0.02, clock=clock)
    policy = carnet.CallPolicy(breaker=breaker)
    fails = True

    async def callee() -> str:
        if fails:
            raise ConnectionResetError
        return "well"

    with pytest.raises(ConnectionResetError):
        await policy.call(callee)
    clock.advance(0.01)
    with pytest.raises(CircuitOpen):
        await policy.call(callee)
    clock.advance(0.04)
    fails = False
    assert await policy.call(callee) == "well"
    fails = True
    with pytest.raises(ConnectionResetError):
        await policy.call(callee)
    with pytest.raises(CircuitOpen):
        await policy.call(callee)


def test_pauses_double_have_a_chance_in_them_and_honour_what_the_callee_asks_for() -> None:
    policy, reset = carnet.CallPolicy(retries=9), ConnectionResetError()
    pauses = [policy.pause(reset, attempt, FakeIds()) for attempt in range(10)]
    assert pauses == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0, None]
    assert policy.pause(reset, 0, FakeIds(fraction=0.5)) == 0.375
    assert policy.pause(PeerBusy(retry_after=7), 0, FakeIds()) == 7
    chosen = carnet.CallPolicy(retries=3, backoff=lambda attempt: attempt - 2.0)
    assert [chosen.pause(reset, attempt, FakeIds()) for attempt in range(3)] == [0, 0, 1]


def test_what_another_library_makes_of_a_lost_connection_may_pass() -> None:
    wrapped = RuntimeError("transport")
    wrapped.__cause__ = ConnectionResetError()
    assert is_passing(wrapped)
    assert not is_passing(RuntimeError("refused"))


@pytest.mark.parametrize(
    "wrong", [{"seconds": 0}, {"retries": -1}, {"retries": 101}, {"failures_to_open": 0}]
)
def test_a_policy_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="is"):
        carnet.CallPolicy(**wrong)
