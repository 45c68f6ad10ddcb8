"""Steps of an agent: done once, kept, and given again when the turn runs again."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from carnet import faults
from carnet.core.messages.events import Event, Failed, Usage, joined_text, read_events
from carnet.errors import AgentFailed, Cancelled
from carnet.ports.calls.steps import Step
from carnet.runtime.visit.dispatch import Dispatching
from carnet.runtime.visit.steps import MOST_BYTES
from carnet.runtime.visit.visit import Visit
from carnet.stores.open import Store
from tests.guards.scene import claim
from tests.runtime.scene import Paper, make_call
from tests.runtime.tasks.stage import Function, TaskStage, open_place
from tests.stores.support.scenes import Place


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[tuple[Place, Store]]:
    place, store = await open_place(tmp_path)
    yield place, store
    await store.close()


class Work:
    """Functions that note when they are called."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    async def pay(self, *args: Any, **more: Any) -> dict[str, Any]:
        self.calls.append(("pay", *args, *more.values()))
        return {"paid": list(args)}

    def ship(self, *args: Any) -> tuple[Any, ...]:
        self.calls.append(("ship", *args))
        return ("shipped", *args)


async def run_twice(store: Store, first: "Interrupted", second: Function) -> tuple[Any, Any]:
    """A task that is let go while it waits, and runs again with another function."""
    here = TaskStage(store, agent=first.function)
    here.worker.start()
    call = await here.accept("agent")
    await first.waits.wait()
    await here.close()
    there = TaskStage(store, agent=second)
    there.worker.start()
    task = await there.ended(call)
    events = await events_of(there, task.turn)
    await there.close()
    return task, events


async def events_of(stage: TaskStage, turn: Any) -> list[Event]:
    return [event for data in await stage.store.turns.events(turn) for event in read_events(data)]


class Interrupted:
    """An agent that does its steps and then waits until it is stopped."""

    def __init__(self, work: Work, keys: list[str]) -> None:
        self._work = work
        self._keys = keys
        self.waits = asyncio.Event()

    async def function(self, visit: Visit) -> str:
        await both(visit, self._work, self._keys)
        self.waits.set()
        await asyncio.Event().wait()
        return "never"


async def both(visit: Visit, work: Work, keys: list[str]) -> list[Any]:
    keys.append(visit.idempotency_key("pay"))
    paid = await visit.step("pay", work.pay, 3, currency="credits")
    keys.append(visit.idempotency_key("ship"))
    shipped = await visit.step("ship", work.ship, "tea")
    return [paid, shipped]


async def test_what_was_done_is_not_done_again_and_its_result_is_the_same(
    opened: tuple[Place, Store],
) -> None:
    work, seen = Work(), []
    keys: list[str] = []

    async def again(visit: Visit) -> str:
        seen.append(await both(visit, work, keys))
        seen.append(await visit.step("more", work.ship, 1))
        return "well"

    task, events = await run_twice(opened[1], Interrupted(work, keys), again)
    assert (task.state, task.turn.attempt, joined_text(events)) == ("done", 2, "well")
    assert work.calls == [("pay", 3, "credits"), ("ship", "tea"), ("ship", 1)]
    assert seen == [[{"paid": [3]}, ["shipped", "tea"]], ["shipped", 1]]
    assert keys[:2] == keys[2:]
    assert keys[0] != keys[1]


async def test_another_step_at_the_place_of_a_kept_one_ends_the_turn_for_good(
    opened: tuple[Place, Store], caplog: pytest.LogCaptureFixture
) -> None:
    work = Work()
    keys: list[str] = []

    async def changed(visit: Visit) -> str:
        await visit.step("ship", work.ship, "tea")
        return "never"

    task, events = await run_twice(opened[1], Interrupted(work, keys), changed)
    assert (task.state, task.turn.code) == ("failed", "definition_changed")
    error = events[-1].error()
    assert error.safe_text == "Step 1 of the agent is not the one that is kept under this turn id."
    (line,) = [record for record in caplog.records if record.name == "carnet.agent"]
    assert line.message == "step 1 of the agent was 'pay' and is 'ship' now"
    assert isinstance(events[-1], Failed)
    assert work.calls == [("pay", 3, "credits"), ("ship", "tea")]


