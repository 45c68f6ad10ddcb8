"""What a branch asks for while the others go on: shown, answered, brought once, and closed."""

import asyncio
from collections.abc import Collection, Sequence

import pytest
from msgspec.structs import replace

import carnet
from carnet.core.call import Call
from carnet.core.messages.events import Done, Event, Text, Waiting
from carnet.core.messages.interrupt import Answered, Interrupt, Resolution
from carnet.errors import StorageUnavailable
from carnet.runtime.agents.python import Native
from carnet.runtime.visit.means import VisitMeans
from carnet.testing.wait import until_so
from tests.runtime.scene import collect, make_call
from tests.runtime.visit.fan_out.test_fan_out import ASKED, Agents, done


class Shown:
    """A Surface that is answered by hand; the first time it cannot be reached."""

    def __init__(self) -> None:
        self.is_away = True
        self.asked: list[Interrupt] = []
        self.given: list[Answered] = []
        self.withheld: list[set[str]] = []

    async def ask(self, call: Call, interrupts: Sequence[Interrupt]) -> None:
        del call
        if self.is_away:
            self.is_away = False
            raise StorageUnavailable
        self.asked += interrupts

    async def answers(self, call: Call) -> Sequence[Answered]:
        del call
        return self.given

    async def withhold(self, call: Call, ids: Collection[str]) -> Sequence[Answered]:
        del call
        self.withheld.append(set(ids))
        return self.given

    def give(self, outcome: str, value: str | None = None) -> None:
        kept = Resolution(outcome="accepted" if outcome == "accepted" else "rejected", value=value)
        self.given.append(Answered(ASKED, kept))


async def states(visit: carnet.Visit) -> str:
    answers = await visit.fan_out(["a", "b"], "?", without=visit.text == "without")
    return " ".join(answer.state for answer in answers)


async def run(agents: Agents, shown: Shown, text: str = "hi") -> list[Event]:
    native = Native(states, agents, last_depth=3, means=VisitMeans(surface=shown))
    return await collect(native, make_call(text=text))


async def test_a_branch_goes_on_with_its_answer_at_the_same_place_while_the_others_run() -> None:
    agents, shown = Agents(a=Waiting((ASKED,)), **done("b")), Shown()
    agents.let("a")
    running = asyncio.ensure_future(run(agents, shown))
    await until_so(lambda: shown.asked == [_passed_on()])
    agents.ends["a"] = Done()
    shown.give("accepted")
    await until_so(lambda: agents.ended == ["a", "a"])
    agents.let("b")
    assert await running == [Text("done done"), Done()]
    assert agents.made == [(0, "a", "?"), (1, "b", "?"), (0, "a", "?")]


async def test_what_is_asked_again_after_its_answer_is_asked_when_the_turn_waits() -> None:
    """Else it would be brought the same answer for ever."""
    agents, shown = Agents(a=Waiting((ASKED,)), **done("b")), Shown()
    agents.let("a")
    running = asyncio.ensure_future(run(agents, shown))
    await until_so(lambda: bool(shown.asked))
    shown.give("accepted")
    await until_so(lambda: agents.ended == ["a", "a"])
    agents.let("b")
    (*_, end) = await running
    assert isinstance(end, Waiting)
    assert [each.id for each in end.interrupts] == [ASKED.id]
    assert len(shown.asked) == 1


@pytest.mark.parametrize("is_given", [True, False])
async def test_an_answer_of_the_last_moment_counts_and_without_one_the_turn_waits(
    is_given: bool,  # noqa: FBT001  a parameter
) -> None:
    agents, shown = Agents(a=Waiting((ASKED,)), **done("b")), Shown()
    agents.let("a")
    running = asyncio.ensure_future(run(agents, shown, "without"))
    await until_so(lambda: bool(shown.asked))
    assert shown.asked[0].without
    if is_given:
        shown.give("rejected", "without")
    agents.let("b")
    (*_, end) = await running
    assert agents.made == [(0, "a", "?"), (1, "b", "?")]  # which is brought nothing
    if is_given:
        assert end == Done()
    else:
        assert isinstance(end, Waiting)
        assert shown.withheld == [{ASKED.id}]
        assert end.interrupts[0].without


def _passed_on() -> Interrupt:
    """The question as the turn asks it."""
    return replace(ASKED, origin="a", via=("a",))
