"""Turns that run once, are shown to many, and are said again."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
from msgspec.structs import replace

from carnet.core.call import Call, Price
from carnet.core.chain.allowance import Allowance
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import Done, Event, Failed, Text, Usage, Waiting, joined_text
from carnet.core.messages.interrupt import Resolution, StatedResolution
from carnet.core.people.proof import Document, Spending
from carnet.errors import OutcomeUnknown, StorageUnavailable
from carnet.ports.calls.turns import Debit
from carnet.runtime.visit.dispatch import Dispatching
from carnet.runtime.visit.visit import Visit
from carnet.runtime.wrappers.limited import Limited, Places
from carnet.testing.wait import until_so
from tests.guards.scene import claim, target
from tests.runtime.scene import speaking
from tests.runtime.stage import Stage, in_run, native, streamed


async def speak(visit: Visit) -> AsyncIterator[str]:
    for word in visit.text.split():
        yield word
        await asyncio.sleep(0)


async def test_the_last_events_are_the_usage_and_the_end() -> None:
    stage = Stage(target("speak", price=7, agent=native(speak)))
    events = await stage.ask("speak", "a b")
    assert events == [Text("a"), Text("b"), Usage(None, None, 7, 7, "credits"), Done()]
    assert stage.turns.debits == [Debit("agent:speak", 7)]


async def test_a_call_that_is_free_is_entered_in_the_ledger_all_the_same() -> None:
    stage = Stage(target("speak", agent=native(speak)))
    await stage.ask("speak")
    assert stage.turns.debits == [Debit("agent:speak", 0)]


async def test_an_exception_of_the_agent_ends_in_one_failure_and_costs_nothing() -> None:
    async def broken(_: Visit) -> str:
        raise RuntimeError("inside")

    stage = Stage(target("broken", price=7, agent=native(broken)))
    events = await stage.ask("broken")
    assert events[-1] == Failed("agent_failed", {})
    assert stage.turns.debits == []
    assert stage.turns.turns[1].code == "agent_failed"


async def test_turns_that_have_ended_leave_nothing_to_the_collector_of_cycles() -> None:
    stage = Stage(target("speak", agent=native(speak)))
    await stage.ask("speak")
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        for _ in range(10):
            await stage.ask("speak", "a b")
        gc.collect()
        left = {type(one).__name__ for one in gc.garbage if "carnet" in type(one).__module__}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    assert left == set()


async def test_tokens_are_priced() -> None:
    @speaking
    async def model(_: Call, /) -> AsyncIterator[Event]:
        yield Text("x")
        yield Usage(tokens_in=1000, tokens_out=500)
        yield Done("length")

    priced = target("model", agent=model)
    price = Price(per_call=1, per_million_in=2_000_000, per_million_out=4_000_000)
    stage = Stage(replace(priced, price=price))
    events = await stage.ask("model")
    assert events[-2] == Usage(1000, 500, 4001, 4001, "credits")
    assert events[-1] == Done("length")


async def test_what_follows_the_end_is_not_read() -> None:
    @speaking
    async def chatty(_: Call, /) -> AsyncIterator[Event]:
        yield Done()
        yield Text("too late")

    stage = Stage(target("chatty", agent=chatty))
    assert joined_text(await stage.ask("chatty")) == ""


async def test_a_stream_that_simply_ends_is_complete() -> None:
    @speaking
    async def terse(_: Call, /) -> AsyncIterator[Event]:
        yield Text("all")

    stage = Stage(target("terse", agent=terse))
    assert (await stage.ask("terse"))[-1] == Done()


async def test_when_the_end_cannot_be_recorded_nobody_is_told_that_it_is_done() -> None:
    stage = Stage(target("speak", agent=native(speak)))

    def full() -> None:
        raise StorageUnavailable

    stage.turns.before_write = full
    events = await stage.ask("speak")
    assert isinstance(events[-1], Failed)
    assert events[-1].code == "storage_unavailable"


async def test_a_turn_that_was_taken_over_is_unknown_to_those_who_read_it() -> None:
    async def slow(visit: Visit) -> str:
        stage.turns.turns[1] = _taken(stage)
        return visit.text

    stage = Stage(target("slow", agent=native(slow)))
    events = await stage.ask("slow")
    assert events[-1] == Failed.of(OutcomeUnknown())


def _taken(stage: Stage) -> Turn:
    return replace(stage.turns.turns[1], fence=9)


async def test_readers_that_come_later_see_everything_from_the_first() -> None:
    gate = asyncio.Event()

    async def held(visit: Visit) -> AsyncIterator[str]:
        yield "first "
        await gate.wait()
        yield visit.text

    stage = Stage(target("held", agent=native(held)))
    call = await stage.gate.admit(claim("held"))
    reading = asyncio.create_task(stage.read(call))
    await until_so(lambda: stage.journal.running > 0)
    second = asyncio.create_task(stage.read(call))
    await asyncio.sleep(0)
    gate.set()
    assert await reading == await second


async def test_the_last_reader_that_leaves_ends_the_turn() -> None:
    stopped = asyncio.Event()

    async def endless(_: Visit) -> AsyncIterator[str]:
        try:
            while True:
                yield "."
                await asyncio.sleep(0.001)
        finally:
            stopped.set()

    stage = Stage(target("endless", agent=native(endless)))
    call = await stage.gate.admit(streamed("endless"))
    async with aclosing(stage.journal.batches(call)) as batches:
        assert await anext(batches)
    await asyncio.wait_for(stopped.wait(), 5)
    await until_so(lambda: stage.journal.running == 0)
    assert stage.turns.turns[1].code == "cancelled"


async def test_a_reader_that_leaves_while_the_end_is_recorded_changes_nothing() -> None:
    stage = Stage(target("speak", agent=native(speak)))
    call = await stage.gate.admit(streamed("speak"))
    leaving = asyncio.Event()

    async def leave_after_the_first() -> None:
        async with aclosing(stage.journal.batches(call)) as batches:
            await anext(batches)
            await leaving.wait()

    reading = asyncio.create_task(leave_after_the_first())
    stage.turns.before_write = leaving.set
    await reading
    await until_so(lambda: stage.journal.running == 0)
    assert stage.turns.turns[1].state in {"done", "failed"}


async def test_a_turn_that_is_stopped_before_it_begins_is_recorded_as_cancelled() -> None:
    stage = Stage(target("speak", agent=native(speak)))
    call = await stage.gate.admit(streamed("speak"))
    batches = stage.journal.batches(call)
    first = asyncio.ensure_future(anext(batches))
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await batches.aclose()
    await until_so(lambda: stage.journal.running == 0)
    assert stage.turns.turns[1].state in {"done", "failed"}


async def test_an_agent_that_finishes_on_its_own_is_left_alone() -> None:
    gate = asyncio.Event()

    async def patient(_: Visit) -> AsyncIterator[str]:
        yield "begun"
        await gate.wait()

    stage = Stage(target("patient", agent=native(patient), on_disconnect="finish"))
    call = await stage.gate.admit(streamed("patient"))
    async with aclosing(stage.journal.batches(call)) as batches:
        assert await anext(batches)
    gate.set()
    await until_so(lambda: stage.journal.running == 0)
    assert stage.turns.turns[1].state == "done"


async def test_draining_ends_what_does_not_end_by_itself() -> None:
    async def endless(_: Visit) -> str:
        await asyncio.sleep(3600)
        return ""

    stage = Stage(target("endless", agent=native(endless)))
    call = await stage.gate.admit(claim("endless"))
    reading = asyncio.create_task(stage.read(call))
    await until_so(lambda: stage.journal.running > 0)
    assert await stage.journal.drain(0.01) == 1
    assert (await reading)[-1] == stage.turns.written(1)[-1]
    assert stage.turns.turns[1].code == "shutting_down"
    assert await stage.journal.drain(0.01) == 0


async def test_a_silence_is_told_to_a_reader_that_wants_to_know() -> None:
    async def late(_: Visit) -> str:
        await asyncio.sleep(0.05)
        return "at last"

    stage = Stage(target("late", agent=native(late)))
    call = await stage.gate.admit(claim("late"))
    batches = [batch async for batch in stage.journal.batches(call, heartbeat=0.01)]
    assert batches[0] == ()
    assert joined_text(batches[-1]) == "at last"


async def test_a_child_is_answered_from_its_record_when_the_parent_runs_again() -> None:
    dispatch = Dispatching()
    ran: list[str] = []

    async def child(visit: Visit) -> str:
        ran.append(visit.carnet.turn)
        return visit.text.upper()

    async def parent(visit: Visit) -> str:
        text = await visit.peer("child").ask("said")
        if stage.turns.turns[1].attempt == 1:
            raise RuntimeError("the first attempt fails after the child was paid")
        return text

    stage = Stage(
        target("parent", agent=native(parent, dispatch)),
        target("child", price=5, agent=native(child)),
    )
    dispatch.connect(stage.gate, stage.journal)
    assert (await stage.ask("parent", marks=in_run()))[-1] == Failed("agent_failed", {})
    events = await stage.ask("parent", marks=in_run())
    assert joined_text(events) == "SAID"
    assert len(ran) == 1
    assert [debit.amount for debit in stage.turns.debits] == [5, 0]
    assert events[-2] == Usage(None, None, 5, 5, "credits")


async def test_an_agent_answers_only_so_many_calls_at_once() -> None:
    gate, running, most = asyncio.Event(), 0, 0

    @speaking
    async def counted(_: Call, /) -> AsyncIterator[Event]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await gate.wait()
        running -= 1
        yield Done()

    limited = Limited(counted, Places(2, queue=1))
    stage = Stage(target("counted", agent=limited))
    calls = [asyncio.create_task(stage.ask("counted")) for _ in range(4)]
    for _ in range(20):
        await asyncio.sleep(0)
    gate.set()
    ends = [(await call)[-1] for call in calls]
    assert most == 2
    assert sorted(type(end).__name__ for end in ends) == ["Done", "Done", "Done", "Failed"]


async def test_dispatching_must_be_connected_first() -> None:
    dispatch = Dispatching()
    stage = Stage(target("speak", agent=native(speak)))
    call = await stage.gate.admit(claim("speak"))
    with pytest.raises(RuntimeError):
        await anext(dispatch(call, "speak", call.ask, index=0, auth="forward-user"))


DOCUMENT = Document(
    issuer="globex.example",
    audience="acme.example",
    issued=0,
    expires=1,
    run="conv_1",
    turn="conv_1.t0.x",
    depth=1,
    last_depth=3,
    digest="",
    keyid="",
)


@pytest.mark.parametrize(
    ("document", "task", "left"), [(DOCUMENT, None, 200), (DOCUMENT, "t", 300), (None, None, 300)]
)
async def test_a_budget_without_room_for_a_payment_is_not_lessened_by_it(
    document: Document | None, task: str | None, left: int
) -> None:
    """The document that brings an answer has room for it; what was kept with a call has none."""

    async def shop(visit: Visit) -> str:
        return (await visit.interrupt(payment="0.0001")).outcome

    stage = Stage(target("shop", agent=native(shop)))
    asked = claim("shop", marks=in_run())
    waiting = (await stage.read(await stage.gate.admit(asked)))[-1]
    assert isinstance(waiting, Waiting)
    brought = StatedResolution(waiting.interrupts[0].state, Resolution(outcome="accepted"))
    call = await stage.gate.admit(replace(asked, resolution=brought))
    allowance = Allowance(Spending(money=300, currency="credits"))
    await stage.read(replace(call, allowance=allowance, document=document, task=task))
    assert allowance.left().money == left
