"""Plain functions as agents: in threads, a bounded number of them, and none for another's."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

import carnet
from carnet.core.call import Ask
from carnet.core.messages.events import RESULT, Data, Done, Event, Extension, Text
from carnet.errors import AgentFailed
from carnet.runtime.agents.python import Native
from carnet.runtime.threads import MOST_AHEAD, MOST_AT_ONCE
from carnet.runtime.visit.dispatch import Dispatching
from carnet.testing.wait import PATIENCE_SECONDS, until_so
from tests.runtime.scene import collect, fail, make_call, streamed_events


def native(agent: Any) -> Native:
    return Native(agent, Dispatching(), last_depth=3)


async def events_of(agent: Any, text: str = "hi") -> list[Event]:
    return await collect(native(agent), make_call(text=text))


def is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


async def test_a_plain_function_answers_beside_the_event_loop() -> None:
    def plain(visit: carnet.Visit) -> dict[str, Any]:
        return {"main": is_main(), "text": visit.text}

    assert await events_of(plain) == [Data({"main": False, "text": "hi"}), Done()]
    assert await events_of(carnet.agent("plain")(plain)) == await events_of(plain)


async def test_a_plain_function_may_give_nothing_or_what_is_asynchronous() -> None:
    async def later() -> str:
        return "later"

    async def flowing() -> AsyncIterator[str]:
        yield "a"
        yield "b"

    assert await events_of(lambda _: None) == [Done()]
    assert await events_of(lambda _: later()) == [Text("later"), Done()]
    assert await events_of(lambda _: flowing()) == [Text("a"), Text("b"), Done()]


async def test_a_plain_generator_runs_in_one_thread_and_ends_with_its_context() -> None:
    seen: list[Any] = []

    def counting(visit: carnet.Visit) -> Iterator[Any]:
        for word in visit.text.split():
            seen.append(threading.get_ident())
            yield word
        yield carnet.ToolCall("1", "f", "{}")

    events = await events_of(counting, "a b c")
    assert [event.text for event in events if isinstance(event, Text)] == ["a", "b", "c"]
    assert events[-1] == Done("tool_calls")
    assert len(set(seen)) == 1
    assert seen[0] != threading.get_ident()


@pytest.mark.parametrize("error", [ValueError, SystemExit, KeyboardInterrupt, StopIteration])
async def test_what_a_plain_agent_raises_is_its_failure(error: type[BaseException]) -> None:
    def raising(_: carnet.Visit) -> str:
        raise error("x")

    def yielding(_: carnet.Visit) -> Iterator[str]:
        yield "a"
        raise error("x")

    for agent in (raising, yielding):
        refused, _ = await fail(native(agent), make_call())
        assert isinstance(refused, AgentFailed)


async def test_a_generator_is_no_further_ahead_than_it_may_be_and_ends_when_it_is_left() -> None:
    yielded, closed = [], threading.Event()

    def endless(_: carnet.Visit) -> Iterator[str]:
        try:
            while True:
                yielded.append(1)
                yield "x"
        finally:
            closed.set()

    events = streamed_events(native(endless), make_call())
    async for _ in events:
        break
    await events.aclose()
    assert await asyncio.to_thread(closed.wait, PATIENCE_SECONDS)
    # One is read here; the rest wait before the answer, and between it and whoever reads it.
    assert len(yielded) < 10 * MOST_AHEAD


async def test_who_leaves_a_plain_function_does_not_wait_for_it() -> None:
    begun, let_go, ended = threading.Event(), threading.Event(), threading.Event()

    def stuck(visit: carnet.Visit) -> bool:
        begun.set()
        let_go.wait(PATIENCE_SECONDS)
        if visit.cancelled:
            ended.set()
        return True

    asking = asyncio.create_task(events_of(stuck))
    await asyncio.to_thread(begun.wait, PATIENCE_SECONDS)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    let_go.set()
    assert await asyncio.to_thread(ended.wait, PATIENCE_SECONDS)


async def test_an_agent_that_uses_up_its_threads_keeps_no_other_waiting() -> None:
    let_go, running = threading.Event(), []

    def stuck(_: carnet.Visit) -> Iterator[str]:
        running.append(1)
        let_go.wait(PATIENCE_SECONDS)
        yield "x"

    agent = native(stuck)
    asking = [asyncio.create_task(collect(agent, make_call())) for _ in range(MOST_AT_ONCE + 1)]
    await until_so(lambda: len(running) == MOST_AT_ONCE)
    assert await events_of(lambda visit: visit.text) == [Text("hi"), Done()]
    assert len(running) == MOST_AT_ONCE
    let_go.set()
    assert len(await asyncio.gather(*asking)) == MOST_AT_ONCE + 1


async def test_a_plain_generator_is_a_skill_as_well() -> None:
    @carnet.skill("count")
    def count(to: int) -> Iterator[Any]:
        for number in range(to):
            yield str(number)
        yield carnet.Result({"main": is_main()})

    ask = Ask(messages=(), skill="count", payload={"to": 2})
    events = await collect(native(count), replace(make_call(), ask=ask))
    assert events == [Text("0"), Text("1"), Extension(RESULT, {"main": False}), Done()]
