"""When a call is sent again, after how long, and when not."""

import asyncio
from typing import Any

import pytest

from carnet.core.messages.events import Done, Event, Extension, Failed, Text, Usage
from carnet.errors import (
    AgentFailed,
    CarnetError,
    ChainFinal,
    CircuitOpen,
    DepthExceeded,
    EgressRefused,
    Internal,
    InvalidRequest,
    Overloaded,
    PeerAgentNotFound,
    PeerBusy,
    PeerNotListed,
    PeerRefused,
    PeerUnreachable,
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
    RateLimited,
)
from carnet.ports.calls.agent import Agent
from carnet.ports.world.http_client import NotSent, Unanswered
from carnet.runtime.wrappers.breaker import Breaker, Breaking
from carnet.runtime.wrappers.retrying import Retrying
from carnet.testing.clock import FakeClock, FakeIds
from carnet.wire.dialects.refusal import BY_CALLEE, BY_PEER, unexplained
from tests.runtime.agents.elsewhere import ANSWER, provider_to, remote_to, streamed
from tests.runtime.agents.elsewhere import call_record as record
from tests.runtime.peer import Line, answering, reply
from tests.runtime.scene import GOOD, Paper, collect, fail, in_turn, make_call, saying

NOW = 1_800_000_000.0  # where a FakeClock stands


def failing(error: CarnetError, *before: Event) -> Agent:
    return saying(*before, then=error)


def call_record(code: str | None = None) -> Extension:
    return record(status="failed" if code else "done", code=code)


def busy(seconds: int | None) -> PeerBusy:
    return PeerBusy(peer_status=429, peer_code="rate_limited", retry_after=seconds)


def retrying(
    agent: Agent, clock: FakeClock, *, retries: int = 3, fraction: float = 0.0, **more: Any
) -> Agent:
    ids = FakeIds(fraction=fraction)
    return Retrying(agent, retries=retries, clock=clock, ids=ids, sleep=clock.sleep, **more)


def unsent() -> ProviderUnavailable:
    """Nobody was there to take the request."""
    error = ProviderUnavailable()
    error.__cause__ = NotSent()
    return error


@pytest.mark.parametrize(
    "error",
    [
        *(ProviderUnavailable(), unsent(), busy(0), busy(None), PeerUnreachable()),
        *(ProviderError(by=BY_CALLEE), ProviderUnavailable(by=BY_CALLEE)),
        *(unexplained(status, None) for status in (408, 425, 429, 500, 502, 503, 504)),
    ],
)
async def test_an_error_that_says_so_is_followed_by_another_attempt(error: CarnetError) -> None:
    agent, calls = in_turn(failing(error), failing(error), GOOD)
    clock = FakeClock()
    assert await collect(retrying(agent, clock), make_call()) == [Text("well"), Done()]
    assert clock.slept == [0.25, 0.5]
    assert [call.carnet.turn for call in calls] == ["run_1.t0.critic"] * 3
    assert calls[0] is calls[1] is calls[2]


@pytest.mark.parametrize(
    "error",
    [
        DepthExceeded(observed=4, limit=4),
        ChainFinal(hop=3, hops=3),
        CircuitOpen(retry_after=1),
        EgressRefused(),
        PeerNotListed(),
        PeerAgentNotFound(),
        RateLimited(retry_after=1),
        Overloaded(retry_after=1),
        InvalidRequest("model", "is wrong"),
        ProviderError(),
        AgentFailed(),
        Internal(),
        PeerRefused(peer_status=402, peer_code="payment_required"),
        PeerRefused(peer_status=429, peer_code="run_calls_exceeded"),
        PeerRefused(peer_status=409, peer_code="cancelled"),
        ProviderTimeout(),
        ProviderTimeout(by="agent"),
        PeerBusy(peer_status=429, peer_code="rate_limited", retry_after=1, by=BY_PEER),
        ProviderUnavailable(by=BY_PEER),
        ProviderUnavailable(by=BY_PEER, retry_after=1),
        ProviderTimeout(by=BY_PEER),
        *(unexplained(status, 1) for status in (400, 401, 403, 404, 409, 422, 501, 505, 599)),
    ],
)
async def test_any_other_error_is_final(error: CarnetError) -> None:
    agent, calls = in_turn(failing(error))
    clock = FakeClock()
    with pytest.raises(type(error)) as caught:
        await collect(retrying(agent, clock), make_call())
    assert caught.value is error
    assert len(calls) == 1
    assert clock.slept == []


