"""What is written can be taken back as long as nobody has seen it; what is paid for stays."""

import asyncio
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from carnet.core.call import Call, Claim
from carnet.core.messages.events import (
    CHILD,
    Done,
    End,
    Event,
    Extension,
    Failed,
    Text,
    Usage,
    Waiting,
)
from carnet.core.messages.interrupt import Interrupt, Resolution, StatedResolution
from carnet.core.messages.outbound_call import OutboundCall
from carnet.core.messages.output import Output, Sink
from carnet.errors import ProviderError
from carnet.runtime.visit.pulled import MOST_WAITING, pulled
from carnet.testing.wait import until_so
from tests.guards.scene import claim, target
from tests.runtime.stage import Stage, in_run, streamed

ELSEWHERE = OutboundCall(ordinal=0, child_turn="t1", to="@x@b.example", depth=1, state="failed")
NEEDED = Interrupt(id="i1", state="s1", kind="approval", message="may I?")


def child(cost: int) -> Extension:
    return Extension(CHILD, {"to": "x", "index": 0, "cost": cost})


async def twice(_: Call, out: Output, /) -> End:
    """Speaks, takes that back, and speaks again."""
    mark = out.mark()
    await out.write(Text("no"))
    await out.write(child(5))
    out.usage(Usage(3, 4))
    out.called(ELSEWHERE)
    assert out.back(mark)
    await out.write(Text("yes"))
    out.usage(Usage(1, 1))
    out.called(ELSEWHERE)
    return Done()


@pytest.mark.parametrize("asking", [claim, streamed])
async def test_events_are_taken_back_and_what_was_paid_for_stays(
    asking: Callable[[str], Claim],
) -> None:
    stage = Stage(target("twice", agent=twice))
    events = await stage.read(await stage.gate.admit(asking("twice")))
    assert [event for event in events if isinstance(event, Text)] == [Text("yes")]
    assert child(5) in events
    record = stage.turns.turns[1]
    assert (record.tokens_in, record.tokens_out, record.cost) == (4, 5, 5)
    (finish,) = stage.turns.finishes
    assert [call.ordinal for call in finish.outbound] == [0, 1]


async def test_what_somebody_has_seen_is_not_taken_back() -> None:
    seen = asyncio.Event()
    taken: list[bool] = []

    async def speak(_: Call, out: Output, /) -> End:
        mark = out.mark()
        await out.write(Text("seen"))
        await seen.wait()
        taken.append(out.back(mark))
        return Done()

    stage = Stage(target("speak", agent=speak))
    call = await stage.gate.admit(streamed("speak"))
    events: list[Event] = []
    async for batch in stage.journal.batches(call):
        events += batch
        seen.set()
    assert (taken, events[0], events[-1]) == ([False], Text("seen"), Done())


async def test_an_agent_of_the_former_shape_has_failed() -> None:
    async def mute(_: Call, __: Output, /) -> None:
        return None

    stage = Stage(target("mute", agent=mute))
    end = (await stage.ask("mute"))[-1]
    assert isinstance(end, Failed)
    assert end.code == "internal"


async def test_a_turn_that_waits_is_told_as_waiting_and_told_again() -> None:
    async def careful(_: Call, out: Output, /) -> End:
        await out.write(Text("before I do this: "))
        return Waiting((NEEDED,))

    stage = Stage(target("careful", price=7, agent=careful))
    for known in (False, True):
        call = await stage.gate.admit(claim("careful", marks=in_run()))
        assert call.known is known
        events = await stage.read(call)
        assert events[-1] == Waiting((NEEDED,))
        assert events[0] == Text("before I do this: ")
    assert stage.turns.turns[1].state == "waiting"
    assert (stage.turns.debits, stage.turns.deliveries) == ([], [])


@pytest.mark.parametrize("asking", [claim, streamed])
async def test_a_turn_that_finds_no_place_to_wait_fails_after_what_it_said(
    asking: Callable[[str], Claim],
) -> None:
    async def careful(_: Call, out: Output, /) -> End:
        await out.write(Text("before I do this: "))
        out.called(ELSEWHERE)
        return Waiting((NEEDED,))

    stage = Stage(target("careful", price=7, agent=careful))
    stage.turns.per_caller = 0
    events = await stage.read(await stage.gate.admit(asking("careful")))
    assert [event for event in events if isinstance(event, Text)] == [Text("before I do this: ")]
    end = events[-1]
    assert isinstance(end, Failed)
    assert (end.code, stage.turns.turns[1].state) == ("too_many_waiting", "failed")
    assert (stage.turns.interrupted, stage.turns.debits) == ({}, [])
    (finish,) = stage.turns.finishes
    assert [call.ordinal for call in finish.outbound] == [0]
    extensions = [event for event in stage.turns.written(1) if isinstance(event, Extension)]
    assert len(extensions) == 1  # the call out, once


async def test_a_turn_takes_the_place_of_one_that_was_answered_and_has_ended() -> None:
    async def careful(call: Call, _: Output, /) -> End:
        return Done() if call.resolved else Waiting((NEEDED,))

    stage = Stage(target("careful", agent=careful))
    stage.turns.per_caller = 1
    asked = claim("careful", marks=in_run())
    assert isinstance((await stage.read(await stage.gate.admit(asked)))[-1], Waiting)
    brought = StatedResolution(NEEDED.state, Resolution(outcome="accepted"))
    answered = await stage.gate.admit(replace(asked, resolution=brought))
    assert isinstance((await stage.ask("careful"))[-1], Failed)  # it has not ended yet
    assert (await stage.read(answered))[-1] == Done()
    assert isinstance((await stage.ask("careful"))[-1], Waiting)


async def test_a_pushed_answer_can_be_pulled_and_its_writer_waits() -> None:
    written = 0

    async def say(sink: Sink) -> End:
        nonlocal written
        for number in range(MOST_WAITING * 2):
            await sink.write(Text(str(number)))
            written += 1
        sink.usage(Usage(1, 2))
        return Done()

    events = pulled(say)
    first = await anext(events)
    await until_so(lambda: written == MOST_WAITING + 1)
    assert first == Text("0")
    rest = [event async for event in events]
    assert len(rest) == MOST_WAITING * 2 + 1
    assert rest[-2:] == [Usage(1, 2), Done()]


async def test_who_stops_pulling_ends_the_answer_and_an_error_comes_after_the_rest() -> None:
    ended: list[bool] = []

    async def endless(sink: Sink) -> End:
        try:
            await sink.write(Text("one"))
            await asyncio.Event().wait()
        finally:
            ended.append(True)
        return Done()

    events = pulled(endless)
    assert await anext(events) == Text("one")
    await events.aclose()
    assert ended == [True]

    async def broken(sink: Sink) -> End:
        await sink.write(Text("one"))
        raise ProviderError("x")

    events = pulled(broken)
    assert await anext(events) == Text("one")
    with pytest.raises(ProviderError):
        await anext(events)
