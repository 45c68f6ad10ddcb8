"""An answer has ended by its deadline, whoever set it and whatever the agent does."""

import asyncio
import time
from contextlib import suppress

import pytest

from carnet.core.call import Call
from carnet.core.messages.events import Done, End, Text
from carnet.core.messages.output import Output
from carnet.errors import ProviderTimeout
from carnet.runtime.wrappers.timed import Deadlines, Detached, Timed
from carnet.testing.clock import FakeClock
from carnet.testing.wait import until_so
from tests.runtime.scene import GOOD, Paper, collect, fail, make_call, saying

NOW = 1_800_000_000.0  # where a FakeClock stands


class Hanging:
    """Says one thing and then nothing; notes how it was ended."""

    def __init__(self) -> None:
        self.ended = ""

    async def __call__(self, _: Call, out: Output, /) -> End:
        try:
            await out.write(Text("one"))
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.ended = "cancelled"
            raise
        return Done()


async def test_an_answer_in_time_passes_unchanged() -> None:
    timed = Timed(GOOD, seconds=60, clock=FakeClock())
    assert await collect(timed, make_call()) == [Text("well"), Done()]


async def test_an_agent_that_hangs_is_cancelled_at_its_deadline() -> None:
    hanging = Hanging()
    timed = Timed(hanging, seconds=0.05, clock=FakeClock())
    error, events = await fail(timed, make_call())
    assert (type(error), events) == (ProviderTimeout, [Text("one")])
    assert hanging.ended == "cancelled"
    assert error.facts["by"] == "agent"
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_an_agent_that_swallows_its_cancellation_has_failed() -> None:
    async def deaf(_: Call, __: Output, /) -> End:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        return Done()

    error, _ = await fail(Timed(deaf, seconds=0.05, clock=FakeClock()), make_call())
    assert isinstance(error, ProviderTimeout)
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_the_deadline_of_the_call_counts_if_it_is_earlier() -> None:
    timed = Timed(Hanging(), seconds=60, clock=FakeClock())
    with pytest.raises(ProviderTimeout) as caught:
        await collect(timed, make_call(deadline=NOW + 0.05))
    assert caught.value.facts["by"] == "caller"


async def test_a_later_deadline_of_the_call_changes_nothing() -> None:
    timed = Timed(Hanging(), seconds=0.05, clock=FakeClock())
    with pytest.raises(ProviderTimeout) as caught:
        await collect(timed, make_call(deadline=NOW + 60))
    assert caught.value.facts["by"] == "agent"


async def test_a_call_without_time_left_is_not_begun() -> None:
    begun: list[Call] = []

    async def agent(call: Call, _: Output, /) -> End:
        begun.append(call)
        return Done()

    with pytest.raises(ProviderTimeout):
        await collect(Timed(agent, seconds=60, clock=FakeClock()), make_call(deadline=NOW))
    assert begun == []


async def test_a_cancellation_by_the_caller_stays_one() -> None:
    hanging = Hanging()
    paper = Paper()
    timed = Timed(hanging, seconds=60, clock=FakeClock())
    task = asyncio.create_task(collect(timed, make_call(), paper))
    while not paper.events:  # noqa: ASYNC110  as soon as it has spoken
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert hanging.ended == "cancelled"


async def test_a_cancellation_in_the_turn_in_which_an_agent_ends_is_no_error() -> None:
    loop, may_end = asyncio.get_running_loop(), asyncio.Event()
    wrong: list[object] = []
    loop.set_exception_handler(lambda _, context: wrong.append(context))

    async def ends(_: Call, out: Output, /) -> Done:
        del out
        await may_end.wait()
        return Done()

    listening = asyncio.create_task(collect(Detached(ends), make_call()))
    await until_so(lambda: bool(may_end._waiters))  # noqa: SLF001  it waits
    may_end.set()
    loop.call_soon(listening.cancel)  # after the agent has ended, and before its listener hears
    with pytest.raises(asyncio.CancelledError):
        await listening
    assert wrong == []


