"""An answer in one piece is the stream's, whatever is wrapped around the agent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import pytest

from carnet.core.call import Call
from carnet.core.events import Done, Event, Text, Usage
from carnet.errors import (
    CarnetError,
    CircuitOpen,
    Overloaded,
    PeerBusy,
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
)
from carnet.ports.agent import Agent
from carnet.ports.door import Bounds
from carnet.runtime.answering import answer_of, answered
from carnet.runtime.breaker import Breaker, Breaking
from carnet.runtime.limited import Limited
from carnet.runtime.retrying import Retrying
from carnet.runtime.timed import Timed
from carnet.testing.clock import FakeClock, FakeIds
from tests.runtime.elsewhere import ANSWER, leg, provider_to, remote_to, streamed
from tests.runtime.peer import JSON, Line, answering, chunk, reply, stream_head
from tests.runtime.scene import END, FINISH, GOOD, collect, completion, delta, fail, make_call

PAID = {"prompt_tokens": 3, "completion_tokens": 4, "cost": "0.5", "currency": "credits"}
DEEP = b'{"error":{"code":"bridge_depth_exceeded","message":"x"},"usage":{"cost":"0.25"}}'
SCRIPTS = {
    "whole": reply(completion("well")),
    "whole, with usage": reply(completion("well", **PAID)),
    "a stream nobody asked for": streamed(delta("one"), delta("two"), FINISH, END),
    "a stream that breaks off": stream_head() + chunk(delta("one")) + b"zz\r\n",
    "a stream without an end": streamed(delta("one")),
    "not JSON": reply(b"what"),
    "a refusal": reply(b"{}", status=403),
    "a refusal that charges": reply(DEEP, status=429, headers=JSON),
    "busy": reply(b"{}", status=503, headers={**JSON, "retry-after": "1"}),
    "broken": reply(b"{}", status=500),
}


class InOnePiece:
    """An agent's `answer` as a stream: what was noted before an error is said before it."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    async def __call__(self, call: Call, /) -> AsyncIterator[Event]:
        noted = len(call.notes)
        try:
            events = await answered(answer_of(self._agent), call)
        except CarnetError:
            for note in call.notes[noted:]:
                yield note
            raise
        for event in events:
            yield event


async def outcome(events: AsyncIterator[Event]) -> tuple[list[Event], Any]:
    """What was said, and the error that ended it."""
    said: list[Event] = []
    try:
        async for event in events:
            said.append(event)  # noqa: PERF401  kept when it raises
    except CarnetError as error:
        return said, (type(error), error.facts, error.retry_after, str(error))
    return said, None


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
@pytest.mark.parametrize("to", [remote_to, provider_to], ids=["remote", "provider"])
async def test_an_answer_in_one_piece_is_the_streams(to: Any, script: bytes) -> None:
    async with to(answering(script)) as (agent, _):
        stream = await outcome(agent(make_call()))
        whole = await outcome(InOnePiece(agent)(make_call()))
    assert whole == stream


async def test_a_peer_that_cannot_be_reached_is_told_alike() -> None:
    async with remote_to(answering(ANSWER)) as (remote, peer):
        pass
    del peer  # it has closed its door
    error, said = await fail(InOnePiece(remote)(make_call()))
    assert isinstance(error, ProviderUnavailable)
    assert said == [leg(status="failed", code=error.code)]


async def test_an_answer_that_takes_too_long_is_noted_and_told() -> None:
    async def silent(line: Line) -> None:
        await line.request()
        await line.until_gone()

    bounds = Bounds(first_byte_seconds=0.05)
    async with remote_to(silent, bounds=bounds) as (remote, _):
        error, said = await fail(InOnePiece(remote)(make_call()))
    assert isinstance(error, ProviderTimeout)
    assert said == [leg(status="failed", code="provider_timeout")]


