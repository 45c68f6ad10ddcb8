"""Agents that misbehave and stores that fail: no turn stays running, nobody pays too much."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress

import pytest
from msgspec.structs import replace

from carnet.core.call import Call, Price
from carnet.core.chain.turn import Turn
from carnet.core.messages.events import Done, End, Event, Failed, Text, Usage, joined_text
from carnet.core.messages.output import Output
from carnet.errors import (
    Cancelled,
    CarnetError,
    DefinitionChanged,
    InProgress,
    OutcomeUnknown,
    PermissionMissing,
    StorageUnavailable,
)
from carnet.ports.calls.turns import Debit
from carnet.runtime.turns import recording
from carnet.runtime.visit.dispatch import Dispatching
from carnet.runtime.visit.visit import Visit
from carnet.runtime.wrappers.timed import Detached
from carnet.testing.wait import until_so
from tests.guards.scene import claim, target
from tests.runtime.scene import speaking
from tests.runtime.stage import Stage, in_run, native, streamed

UNSAYABLE = [object(), "\ud800", {"a": [object()]}]


@pytest.mark.parametrize("thing", UNSAYABLE, ids=["object", "surrogate", "nested"])
async def test_what_cannot_be_recorded_fails_the_turn(thing: object) -> None:
    async def odd(_: Visit) -> object:
        return thing

    stage = Stage(target("odd", price=7, agent=native(odd)))
    events = await stage.ask("odd")
    assert events[-1] == Failed("agent_failed", {})
    assert stage.turns.turns[1].state == "failed"
    assert stage.turns.debits == []


async def test_a_stream_never_loses_what_was_said_before_it_broke() -> None:
    async def mixed(_: Visit) -> AsyncIterator[object]:
        yield "IMPORTANT"
        yield object()
        yield "tail"

    stage = Stage(target("mixed", price=7, agent=native(mixed)))
    call = await stage.gate.admit(streamed("mixed"))
    events = await stage.read(call)
    assert joined_text(events) == "IMPORTANT"
    assert isinstance(events[-1], Failed)
    assert stage.turns.debits == []


async def test_a_turn_that_could_not_be_recorded_is_ended_when_the_store_is_back() -> None:
    async def fine(_: Visit) -> str:
        return "fine"

    stage = Stage(target("fine", agent=native(fine)))
    failures = 2

    def fail_twice() -> None:
        nonlocal failures
        if failures:
            failures -= 1
            raise StorageUnavailable

    stage.turns.before_write = fail_twice
    events = await stage.ask("fine", marks=in_run())
    assert isinstance(events[-1], Failed)
    assert events[-1].code == "storage_unavailable"
    await until_so(lambda: stage.journal.running == 0)
    assert stage.turns.turns[1].state == "unknown"
    assert joined_text(await stage.ask("fine", marks=in_run())) == "fine"
    assert stage.turns.turns[1].attempt == 2


async def test_a_claimed_turn_that_was_never_begun_does_not_hold_its_repeats() -> None:
    async def fine(_: Visit) -> str:
        return "fine"

    stage = Stage(target("fine", agent=native(fine)))
    await stage.gate.admit(claim("fine", marks=in_run()))  # and then its caller is gone
    stage.turns.turns[1] = replace(stage.turns.turns[1], worker="w")
    events = await stage.ask("fine", marks=in_run())
    assert events[-1] == Failed("outcome_unknown", {})
    assert joined_text(await stage.ask("fine", marks=in_run())) == "fine"


async def test_a_repeat_that_comes_before_the_first_has_begun_attaches_to_it() -> None:
    async def fine(_: Visit) -> str:
        return "fine"

    stage = Stage(target("fine", agent=native(fine)))
    first = await stage.gate.admit(claim("fine", marks=in_run()))
    repeat = await stage.gate.admit(claim("fine", marks=in_run()))
    assert repeat.known
    second = asyncio.create_task(stage.read(repeat))
    await asyncio.sleep(0)
    assert await stage.read(first) == await second


async def test_an_agent_that_exits_the_process_has_only_failed() -> None:
    async def exits(_: Visit) -> str:
        raise SystemExit(1)

    stage = Stage(target("exits", agent=native(exits)))
    assert (await stage.ask("exits"))[-1] == Failed("agent_failed", {})


async def test_a_cancellation_that_nobody_asked_for_is_a_failure() -> None:
    async def confused(_: Visit) -> str:
        raise asyncio.CancelledError

    for agent in (native(confused), Detached(native(confused))):
        stage = Stage(target("confused", agent=agent))
        assert (await stage.ask("confused"))[-1] == Failed("agent_failed", {})


async def test_an_agent_that_ignores_its_cancellation_is_let_go() -> None:
    free = asyncio.Event()

    async def stubborn(_: Visit) -> AsyncIterator[str]:
        yield "begun"
        while not free.is_set():
            try:
                await free.wait()
            except asyncio.CancelledError:
                continue

    agent = Detached(native(stubborn), grace_seconds=0.01)
    stage = Stage(target("stubborn", agent=agent))
    call = await stage.gate.admit(streamed("stubborn"))
    async with aclosing(stage.journal.batches(call)) as batches:
        assert await anext(batches)
    await until_so(lambda: stage.journal.running == 0)
    assert stage.turns.turns[1].code == "cancelled"
    free.set()


async def test_a_detached_agent_that_waits_for_its_reader_ends_at_once_when_it_is_left() -> None:
    ended: list[bool] = []

    async def flood(_: Visit) -> AsyncIterator[str]:
        try:
            while True:
                yield "x" * 1000
        finally:
            ended.append(True)

    stage = Stage(target("flood", agent=Detached(native(flood), grace_seconds=600)))
    call = await stage.gate.admit(streamed("flood"))
    async with aclosing(stage.journal.batches(call)) as batches:
        assert await anext(batches)
    await until_so(lambda: stage.journal.running == 0)
    assert ended == [True]


async def test_what_an_agent_says_that_was_let_go_is_read_by_nobody() -> None:
    late: list[str] = []
    free = asyncio.Event()

    async def stubborn(_: Call, out: Output, /) -> End:
        while not free.is_set():
            with suppress(asyncio.CancelledError):
                await free.wait()
        out.usage(Usage(1, 2))
        try:
            await out.write(Text("too late"))
        except Cancelled as refused:
            late.append(refused.code)
        return Done()

    stage = Stage(target("stubborn", agent=Detached(stubborn, grace_seconds=0.01)))
    call = await stage.gate.admit(claim("stubborn"))
    reading = asyncio.create_task(stage.journal.whole(call))
    await until_so(lambda: stage.journal.running == 1)
    await asyncio.sleep(0)
    await stage.journal.cancel([1])
    assert (await reading)[-1] == Failed.of(Cancelled())
    free.set()
    await until_so(lambda: bool(late))
    assert (late, stage.turns.turns[1].tokens_in) == (["cancelled"], None)


async def test_a_detached_agent_says_the_same() -> None:
    async def counts(_: Visit) -> AsyncIterator[str]:
        for number in range(600):
            yield f"{number} "

    stage = Stage(target("counts", agent=Detached(native(counts))))
    text = joined_text(await stage.ask("counts"))
    assert text == "".join(f"{number} " for number in range(600))


async def test_a_turn_that_is_being_cancelled_is_not_attached_to() -> None:
    held = asyncio.Event()

    async def slow_to_stop(_: Visit) -> AsyncIterator[str]:
        try:
            yield "begun"
            await asyncio.sleep(60)
        finally:
            await held.wait()

    stage = Stage(target("slow", agent=native(slow_to_stop)))
    call = await stage.gate.admit(streamed("slow"))
    async with aclosing(stage.journal.batches(call)) as batches:
        assert await anext(batches)
    with pytest.raises(InProgress):
        stage.journal.batches(replace(call, known=True))
    held.set()
    await until_so(lambda: stage.journal.running == 0)


async def test_only_the_turns_that_are_named_are_cancelled() -> None:
    async def waits(_: Visit) -> str:
        await asyncio.sleep(60)
        return ""

    stage = Stage(target("waits", agent=native(waits)))
    calls = [await stage.gate.admit(claim("waits")) for _ in range(2)]
    reading = [asyncio.create_task(stage.read(call)) for call in calls]
    await until_so(lambda: stage.journal.running == 2)
    assert await stage.journal.cancel({calls[0].record.n, 99}) == 1
    assert (await reading[0])[-1] == Failed("cancelled", {})
    assert not reading[1].done()
    await stage.journal.cancel({calls[1].record.n})


async def test_what_an_agent_pays_itself_is_no_cost_of_its_caller() -> None:
    dispatch = Dispatching()

    async def parent(visit: Visit) -> str:
        return await visit.peer("child", auth="agent-owned").ask("x")

    async def child(visit: Visit) -> str:
        return visit.text

    stage = Stage(
        target("parent", agent=native(parent, dispatch, auth_source="per-call")),
        target("child", price=5, agent=native(child)),
    )
    dispatch.connect(stage.gate, stage.journal)
    events = await stage.ask("parent")
    assert events[-2] == Usage(None, None, 0, 0, "credits")


@pytest.mark.parametrize(
    ("source", "auth"), [("per-call", "agent_owned"), ("forward-user", "agent-owned")]
)
async def test_a_choice_of_payer_that_is_none_fails_loudly(source: str, auth: str) -> None:
    async def parent(visit: Visit) -> str:
        return await visit.peer("child", auth=auth).ask("x")

    stage = Stage(target("parent", agent=native(parent, auth_source=source)))
    assert (await stage.ask("parent"))[-1] == Failed("agent_failed", {})


@pytest.mark.parametrize("address", ["a\x00b", "@a\x00@b.example", "\ud800", "a" * 513])
async def test_an_address_that_could_not_be_recorded_is_refused_before_it_is_called(
    address: str,
) -> None:
    dispatch = Dispatching()

    async def parent(visit: Visit) -> str:
        return await visit.peer(address).ask("x")

    stage = Stage(target("parent", agent=native(parent, dispatch)))
    dispatch.connect(stage.gate, stage.journal)
    end = (await stage.ask("parent"))[-1]
    assert isinstance(end, Failed)
    assert end.code == "address_invalid"
    assert stage.turns.finishes[-1].outbound == ()


async def test_a_child_that_costs_needs_the_callers_right_to_pay() -> None:
    dispatch = Dispatching()
    met: list[CarnetError] = []

    async def parent(visit: Visit) -> str:
        try:
            return await visit.peer("child").ask("x")
        except PermissionMissing as refused:
            met.append(refused)
            return "refused"

    stage = Stage(
        target("parent", agent=native(parent, dispatch)),
        target("child", price=5, agent=native(parent)),
    )
    dispatch.connect(stage.gate, stage.journal)
    assert joined_text(await stage.ask("parent", token="ck_broke")) == "refused"
    assert met[0].public_facts() == {"permission": "pay"}


async def test_an_agent_that_asks_differently_when_it_runs_again_is_told_so() -> None:
    dispatch = Dispatching()
    met: list[CarnetError] = []

    async def echo(visit: Visit) -> str:
        return visit.text

    async def fickle(visit: Visit) -> str:
        attempt = stage.turns.turns[1].attempt
        try:
            await visit.peer("echo").ask(f"attempt {attempt}")
        except DefinitionChanged as changed:
            met.append(changed)
        raise RuntimeError("again")

    stage = Stage(
        target("fickle", agent=native(fickle, dispatch)), target("echo", agent=native(echo))
    )
    dispatch.connect(stage.gate, stage.journal)
    await stage.ask("fickle", marks=in_run())
    assert met == []
    await stage.ask("fickle", marks=in_run())
    assert len(met) == 1


async def test_an_agent_that_has_ended_makes_no_more_calls() -> None:
    dispatch = Dispatching()
    kept: list[Visit] = []

    async def leaves_a_call_for_later(visit: Visit) -> str:
        kept.append(visit)
        return "bye"

    stage = Stage(target("leaver", agent=native(leaves_a_call_for_later, dispatch)))
    dispatch.connect(stage.gate, stage.journal)
    await stage.ask("leaver")
    with pytest.raises(CarnetError):
        await kept[0].peer("leaver").ask("late")
    assert len(stage.turns.turns) == 1


async def test_a_payer_with_a_limit_pays_what_was_used_as_far_as_the_limit_goes() -> None:
    @speaking
    async def model(_: Call, /) -> AsyncIterator[Event]:
        yield Text("x")
        yield Usage(tokens_in=10**9, tokens_out=10**9)
        yield Done()

    price = Price(per_million_out=1_000_000)
    stage = Stage(replace(target("model", agent=model), price=price))
    await stage.ask("model")  # alice has a limit; 4096 tokens were reserved for
    assert stage.turns.debits == [
        Debit("agent:model", 4096),
        Debit("unpaid:token:alice", 10**9 - 4096),
    ]


async def test_a_cost_that_nobody_told_is_the_quote_under_a_limit_and_unknown_without_one() -> None:
    @speaking
    async def silent(_: Call, /) -> AsyncIterator[Event]:
        yield Text("x")
        yield Done()

    remote = target(
        "@silent@b.example",
        agent=silent,
        is_remote=True,
        needs="call:remote",
        credit="peer:b.example",
        most_cost=300,
    )
    limited, unlimited = Stage(remote), Stage(replace(remote, takes_credential=True))
    events = await limited.ask("@silent@b.example")
    assert limited.turns.debits == [Debit("peer:b.example", 300)]
    assert events[-2] == Usage(None, None, 300, 300, "credits")
    events = await unlimited.ask("@silent@b.example", token="ck_roaming", marks=in_run(depth=0))
    assert unlimited.turns.debits == [Debit("peer:b.example", 0)]
    usage = events[-2]
    assert isinstance(usage, Usage)
    assert usage.cost is None
    again = await unlimited.ask("@silent@b.example", token="ck_roaming", marks=in_run(depth=0))
    assert again[-2] == usage


async def test_an_agent_is_no_faster_than_its_fastest_reader() -> None:
    written = 0

    async def flood(_: Visit) -> AsyncIterator[str]:
        nonlocal written
        while True:
            written += 1
            yield "x" * 100_000
            await asyncio.sleep(0)

    stage = Stage(target("flood", agent=native(flood)))
    call = await stage.gate.admit(streamed("flood"))
    async with aclosing(stage.journal.batches(call)) as batches:
        await anext(batches)
        before = -1
        while before != written:  # until it waits
            before = written
            await asyncio.sleep(0.02)
        assert written < 60
        for _ in range(5):
            await anext(batches)
        await until_so(lambda: written > before)
    await until_so(lambda: stage.journal.running == 0)


async def test_a_turn_that_says_too_much_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "MOST_BYTES", 1000)

    async def flood(_: Visit) -> AsyncIterator[str]:
        while True:
            yield "x" * 100

    stage = Stage(target("flood", agent=native(flood)))
    events = await stage.ask("flood")
    assert events[-1] == Failed("agent_failed", {})
    assert stage.turns.turns[1].state == "failed"


async def test_what_may_have_been_written_is_not_written_again_with_the_end() -> None:
    async def speak(_: Visit) -> AsyncIterator[str]:
        yield "hello "
        yield "world"

    stage = Stage(target("held", agent=native(speak)))
    write = stage.turns.append

    async def append(turn: Turn, first: int, last: int, events: bytes) -> None:
        await write(turn, first, last, events)
        await asyncio.sleep(0.02)  # meanwhile the agent ends
        raise OutcomeUnknown("the answer to a commit was lost")

    stage.turns.append = append  # type: ignore[method-assign]
    call = await stage.gate.admit(replace(streamed("held"), marks=in_run()))
    answer = await stage.read(call)
    assert answer[-1] == Failed.of(OutcomeUnknown())
    assert stage.turns.debits == []
    await until_so(lambda: stage.turns.turns[1].state == "unknown")
    stage.turns.append = write  # type: ignore[method-assign]
    again = await stage.gate.admit(replace(streamed("held"), marks=in_run()))
    assert not again.known
    assert joined_text(await stage.read(again)) == "hello world"
    replayed = await stage.gate.admit(replace(streamed("held"), marks=in_run()))
    assert joined_text(await stage.read(replayed)) == "hello world"
    assert len(stage.turns.debits) == 1
