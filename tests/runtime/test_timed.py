"""An answer has ended by its deadline, whoever set it and whatever the agent does."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from carnet.core.call import Call
from carnet.core.events import Done, Event, Text
from carnet.errors import ProviderTimeout
from carnet.runtime.patience import Patience
from carnet.runtime.timed import Timed
from carnet.testing.clock import FakeClock
from tests.runtime.scene import GOOD, collect, fail, make_call, saying

NOW = 1_800_000_000.0  # where a FakeClock stands


class Hanging:
    """Says one thing and then nothing; notes how it was ended."""

    def __init__(self) -> None:
        self.ended = ""

    async def __call__(self, _: Call, /) -> AsyncIterator[Event]:
        try:
            yield Text("one")
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.ended = "cancelled"
            raise
        except GeneratorExit:
            self.ended = "closed"
            raise


async def test_an_answer_in_time_passes_unchanged() -> None:
    timed = Timed(GOOD, seconds=60, clock=FakeClock())
    assert await collect(timed(make_call())) == [Text("well"), Done()]


async def test_an_agent_that_hangs_is_cancelled_at_its_deadline() -> None:
    hanging = Hanging()
    events = Timed(hanging, seconds=0.05, clock=FakeClock())(make_call())
    assert await anext(events) == Text("one")
    with pytest.raises(ProviderTimeout) as caught:
        await anext(events)
    assert hanging.ended == "cancelled"
    assert caught.value.facts["by"] == "agent"
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_an_agent_that_swallows_its_cancellation_is_not_heard_any_more() -> None:
    async def deaf(_: Call, /) -> AsyncIterator[Event]:
        for number in range(5):
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(60)
            yield Text(str(number))

    error, said = await fail(Timed(deaf, seconds=0.05, clock=FakeClock())(make_call()))
    assert isinstance(error, ProviderTimeout)
    assert said == []
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_the_deadline_of_the_call_counts_if_it_is_earlier() -> None:
    timed = Timed(Hanging(), seconds=60, clock=FakeClock())
    with pytest.raises(ProviderTimeout) as caught:
        await collect(timed(make_call(deadline=NOW + 0.05)))
    assert caught.value.facts["by"] == "caller"


async def test_a_later_deadline_of_the_call_changes_nothing() -> None:
    timed = Timed(Hanging(), seconds=0.05, clock=FakeClock())
    with pytest.raises(ProviderTimeout) as caught:
        await collect(timed(make_call(deadline=NOW + 60)))
    assert caught.value.facts["by"] == "agent"


async def test_a_call_without_time_left_is_not_begun() -> None:
    begun: list[Call] = []

    async def agent(call: Call, /) -> AsyncIterator[Event]:
        begun.append(call)
        yield Done()

    with pytest.raises(ProviderTimeout):
        await collect(Timed(agent, seconds=60, clock=FakeClock())(make_call(deadline=NOW)))
    assert begun == []


async def test_a_slow_reader_is_not_cancelled_but_gets_no_more() -> None:
    events = Timed(saying(Text("one"), Text("two")), seconds=0.05, clock=FakeClock())(make_call())
    assert await anext(events) == Text("one")
    await asyncio.sleep(0.1)  # busy with it, and not disturbed
    with pytest.raises(ProviderTimeout):
        await anext(events)


async def test_a_cancellation_by_the_caller_stays_one() -> None:
    hanging = Hanging()
    heard = asyncio.Event()

    async def listen() -> None:
        async for _ in Timed(hanging, seconds=60, clock=FakeClock())(make_call()):
            heard.set()

    task = asyncio.create_task(listen())
    await heard.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert hanging.ended == "cancelled"


async def test_a_cancellation_at_the_very_deadline_is_the_callers() -> None:
    task = asyncio.current_task()
    assert task is not None
    patience = Patience(0.001)
    patience.attend()
    asyncio.get_running_loop().call_soon(task.cancel)
    time.sleep(0.01)  # noqa: ASYNC251  so that both come in the same round of the loop
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(1)
    assert patience.ended
    assert not patience.took()
    assert task.cancelling() == 1
    task.uncancel()


async def test_a_reader_that_leaves_closes_the_agent() -> None:
    hanging = Hanging()
    events = Timed(hanging, seconds=60, clock=FakeClock())(make_call())
    await anext(events)
    await events.aclose()  # type: ignore[attr-defined]
    assert hanging.ended == "closed"


async def test_a_stream_of_many_events_costs_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    timers: list[float] = []
    call_at = loop.call_at

    def counted(when: float, *more: object, **named: object) -> asyncio.TimerHandle:
        timers.append(when)
        return call_at(when, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "call_at", counted)
    many = saying(*(Text(str(number)) for number in range(1000)), Done())
    await collect(Timed(many, seconds=60, clock=FakeClock())(make_call()))
    assert len(timers) == 1


async def test_patience_can_be_moved_without_a_new_timer() -> None:
    patience = Patience(0.3, tick=0.05)
    patience.attend()
    for _ in range(3):
        patience.allow(0.05)
        await asyncio.sleep(0.03)
    assert not patience.ended
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(1)
    assert patience.took()
    patience.stop()