async def test_a_kept_connection_that_was_not_there_any_more_is_no_reason_to_wait() -> None:
    gone = ProviderUnavailable()
    gone.__cause__ = Unanswered()
    agent, calls = in_turn(failing(gone), failing(gone), failing(gone))
    clock = FakeClock()
    await fail(retrying(agent, clock, retries=2), make_call())
    assert clock.slept == [0, 0]
    assert len(calls) == 3


async def test_what_an_attempt_has_cost_and_called_stays() -> None:
    agent, calls = in_turn(failing(busy(0), Usage(cost=5), call_record("x")), GOOD)
    events = await collect(retrying(agent, FakeClock()), make_call())
    assert events == [Usage(cost=5), call_record("x"), Text("well"), Done()]
    assert len(calls) == 2


async def test_the_last_error_is_raised_when_every_attempt_failed() -> None:
    errors = [ProviderUnavailable(str(number)) for number in range(4)]
    agent, calls = in_turn(*(failing(error) for error in errors))
    clock = FakeClock()
    with pytest.raises(ProviderUnavailable) as caught:
        await collect(retrying(agent, clock), make_call())
    assert caught.value is errors[3]
    assert len(calls) == 4
    assert clock.slept == [0.25, 0.5, 1.0]


async def test_nothing_is_repeated_once_something_was_said() -> None:
    agent, calls = in_turn(failing(ProviderUnavailable(), Text("one")), GOOD)
    error, events = await fail(retrying(agent, FakeClock()), make_call(), Paper(is_read=True))
    assert isinstance(error, ProviderUnavailable)
    assert events == [Text("one")]
    assert len(calls) == 1


async def test_what_nobody_has_seen_is_taken_back() -> None:
    agent, calls = in_turn(failing(ProviderUnavailable(), Text("one"), call_record("x")), GOOD)
    events = await collect(retrying(agent, FakeClock()), make_call())
    assert events == [call_record("x"), Text("well"), Done()]
    assert len(calls) == 2


async def test_a_failed_end_is_repeated_like_an_error() -> None:
    agent, calls = in_turn(saying(call_record("x"), Failed("provider_unavailable")), GOOD)
    events = await collect(retrying(agent, FakeClock()), make_call())
    assert events == [call_record("x"), Text("well"), Done()]
    assert len(calls) == 2


async def test_every_attempt_leaves_its_record() -> None:
    first, second = call_record("peer_busy"), call_record("provider_unavailable")
    agent, _ = in_turn(
        failing(busy(0), first),
        failing(ProviderUnavailable(), second),
        saying(Text("well"), call_record(), Done()),
    )
    events = await collect(retrying(agent, FakeClock()), make_call())
    assert events == [first, second, Text("well"), call_record(), Done()]
    agent, _ = in_turn(failing(busy(0), first), failing(ProviderUnavailable(), second))
    error, events = await fail(retrying(agent, FakeClock(), retries=1), make_call())
    assert isinstance(error, ProviderUnavailable)
    assert events == [first, second]


async def test_a_callee_that_says_how_long_is_not_asked_sooner() -> None:
    clock = FakeClock()
    agent, _ = in_turn(failing(busy(7)), failing(ProviderUnavailable(retry_after=2)), GOOD)
    await collect(retrying(agent, clock), make_call())
    assert clock.slept == [7, 2]


@pytest.mark.parametrize(("seconds", "within"), [(31, None), (60, 60.0), (600, 59.0)])
async def test_a_callee_that_asks_for_too_long_is_not_waited_for(
    seconds: int, within: float | None
) -> None:
    clock = FakeClock()
    agent, calls = in_turn(failing(busy(seconds)), GOOD)
    deadline = None if within is None else NOW + within
    with pytest.raises(PeerBusy) as caught:
        await collect(retrying(agent, clock), make_call(deadline=deadline))
    assert caught.value.retry_after == seconds
    assert len(calls) == 1


async def test_a_callee_is_waited_for_as_long_as_the_call_has_time() -> None:
    clock = FakeClock()
    agent, _ = in_turn(failing(busy(300)), GOOD)
    await collect(retrying(agent, clock), make_call(deadline=NOW + 301))
    assert clock.slept == [300]


async def test_chance_is_added_to_the_wait() -> None:
    clock = FakeClock()
    agent, _ = in_turn(failing(ProviderUnavailable()), failing(ProviderUnavailable()), GOOD)
    await collect(retrying(agent, clock, fraction=0.5), make_call())
    assert clock.slept == [0.375, 0.625]


async def test_no_attempt_begins_after_the_deadline_of_the_call() -> None:
    clock = FakeClock()
    agent, calls = in_turn(failing(ProviderUnavailable()))
    with pytest.raises(ProviderUnavailable):
        await collect(retrying(agent, clock), make_call(deadline=NOW + 0.6))
    assert clock.slept == [0.25]  # the next would have been at 0.75 s
    assert len(calls) == 2