async def test_a_cancelled_call_leaves_its_record_among_the_notes() -> None:
    async def silent(line: Line) -> None:
        await line.request()
        await line.until_gone()

    call = make_call()
    async with remote_to(silent) as (remote, peer):
        task = asyncio.create_task(remote.answer(call))
        await asyncio.wait_for(peer.asked.wait(), 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(peer.gone.wait(), 30)
    assert call.notes == [leg(status="failed", code="provider_timeout")]


# ---------------------------------------------------------------------- what is wrapped around it


class Scripted:
    """Answers in one piece as it is told to, one telling a call."""

    def __init__(self, *tellings: list[Event] | BaseException) -> None:
        self._tellings = list(tellings)
        self.calls = 0

    def __call__(self, _: Call, /) -> AsyncIterator[Event]:
        raise AssertionError("it was asked for a stream")

    async def answer(self, call: Call, /) -> list[Event]:
        self.calls += 1
        call.notes.append(leg(status="refused", code=str(self.calls)))
        telling = self._tellings[min(self.calls, len(self._tellings)) - 1]
        if isinstance(telling, BaseException):
            raise telling
        call.notes.clear()
        return telling


WELL: list[Event] = [Text("well"), Usage(1, 2), Done()]


def wrapped(agent: Agent) -> list[Agent]:
    """The agent within each wrapper."""
    clock = FakeClock()
    return [
        Timed(agent, seconds=60, clock=clock),
        Breaking(agent, Breaker(clock=clock)),
        Limited(agent, concurrency=1, queue=1),
        Retrying(agent, retries=1, clock=clock, ids=FakeIds(), sleep=clock.sleep),
    ]


@pytest.mark.parametrize("which", range(4))
async def test_a_wrapper_passes_a_whole_answer_on(which: int) -> None:
    agent = wrapped(Scripted(WELL))[which]
    assert await collect(InOnePiece(agent)(make_call())) == WELL


@pytest.mark.parametrize("which", range(4))
async def test_a_wrapper_of_an_agent_that_only_streams_only_streams(which: int) -> None:
    agent = wrapped(GOOD)[which]
    assert answer_of(agent) is None
    assert await collect(agent(make_call())) == [Text("well"), Done()]
    with pytest.raises(TypeError, match="stream only"):
        await answered(answer_of(agent), make_call())


async def test_a_whole_answer_is_cut_off_at_its_deadline() -> None:
    class Slow(Scripted):
        async def answer(self, call: Call, /) -> list[Event]:
            await asyncio.sleep(60)
            return await super().answer(call)

    class Deaf(Scripted):
        async def answer(self, call: Call, /) -> list[Event]:
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
            return await super().answer(call)

    for agent in (Slow(WELL), Deaf(WELL)):
        error, _ = await fail(
            InOnePiece(Timed(agent, seconds=0.05, clock=FakeClock()))(make_call())
        )
        assert isinstance(error, ProviderTimeout)
        assert error.facts["by"] == "agent"
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
    late = make_call(deadline=0.0)
    error, _ = await fail(InOnePiece(Timed(Slow(WELL), seconds=1, clock=FakeClock()))(late))
    assert isinstance(error, ProviderTimeout)
    assert error.facts["by"] == "caller"


async def test_a_cancellation_of_a_whole_answer_that_is_not_ours_stays_one() -> None:
    started = asyncio.Event()

    class Slow(Scripted):
        async def answer(self, call: Call, /) -> list[Event]:
            started.set()
            await asyncio.sleep(60)
            return await super().answer(call)

    timed = Timed(Slow(WELL), seconds=60, clock=FakeClock())
    task = asyncio.create_task(answered(answer_of(timed), make_call()))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize(
    "fault", [ProviderError("x"), RuntimeError("a fault of ours")], ids=["theirs", "ours"]
)
async def test_failures_of_whole_answers_open_the_circuit(fault: Exception) -> None:
    scripted = Scripted(fault)
    agent = Breaking(scripted, Breaker(failures_to_open=2, clock=FakeClock()))
    for _ in range(2):
        with pytest.raises(type(fault)):
            await answered(agent.answer, make_call())
    with pytest.raises(CircuitOpen):
        await answered(agent.answer, make_call())
    assert scripted.calls == 2


async def test_a_whole_answer_closes_the_count_of_failures() -> None:
    breaker = Breaker(failures_to_open=3, clock=FakeClock())
    agent = Breaking(Scripted(ProviderError("x"), [Text("no end")], WELL), breaker)
    with pytest.raises(ProviderError):
        await answered(agent.answer, make_call())
    assert breaker.failures == 1
    await answered(agent.answer, make_call())
    assert breaker.failures == 0


async def test_a_whole_answer_is_asked_for_again_and_only_the_last_record_is_kept() -> None:
    clock = FakeClock()
    busy = PeerBusy(retry_after=1)
    scripted = Scripted(busy, busy, WELL)
    agent = Retrying(scripted, retries=2, clock=clock, ids=FakeIds(), sleep=clock.sleep)
    call = make_call()
    assert await answered(agent.answer, call) == WELL
    assert (scripted.calls, call.notes) == (3, [])
    scripted = Scripted(busy)
    agent = Retrying(scripted, retries=2, clock=clock, ids=FakeIds(), sleep=clock.sleep)
    call = make_call()
    with pytest.raises(PeerBusy):
        await answered(agent.answer, call)
    assert call.notes == [leg(status="refused", code="3")]


async def test_whole_answers_take_their_turn() -> None:
    go_on = asyncio.Event()

    class Waiting(Scripted):
        async def answer(self, call: Call, /) -> list[Event]:
            await go_on.wait()
            return await super().answer(call)

    agent = Limited(Waiting(WELL), concurrency=1, queue=1)
    first, second = (asyncio.create_task(answered(agent.answer, make_call())) for _ in range(2))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with pytest.raises(Overloaded):
        await answered(agent.answer, make_call())
    go_on.set()
    assert await first == await second == WELL