async def test_a_step_that_raised_is_not_kept_and_is_done_again(
    opened: tuple[Place, Store],
) -> None:
    tries: list[int] = []

    async def flaky() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise OSError("for the moment")
        return "well"

    async def patient(visit: Visit) -> str:
        try:
            await visit.step("flaky", flaky)
        except OSError:
            return str(await visit.step("flaky again", flaky))
        return "never"

    here = TaskStage(opened[1], patient=patient)
    here.worker.start()
    task = await here.ended(await here.accept("patient"))
    kept = await opened[1].steps.of(task.turn)
    assert kept == [Step(1, "flaky again", b'"well"')]
    await here.close()


async def test_steps_made_at_once_have_their_places_in_the_order_they_were_asked_for(
    opened: tuple[Place, Store],
) -> None:
    async def slow(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    async def fans_out(visit: Visit) -> str:
        steps = [visit.step(f"s{n}", slow, (2 - n) / 100) for n in range(3)]
        return str(await asyncio.gather(*steps))

    here = TaskStage(opened[1], fans=fans_out)
    here.worker.start()
    task = await here.ended(await here.accept("fans"))
    kept = await opened[1].steps.of(task.turn)
    assert [(step.place, step.name) for step in kept] == [(0, "s0"), (1, "s1"), (2, "s2")]
    await here.close()


async def test_a_step_works_for_every_call_and_passes_its_points(
    opened: tuple[Place, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "is_armed", True)
    before = faults.passed()
    work = Work()

    async def pays(visit: Visit) -> str:
        return str(await visit.step("pay", work.pay, 1))

    here = TaskStage(opened[1], pays=pays)
    call = await here.gate.admit(claim("pays"))
    assert joined_text(await here.journal.whole(call)) == "{'paid': [1]}"
    passed = faults.passed()
    for point in ("step.begin", "step.done", "step.kept"):
        assert passed[point] == before.get(point, 0) + 1
    await here.close()


# ------------------------------------------------------------------------- without a store


def visit(paper: Paper | None = None) -> Visit:
    return Visit(make_call(), paper or Paper(), Dispatching(), last_depth=3)


async def test_what_is_no_json_or_too_much_is_refused() -> None:
    here = visit()
    with pytest.raises(AgentFailed, match="not JSON"):
        await here.step("object", object)
    with pytest.raises(AgentFailed, match="more than"):
        await here.step("much", lambda: "x" * MOST_BYTES)
    with pytest.raises(ValueError, match="1 to 200 characters"):
        here.step("", object)
    with pytest.raises(ValueError, match="can be read"):
        here.step("pay\x00", object)


async def test_a_step_within_a_step_is_refused_and_has_its_key_there() -> None:
    here = visit()
    keys: list[str] = []

    async def outer() -> str:
        keys.append(here.idempotency_key("outer"))
        with pytest.raises(RuntimeError, match="within another"):
            here.step("inner", str)
        return "well"

    before = here.idempotency_key("outer")
    assert await here.step("outer", outer) == "well"
    assert keys == [before]
    assert here.idempotency_key("outer") != before
    assert await here.step("next", lambda: here.idempotency_key("next")) != before


async def test_a_function_that_gives_an_awaitable_is_waited_for() -> None:
    work = Work()
    assert await visit().step("later", lambda: work.pay(2)) == {"paid": [2]}


async def test_an_agent_that_has_ended_makes_no_steps_and_counts_no_tokens() -> None:
    paper = Paper()
    here = visit(paper)
    here.usage(tokens_in=3, tokens_out=4)
    assert (here.cancelled, paper.events) == (False, [Usage(3, 4)])
    with pytest.raises(ValueError, match="from 0 to"):
        here.usage(tokens_in=-1)
    here.close()
    here.usage(tokens_in=3)
    assert (here.cancelled, paper.events) == (True, [Usage(3, 4)])
    with pytest.raises(Cancelled):
        here.step("late", str)