async def test_a_cancellation_at_the_very_deadline_is_the_callers() -> None:
    task = asyncio.current_task()
    assert task is not None
    deadlines = Deadlines(0.001)
    deadlines.attend()
    asyncio.get_running_loop().call_soon(task.cancel)
    time.sleep(0.01)  # noqa: ASYNC251  so that both come in the same round of the loop
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(1)
    assert deadlines.ended
    assert not deadlines.took()
    assert task.cancelling() == 1
    task.uncancel()


async def test_a_stream_of_many_events_costs_one_timer(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    timers: list[float] = []
    call_at = loop.call_at

    def counted(when: float, *more: object, **named: object) -> asyncio.TimerHandle:
        timers.append(when)
        return call_at(when, *more, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "call_at", counted)
    many = saying(*(Text(str(number)) for number in range(1000)), Done())
    await collect(Timed(many, seconds=60, clock=FakeClock()), make_call())
    assert len(timers) == 1


async def test_patience_can_be_moved_without_a_new_timer() -> None:
    deadlines = Deadlines(60)
    deadlines.attend()
    for _ in range(3):
        deadlines.allow(30)
        await asyncio.sleep(0.01)
    assert not deadlines.ended
    deadlines.allow(0.01)
    with pytest.raises(asyncio.CancelledError):
        await asyncio.sleep(30)
    assert deadlines.took()
    deadlines.stop()


# ---------------------------------------------------------------------- deadlines themselves


async def all_ended(deadlines: "list[Deadlines]", *, seconds: float = 30) -> None:
    """Wait until all of them have ended."""
    async with asyncio.timeout(seconds):
        while not all(each.ended for each in deadlines):  # noqa: ASYNC110
            await asyncio.sleep(0.005)


def test_every_loop_has_its_own_look_at_the_deadlines() -> None:
    async def scene() -> None:
        received: list[int] = []
        several = [Deadlines(0.01 * number, lambda: received.append(1)) for number in range(4)]
        await all_ended(several)
        assert received == [1] * 4

    first = asyncio.new_event_loop()
    second = asyncio.new_event_loop()
    try:
        for loop in (first, second, first):
            loop.run_until_complete(scene())
    finally:
        first.close()
        second.close()


async def test_a_deadline_that_was_stopped_does_not_come() -> None:
    received: list[str] = []
    stopped = Deadlines(0.01, lambda: received.append("stopped"))
    later = Deadlines(0.05, lambda: received.append("later"))
    stopped.stop()
    await all_ended([later])
    assert received == ["later"]
    later.stop()  # once it has come, this does no harm
    stopped.stop()
    assert not stopped.ended


async def test_a_failure_of_one_that_is_told_keeps_nobody_else_waiting() -> None:
    noted: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: noted.append(context["exception"]))

    def fail_once() -> None:
        raise RuntimeError

    several = [Deadlines(0.01, fail_once) for _ in range(3)]
    quiet = Deadlines(0.03)  # and nobody waits for it
    await all_ended([*several, quiet])
    assert len(noted) == 3


async def test_time_that_is_over_is_not_given_again() -> None:
    deadlines = Deadlines(30)
    assert deadlines.allow(0.01)
    assert 0 < deadlines.left() <= 30
    await all_ended([deadlines])
    assert not deadlines.allow(60)
    assert not Deadlines(0).allow(60)
    assert Deadlines(-1).left() == 0


async def test_an_earlier_deadline_is_not_kept_waiting_by_a_later_one() -> None:
    received: list[str] = []
    late = Deadlines(60, lambda: received.append("late"))
    early = Deadlines(60, lambda: received.append("early"))
    early.allow(0.01)
    await all_ended([early])
    assert received == ["early"]
    late.stop()


async def test_without_a_task_there_is_nobody_to_cancel() -> None:
    made: list[Deadlines] = []

    def outside() -> None:
        deadlines = Deadlines(0.01)
        deadlines.attend()
        made.append(deadlines)

    asyncio.get_running_loop().call_soon(outside)
    await asyncio.sleep(0)
    await all_ended(made)
    assert not made[0].took()
