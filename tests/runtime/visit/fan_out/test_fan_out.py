"""Several agents called at once: their order, how many are enough, who fails, who is cancelled."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

import carnet
from carnet.core.call import Ask, Call
from carnet.core.messages.events import Done, Event, Failed, Text, Waiting
from carnet.core.messages.interrupt import Interrupt
from carnet.errors import AgentFailed, Cancelled, LoopDetected, ProviderTimeout
from carnet.ports.calls.admission import ClientLeave
from carnet.runtime.agents.python import Native
from carnet.runtime.visit.fan_out.branch import MOST_BRANCHES
from carnet.testing.wait import until_so
from tests.runtime.scene import collect, fail, make_call

ASKED = Interrupt(id="int_1", kind="approval", message="May I?", state="secret")


class Agents:
    """A Dispatch whose agents answer when they are let."""

    def __init__(self, **ends: Event | Exception) -> None:
        """Each agent by its name ends so: with its own name as its text, if it is done."""
        self.ends = ends
        self.may: dict[str, asyncio.Event] = {name: asyncio.Event() for name in ends}
        self.made: list[tuple[int, str, str]] = []
        self.left: list[str] = []  # before their end
        self.ended: list[str] = []

    def let(self, *names: str) -> None:
        for name in names or tuple(self.may):
            self.may[name].set()

    async def __call__(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> AsyncIterator[Event]:
        del parent, auth
        self.made.append((index, name, ask.text))
        end = self.ends[name]
        if isinstance(end, LoopDetected):
            raise end
        try:
            await self.may[name].wait()
        except asyncio.CancelledError:
            self.left.append(name)
            raise
        self.ended.append(name)
        if isinstance(end, Exception):
            raise end
        yield Text(name)
        yield end

    async def whole(
        self, parent: Call, name: str, ask: Ask, *, index: int, auth: str
    ) -> Sequence[Event]:
        return [event async for event in self(parent, name, ask, index=index, auth=auth)]

    def check(self, call: Call) -> None:
        """All may be done."""

    def most_cost(self, *_: Any) -> int:
        """All is free."""
        return 0

    def let_out(self, *_: Any, **__: Any) -> ClientLeave:
        """All may be called."""
        return ClientLeave()


def done(*names: str) -> dict[str, Event | Exception]:
    return dict.fromkeys(names, Done())


async def answered(agents: Agents, agent: Any) -> list[Event]:
    return await collect(Native(agent, agents, last_depth=3), make_call(text="hi"))


async def test_answers_stand_in_the_order_of_the_list_whichever_came_first() -> None:
    agents = Agents(**done("a", "b", "c"))

    async def asks(visit: carnet.Visit) -> str:
        fan = visit.fan_out(["a", carnet.Branch("b", "yours"), "c"], visit.text)
        after = visit.peer("a")("after")  # its place comes after those of the list
        answers = asyncio.ensure_future(_all(fan))
        for name in ("c", "b", "a"):
            agents.let(name)
            await has_ended(agents, name)
        texts = [answer.text for answer in await answers]
        return " ".join([*texts, *[event.text async for event in after if isinstance(event, Text)]])

    assert await answered(agents, asks) == [Text("a b c a"), Done()]
    assert agents.ended == ["c", "b", "a", "a"]
    assert agents.made == [(0, "a", "hi"), (1, "b", "yours"), (2, "c", "hi"), (3, "a", "after")]


async def has_ended(agents: Agents, name: str) -> None:
    await until_so(lambda: name in agents.ended)


async def _all(fan: carnet.FanOut) -> list[carnet.BranchAnswer]:
    return await fan


async def test_as_soon_as_enough_have_answered_the_others_are_cancelled() -> None:
    agents = Agents(**done("a", "b", "c"), d=AgentFailed("x"))
    agents.let("b", "c", "d")

    async def asks(visit: carnet.Visit) -> str:
        answers = await visit.fan_out(["a", "b", "c", "d"], "?", first=2)
        return " ".join(answer.state for answer in answers)

    (answer, _) = await answered(agents, asks)
    assert isinstance(answer, Text)
    assert answer.text in {"cancelled done done failed", "cancelled done done cancelled"}
    assert agents.left == ["a"]


async def test_a_failure_ends_all_at_once_or_at_last_or_stands_beside_the_answers() -> None:
    async def asks(visit: carnet.Visit) -> str:
        fan = visit.fan_out(["a", "b", "c"], "?", on_failure=visit.text)  # type: ignore[arg-type]
        return " ".join(f"{each.to}:{each.state}" for each in await fan)

    for policy, let in (("fail_fast", "b"), ("fail_late", "abc"), ("collect", "abc")):
        agents = Agents(a=Done(), b=Failed.of(LoopDetected()), c=Done())
        agents.let(*let)
        native = Native(asks, agents, last_depth=3)
        call = make_call(text=policy)
        if policy == "collect":
            assert (await collect(native, call))[0] == Text("a:done b:failed c:done")
            continue
        error, _ = await fail(native, call)
        assert error.code == "loop_detected"
        assert sorted(agents.left) == (["a", "c"] if policy == "fail_fast" else [])
        assert sorted(agents.ended) == sorted(let)


async def test_too_few_that_can_still_answer_are_a_failure() -> None:
    agents = Agents(a=Done(), b=LoopDetected(), c=LoopDetected())

    async def asks(visit: carnet.Visit) -> str:
        await visit.fan_out(["a", "b", "c"], "?", first=2)
        return "never"

    error, _ = await fail(Native(asks, agents, last_depth=3), make_call())
    assert isinstance(error, LoopDetected)
    assert agents.left == ["a"]


async def test_one_branch_can_be_cancelled_and_the_others_go_on() -> None:
    agents = Agents(**done("a", "b", "c"))

    async def asks(visit: carnet.Visit) -> str:
        came = []
        async with visit.fan_out(["a", "b", "c"], "?") as fan:
            agents.let("c")
            async for answer in fan:
                came.append(f"{answer.to}:{answer.state}")
                if answer.to == "c":
                    fan.cancel(1)
                    fan.cancel(2)  # which has ended
                if answer.to == "b":
                    agents.let("a")
        return " ".join([*came, *(answer.state for answer in fan.answers)])

    assert (await answered(agents, asks))[0] == Text(
        "c:done b:cancelled a:done done cancelled done"
    )


async def test_a_branch_has_its_own_time() -> None:
    agents = Agents(**done("a", "b"))
    agents.let("b")

    async def asks(visit: carnet.Visit) -> str:
        branches: list[str | carnet.Branch] = [carnet.Branch("a", timeout=0.01), "b"]
        late, other = await visit.fan_out(branches, "?", timeout=60, on_failure="collect")
        assert isinstance(late.error, ProviderTimeout)
        return f"{late.state} {other.state}"

    assert (await answered(agents, asks))[0] == Text("failed done")
    assert agents.left == ["a"]


async def test_who_leaves_a_fan_out_or_is_cancelled_ends_every_branch() -> None:
    agents = Agents(**done("a", "b"))

    async def leaves(visit: carnet.Visit) -> str:
        async with visit.fan_out(["a", "b"], "?") as fan:
            agents.let("a")
            async for _ in fan:
                break
        return " ".join(answer.state for answer in fan.answers)

    async def waits(visit: carnet.Visit) -> str:
        return str(await visit.fan_out(["a", "b"], "?"))

    assert (await answered(agents, leaves))[0] == Text("done cancelled")
    agents = Agents(**done("a", "b"))
    task = asyncio.ensure_future(answered(agents, waits))
    await until_so(lambda: len(agents.made) == 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(agents.left) == ["a", "b"]


async def test_what_one_branch_asks_for_surfaces_when_the_others_have_ended() -> None:
    agents = Agents(a=Waiting((ASKED,)), b=Done())
    agents.let("a")

    async def asks(visit: carnet.Visit) -> str:
        async with visit.fan_out(["a", "b"], "?") as fan:
            await until_so(lambda: "a" in agents.ended)
            agents.let("b")
            async for answer in fan:
                visit.usage(tokens_out=answer.place)  # the other's answer comes all the same
        return "never"

    *_, end = await answered(agents, asks)
    assert isinstance(end, Waiting)
    assert [(asked.id, asked.origin) for asked in end.interrupts] == [("int_1", "a")]
    assert agents.ended == ["a", "b"]


async def test_what_is_asked_for_is_taken_back_where_others_answers_are_enough() -> None:
    agents = Agents(a=Waiting((ASKED,)), b=Done())
    agents.let("a")

    async def asks(visit: carnet.Visit) -> str:
        async with visit.fan_out(["a", "b"], "?", first=1) as fan:
            await until_so(lambda: "a" in agents.ended)
            agents.let("b")
            return " ".join([answer.text async for answer in fan])

    assert await answered(agents, asks) == [Text("b"), Done()]


async def test_what_cannot_be_fanned_out_is_told_to_whoever_wrote_the_agent() -> None:
    agents = Agents(**done("a"))

    async def asks(visit: carnet.Visit) -> str:
        assert await visit.fan_out([], "?") == []
        for given, more, message in (
            (["a"], {}, "what is a asked"),
            (["a"], {"prompt": "?", "first": 2}, "'first' is from 1 to 1"),
            (["a"], {"prompt": "?", "on_failure": "shrug"}, "on_failure is one of fail_fast"),
            (["a"], {"prompt": "?", "timeout": 0}, "a timeout is a number of seconds above 0"),
            (["a"] * (MOST_BRANCHES + 1), {"prompt": "?"}, f"at most {MOST_BRANCHES} branches"),
        ):
            with pytest.raises((TypeError, ValueError), match=message):
                visit.fan_out(given, **more)
        fan = visit.fan_out(["a"], "?")
        with pytest.raises(RuntimeError, match="has not begun"):
            fan.cancel(0)
        agents.let()
        (answer,) = await fan
        with pytest.raises(RuntimeError, match="is made once"):
            await fan
        return answer.text

    assert (await answered(agents, asks))[0] == Text("a")
    assert agents.made == [(0, "a", "?")]


def test_what_was_left_is_told_as_cancelled() -> None:
    """Of a fan-out that nobody has begun nothing is under way."""

    def asks(visit: carnet.Visit) -> str:
        (answer,) = visit.fan_out(["a"], "?").answers
        assert isinstance(answer.error, Cancelled)
        return answer.state

    agents = Agents(**done("a"))
    assert asyncio.run(answered(agents, asks))[0] == Text("cancelled")