async def test_a_cancellation_is_not_an_error_to_repeat() -> None:
    agent, calls = in_turn(saying(then=asyncio.CancelledError()), GOOD)
    with pytest.raises(asyncio.CancelledError):
        await collect(retrying(agent, FakeClock()), make_call())
    assert len(calls) == 1


async def test_waiting_can_be_cancelled() -> None:
    agent, calls = in_turn(failing(busy(30), call_record("peer_busy")), GOOD)
    waiting = Retrying(agent, retries=3, clock=FakeClock(), ids=FakeIds())
    paper = Paper()
    task = asyncio.create_task(collect(waiting, make_call(), paper))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert len(calls) == 1
    assert paper.events == [call_record("peer_busy")]


@pytest.mark.parametrize("retries", [-1, 4, 100])
def test_there_are_at_most_three_retries(retries: int) -> None:
    with pytest.raises(ValueError, match="0 to 3"):
        retrying(GOOD, FakeClock(), retries=retries)


async def test_no_retries_is_one_attempt() -> None:
    agent, calls = in_turn(failing(ProviderUnavailable()))
    with pytest.raises(ProviderUnavailable):
        await collect(retrying(agent, FakeClock(), retries=0), make_call())
    assert len(calls) == 1


# ---------------------------------------------------------------------- with a callee elsewhere


OUTCOMES = [
    *((502, "provider_error", 1), (503, "provider_unavailable", 1), (504, "provider_timeout", 1)),
    *((503, "circuit_open", 1), (502, "peer_refused", 1), (503, "peer_busy", 1)),
    *((502, "egress_refused", 1), (409, "cancelled", 1)),
    *((500, "agent_failed", 1), (500, "internal", 4), (503, "outcome_unknown", 4)),
    (503, "storage_unavailable", 4),
]


@pytest.mark.parametrize(("status", "code", "requests"), OUTCOMES)
@pytest.mark.parametrize("stream", [False, True])
async def test_the_hop_next_to_a_fault_repeats_and_those_above_do_not(
    status: int,
    code: str,
    requests: int,
    stream: bool,  # noqa: FBT001
) -> None:
    frame = b'data: {"error": {"code": "%b"}}\n\n' % code.encode()
    answer = (
        streamed(frame)
        if stream
        else reply(b'{"error": {"code": "%b"}}' % code.encode(), status=status)
    )
    clock = FakeClock()
    breaker = Breaker(failures_to_open=1, clock=clock)
    async with remote_to(answering(answer)) as (remote, peer):
        agent = Breaking(remote, breaker)
        again = Retrying(agent, retries=3, clock=clock, ids=FakeIds(), sleep=clock.sleep)
        await fail(again, make_call(stream=stream))
    assert len(peer.requests) == (1 if stream else requests)  # it had begun to answer
    assert (breaker.state, breaker.failures) == ("closed", 0)


@pytest.mark.parametrize(
    ("status", "requests"),
    [(500, 4), (502, 4), (503, 4), (504, 4), (429, 4), (408, 4), (400, 1), (404, 1), (501, 1)],
)
@pytest.mark.parametrize("to", [remote_to, provider_to])
async def test_some_statuses_are_asked_again_and_others_are_not(
    status: int, requests: int, to: Any
) -> None:
    clock = FakeClock()
    async with to(answering(reply(b"oops", status=status))) as (agent, peer):
        again = Retrying(agent, retries=3, clock=clock, ids=FakeIds(), sleep=clock.sleep)
        await fail(again, make_call())
    assert len(peer.requests) == requests


@pytest.mark.parametrize("to", [remote_to, provider_to])
async def test_a_request_that_ended_unanswered_is_repeated(to: Any) -> None:
    async def script(line: Line) -> None:
        await line.request()
        line.reset()

    clock = FakeClock()
    async with to(script) as (agent, peer):
        again = Retrying(agent, retries=2, clock=clock, ids=FakeIds(), sleep=clock.sleep)
        await fail(again, make_call())
    assert len(peer.requests) == 3


async def test_a_request_that_never_left_is_repeated_everywhere() -> None:
    clock = FakeClock()
    async with provider_to(answering(ANSWER)) as (provider, peer):
        await peer.__aexit__(None, None, None)  # nobody listens any more
        again = Retrying(
            provider,
            retries=2,
            clock=clock,
            ids=FakeIds(),
            sleep=clock.sleep,
        )
        error, _ = await fail(again, make_call())
    assert isinstance(error, ProviderUnavailable)
    assert clock.slept == [0.25, 0.5]
