"""A callee that keeps failing is left alone, and asked again one call at a time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from carnet.core.call import Call
from carnet.core.messages.events import Done, Event, Failed, Text
from carnet.errors import (
    AgentFailed,
    CarnetError,
    CircuitOpen,
    DepthExceeded,
    EgressRefused,
    PeerAgentNotFound,
    PeerBusy,
    PeerRefused,
    PeerUnreachable,
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
    StorageUnavailable,
)
from carnet.ports.calls.agent import Agent
from carnet.ports.world.http_client import NotSent
from carnet.runtime.wrappers.breaker import Breaker, Breaking
from carnet.testing.clock import FakeClock
from carnet.wire.dialects.refusal import BY_PEER, BY_STATUS, UNRECOGNISED
from tests.runtime.scene import GOOD, collect, in_turn, make_call, saying, speaking, streamed_events


def unreached() -> ProviderUnavailable:
    """Nobody listens: whoever asks, and whatever for."""
    error = ProviderUnavailable()
    error.__cause__ = NotSent()
    return error


BAD = saying(then=unreached())


def make_breaker(failures_to_open: int = 3) -> tuple[Breaker, FakeClock]:
    clock = FakeClock()
    return Breaker(failures_to_open=failures_to_open, cooldown_seconds=30, clock=clock), clock


def state(breaker: Breaker) -> str:
    return breaker.state


async def ask(agent: Agent, breaker: Breaker, times: int = 1) -> None:
    for _ in range(times):
        with suppress(CarnetError, RuntimeError):
            await collect(Breaking(agent, breaker), make_call())


async def test_a_good_answer_passes_unchanged() -> None:
    breaker, _ = make_breaker()
    assert await collect(Breaking(GOOD, breaker), make_call()) == [Text("well"), Done()]
    assert state(breaker) == "closed"


async def test_failures_in_a_row_open_it_and_then_nobody_is_called() -> None:
    breaker, clock = make_breaker()
    await ask(BAD, breaker, 2)
    assert state(breaker) == "closed"
    await ask(BAD, breaker)
    assert state(breaker) == "open"
    clock.advance(10.5)
    agent, calls = in_turn(GOOD)
    with pytest.raises(CircuitOpen) as caught:
        await collect(Breaking(agent, breaker), make_call())
    assert caught.value.retry_after == 20
    assert calls == []


async def test_a_good_answer_starts_the_count_again() -> None:
    breaker, _ = make_breaker()
    for _ in range(5):
        await ask(BAD, breaker, 2)
        await ask(GOOD, breaker)
    assert state(breaker) == "closed"
    assert breaker.failures == 0


async def test_after_the_cooldown_one_good_answer_closes_it() -> None:
    breaker, clock = make_breaker()
    await ask(BAD, breaker, 3)
    clock.advance(30)
    assert state(breaker) == "half_open"
    await ask(GOOD, breaker)
    assert state(breaker) == "closed"
    await ask(BAD, breaker, 2)
    assert state(breaker) == "closed"  # counted from nothing


async def test_after_the_cooldown_one_failure_opens_it_again() -> None:
    breaker, clock = make_breaker()
    await ask(BAD, breaker, 3)
    clock.advance(30)
    await ask(BAD, breaker)
    assert state(breaker) == "open"
    clock.advance(29)
    assert state(breaker) == "open"
    clock.advance(1)
    assert state(breaker) == "half_open"


async def test_half_open_lets_one_call_through_at_a_time() -> None:
    breaker, clock = make_breaker(1)
    go_on = asyncio.Event()

    @speaking
    async def slow(_: Call, /) -> AsyncIterator[Event]:
        await go_on.wait()
        yield Done()

    await ask(BAD, breaker)
    clock.advance(30)
    probe = asyncio.create_task(collect(Breaking(slow, breaker), make_call()))
    await asyncio.sleep(0)
    with pytest.raises(CircuitOpen):
        await collect(Breaking(GOOD, breaker), make_call())
    go_on.set()
    await probe
    assert state(breaker) == "closed"
    await collect(Breaking(GOOD, breaker), make_call())


async def test_a_probe_that_never_ends_does_not_keep_it_open_for_ever() -> None:
    breaker, clock = make_breaker(1)

    @speaking
    async def endless(_: Call, /) -> AsyncIterator[Event]:
        await asyncio.sleep(60)
        yield Done()

    await ask(BAD, breaker)
    clock.advance(30)
    probe = asyncio.create_task(collect(Breaking(endless, breaker), make_call()))
    await asyncio.sleep(0)
    clock.advance(30)
    await ask(GOOD, breaker)
    assert state(breaker) == "closed"
    probe.cancel()
    with pytest.raises(asyncio.CancelledError):
        await probe
    assert state(breaker) == "closed"


async def test_a_probe_whose_caller_goes_away_makes_room_for_the_next() -> None:
    breaker, clock = make_breaker(1)
    await ask(BAD, breaker)
    clock.advance(30)
    with suppress(asyncio.CancelledError):
        await ask(saying(then=asyncio.CancelledError()), breaker)
    assert state(breaker) == "half_open"
    await ask(GOOD, breaker)
    assert state(breaker) == "closed"


@pytest.mark.parametrize(
    "error",
    [
        *(ProviderError(), ProviderUnavailable(), ProviderTimeout(by="agent"), AgentFailed()),
        *(ProviderUnavailable(by=BY_STATUS), ProviderTimeout(by=BY_STATUS), RuntimeError("a bug")),
        PeerBusy(peer_status=503, peer_code=UNRECOGNISED, retry_after=1),
    ],
)
async def test_a_fault_that_a_request_may_have_brought_about_counts_for_its_caller(
    error: Exception,
) -> None:
    breaker, _ = make_breaker(1)
    await ask(saying(Text("one"), then=error), breaker)
    assert (state(breaker), breaker.callers) == ("closed", 1)
    with pytest.raises(CircuitOpen):
        await collect(Breaking(GOOD, breaker), make_call())


@pytest.mark.parametrize("error", [unreached(), PeerUnreachable()])
async def test_a_callee_that_nobody_reaches_is_left_alone_by_all(error: Exception) -> None:
    breaker, _ = make_breaker(1)
    await ask(saying(then=error), breaker)
    assert (state(breaker), breaker.callers) == ("open", 0)


@pytest.mark.parametrize(
    "error",
    [
        *(EgressRefused(), StorageUnavailable(), ProviderTimeout(by="caller")),
        CircuitOpen(retry_after=1),
    ],
)
async def test_what_is_not_about_the_callee_neither_counts_nor_clears(error: CarnetError) -> None:
    breaker, _ = make_breaker(2)
    await ask(BAD, breaker)
    await ask(saying(then=error), breaker, 5)
    assert breaker.failures == 1


@pytest.mark.parametrize(
    "error",
    [
        DepthExceeded(observed=4, limit=4),
        PeerAgentNotFound(),
        PeerRefused(peer_status=403, peer_code="forwarding_not_allowed"),
        PeerBusy(peer_status=429, peer_code="rate_limited", retry_after=1),
        PeerBusy(peer_status=429, peer_code=UNRECOGNISED),
        PeerBusy(peer_status=503, peer_code="overloaded", retry_after=1),
        PeerRefused(peer_status=502, peer_code="egress_refused"),
        ProviderError(by=BY_PEER),
        ProviderUnavailable(by=BY_PEER),
        ProviderTimeout(by=BY_PEER),
        PeerBusy(peer_status=503, peer_code=UNRECOGNISED, by=BY_PEER),
    ],
)
async def test_a_refusal_or_a_reported_failure_is_an_answer(error: CarnetError) -> None:
    breaker, _ = make_breaker(2)
    await ask(BAD, breaker)
    await ask(saying(then=error), breaker)
    assert breaker.failures == 0


async def test_a_caller_that_goes_away_is_no_failure() -> None:
    breaker, _ = make_breaker(1)
    with suppress(asyncio.CancelledError):
        await ask(saying(Text("one"), then=asyncio.CancelledError()), breaker)
    events = streamed_events(Breaking(saying(Text("one"), Done()), breaker), make_call())
    await anext(events)
    await events.aclose()
    assert (state(breaker), breaker.failures) == ("closed", 0)


async def test_a_failed_end_counts_once() -> None:
    breaker, _ = make_breaker(3)
    failed = saying(Failed("provider_error"))
    assert await collect(Breaking(failed, breaker), make_call()) == [Failed("provider_error")]
    assert breaker.most_failures == 1
    await collect(Breaking(failed, breaker), make_call())
    assert (state(breaker), breaker.most_failures) == ("closed", 2)


async def test_a_call_from_before_has_no_say_in_the_new_state() -> None:
    breaker, clock = make_breaker(1)
    go_on = asyncio.Event()

    @speaking
    async def late(_: Call, /) -> AsyncIterator[Event]:
        await go_on.wait()
        yield Done()

    old = asyncio.create_task(collect(Breaking(late, breaker), make_call()))
    await asyncio.sleep(0)
    await ask(BAD, breaker)
    go_on.set()
    await old
    assert state(breaker) == "open"
    clock.advance(30)
    assert state(breaker) == "half_open"


async def test_runs_share_what_they_learn_about_an_endpoint() -> None:
    breaker, _ = make_breaker(2)
    first, second = Breaking(BAD, breaker), Breaking(BAD, breaker)
    for agent in (first, second):
        with pytest.raises(ProviderUnavailable):
            await collect(agent, make_call())
    with pytest.raises(CircuitOpen):
        await collect(first, make_call(run="run_2"))


async def test_a_jump_of_the_wall_clock_changes_nothing() -> None:
    breaker, clock = make_breaker(1)
    await ask(BAD, breaker)
    clock.jump(86400)
    assert state(breaker) == "open"
    clock.jump(-2 * 86400)
    clock.advance(30)
    assert state(breaker) == "half_open"
