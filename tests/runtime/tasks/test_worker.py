"""The worker of tasks over a real store: what runs, what waits, and what is let go."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.messages.events import Failed, read_events
from carnet.errors import ProviderUnavailable, StorageUnavailable, TaskNotFound, TooManyTasks
from carnet.runtime.tasks.worker import MOST_LOST
from carnet.runtime.visit.visit import Visit
from carnet.stores.open import Store
from carnet.testing.wait import until_so
from tests.guards.scene import claim
from tests.runtime.tasks.stage import Function, TaskStage, open_place
from tests.stores.support.scenes import Place

Staging = Callable[..., TaskStage]


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[tuple[Place, Store]]:
    place, store = await open_place(tmp_path)
    yield place, store
    await store.close()


@pytest.fixture
async def stage(opened: tuple[Place, Store]) -> AsyncIterator[Staging]:
    made: list[TaskStage] = []

    def make(*, start: bool = True, **options: Any) -> TaskStage:
        made.append(TaskStage(opened[1], **options))
        if start:
            made[-1].worker.start()
        return made[-1]

    yield make
    for one in made:
        await one.close()


def held() -> tuple[Function, asyncio.Event, list[str]]:
    """An agent that waits to be let go, and what it was asked."""
    gate, begun = asyncio.Event(), []

    async def hold(visit: Visit) -> str:
        begun.append(visit.text)
        await gate.wait()
        return visit.text

    return hold, gate, begun


async def echo(visit: Visit) -> str:
    return visit.text


async def last_event(stage: TaskStage, call: Any) -> Any:
    task = await stage.ended(call)
    batches = await stage.store.turns.events(task.turn)
    return read_events(batches[-1])[-1]


# ------------------------------------------------------------------------------ taking and running


async def test_a_task_runs_without_a_reader_and_is_paid_for(stage: Staging) -> None:
    here = stage(echo=echo, prices={"echo": 7})
    call = await here.accept("echo", "later")
    assert (call.record.state, here.concurrency.total) == ("queued", 0)
    task = await here.ended(call)
    assert (task.state, task.turn.cost, task.turn.attempt) == ("done", 7, 1)
    await until_so(lambda: not here.worker.running)
    assert 'carnet_tasks_total{agent="echo",state="done"} 1.0' in here.metrics.text().decode()


async def test_no_more_run_at_once_than_may_in_all_and_of_one_agent(stage: Staging) -> None:
    one, gate, begun = held()
    other, _, others = held()
    here = stage(one=one, other=other, most=3, per_agent=2)
    calls = [await here.accept("one", str(n)) for n in range(4)]
    calls.append(await here.accept("other", "o"))
    await until_so(lambda: len(begun) == 2 and len(others) == 1)
    assert here.worker.running == 3
    gate.set()
    await asyncio.gather(*(here.ended(call) for call in calls[:4]))
    assert begun == ["0", "1", "2", "3"]  # the oldest first


async def test_an_agent_that_answers_few_at_once_is_given_no_more_tasks(stage: Staging) -> None:
    one, gate, begun = held()
    here = stage(one=one, at_once=1)
    calls = [await here.accept("one", str(n)) for n in range(3)]
    await until_so(lambda: begun == ["0"])
    assert here.worker.running == 1
    gate.set()
    for call in calls:
        assert (await here.ended(call)).state == "done"


async def test_agents_take_turns_where_there_is_little_room(stage: Staging) -> None:
    names = [f"agent{n}" for n in range(5)]
    here = stage(start=False, most=1, **dict.fromkeys(names, echo))
    calls = [await here.accept(name) for name in names for _ in range(2)]
    here.worker.start()
    states = [(await here.ended(call)).state for call in calls]
    assert states == ["done"] * 10


async def test_while_calls_are_open_tasks_are_begun_in_small_steps_and_all_the_same(
    stage: Staging,
) -> None:
    here = stage(start=False, echo=echo, per_agent=2)
    here.concurrency.enter("somebody")
    calls = [await here.accept("echo") for _ in range(6)]
    here.worker.start()
    assert [(await here.ended(call)).state for call in calls] == ["done"] * 6
    here.concurrency.leave("somebody")


async def test_a_task_accepted_by_another_process_is_found_within_a_look(stage: Staging) -> None:
    here = stage(echo=echo)
    call = await here.gate.admit(replace(claim("echo"), is_task=True))  # and nobody is woken
    assert (await here.ended(call)).state == "done"


# --------------------------------------------------------------------------------- asked again


async def test_the_same_turn_is_the_same_task_and_another_request_is_refused(
    stage: Staging,
) -> None:
    hold, gate, begun = held()
    here = stage(hold=hold)
    first = await here.accept("hold", turn="conv_1.t0.hold")
    again = await here.accept("hold", turn="conv_1.t0.hold")
    assert (again.task, again.known) == (first.task, True)
    gate.set()
    await here.ended(first)
    late = await here.accept("hold", turn="conv_1.t0.hold")
    assert (late.task, late.known, len(begun)) == (first.task, True, 1)


async def test_a_task_that_failed_for_the_moment_runs_again_under_its_id(stage: Staging) -> None:
    tries: list[int] = []

    async def flaky(visit: Visit) -> str:
        tries.append(visit.call.record.attempt)
        if len(tries) == 1:
            raise ProviderUnavailable("for the moment")
        return "well"

    here = stage(flaky=flaky, per_sender=1)
    first = await here.accept("flaky", turn="conv_1.t0.flaky")
    failed = await here.ended(first)
    assert (failed.state, failed.turn.code) == ("failed", "provider_unavailable")
    again = await here.accept("flaky", turn="conv_1.t0.flaky")
    assert again.task == first.task
    assert (await here.seen(again, lambda task: task.state == "done")).turn.attempt == 2
    assert tries == [1, 2]


async def test_a_task_that_is_forgotten_before_its_turn_is_not_found(stage: Staging) -> None:
    here = stage(echo=echo)
    call = await here.accept("echo", turn="conv_1.t0.echo")
    await here.ended(call)
    assert await here.store.tasks.forget(here.clock.wall_us() + 1) == 1
    with pytest.raises(TaskNotFound):
        await here.accept("echo", turn="conv_1.t0.echo")


async def test_unfinished_tasks_of_a_sender_are_bounded_and_an_end_gives_room(
    stage: Staging,
) -> None:
    hold, gate, _ = held()
    here = stage(hold=hold, per_sender=2)
    calls = [await here.accept("hold", str(n)) for n in range(2)]
    with pytest.raises(TooManyTasks) as refused:
        await here.accept("hold", "2")
    assert refused.value.public_facts() == {"limit": 2}
    gate.set()
    await asyncio.gather(*(here.ended(call) for call in calls))
    await here.ended(await here.accept("hold", "2"))


# --------------------------------------------------------------------------------------- cancel


async def test_a_running_task_is_stopped_and_its_thread_is_told(stage: Staging) -> None:
    begun = threading.Event()
    seen: list[bool] = []

    def work(visit: Visit) -> None:
        begun.set()
        deadline = time.monotonic() + 60
        while not visit.cancelled and time.monotonic() < deadline:
            time.sleep(0.01)
        seen.append(visit.cancelled)

    async def busy(visit: Visit) -> str:
        await asyncio.to_thread(work, visit)
        return "too late"

    here = stage(busy=busy)
    call = await here.accept("busy")
    await here.seen(call, lambda task: task.state == "running")
    await until_so(begun.is_set)  # a thread that has not begun is not told: it never will
    assert await here.store.tasks.cancel(call.task or "", here.clock.wall_us())
    here.worker.wake()
    task = await here.ended(call)
    assert (task.state, task.turn.code) == ("failed", "cancelled")
    await until_so(lambda: seen == [True])


async def test_a_task_that_waits_is_ended_without_being_run_although_there_is_no_room(
    stage: Staging,
) -> None:
    hold, gate, begun = held()
    here = stage(hold=hold, most=1, per_agent=1)
    running = await here.accept("hold", "first")
    await until_so(lambda: begun == ["first"])
    waiting = await here.accept("hold", "second")
    await here.store.tasks.cancel(waiting.task or "", here.clock.wall_us())
    here.worker.wake()
    task = await here.ended(waiting)
    assert (task.turn.code, begun) == ("cancelled", ["first"])
    gate.set()
    assert (await here.ended(running)).state == "done"


async def test_who_cancels_a_run_cancels_the_tasks_of_it_that_wait(stage: Staging) -> None:
    here = stage(start=False, echo=echo)
    call = await here.accept("echo")
    assert await here.journal.cancel({call.record.n}) == 1
    here.worker.start()
    assert (await here.ended(call)).turn.code == "cancelled"
    assert await here.journal.cancel({call.record.n}) == 0


# ------------------------------------------------------------------------------ what is let go


async def test_a_worker_that_stops_lets_its_tasks_wait_again_and_the_next_one_runs_them(
    stage: Staging,
) -> None:
    hold, _, begun = held()
    here = stage(hold=hold)
    call = await here.accept("hold", "again")
    await until_so(lambda: begun == ["again"])
    await here.worker.stop()
    assert await here.journal.drain(0) == 1
    task = await here.find(call)
    assert (task.state, task.turn.attempt, task.turn.worker) == ("pending", 2, None)
    there = stage(hold=echo)
    assert (await there.ended(call)).turn.attempt == 2


async def test_a_task_that_ends_while_the_worker_stops_has_ended(stage: Staging) -> None:
    hold, gate, begun = held()
    here = stage(hold=hold)
    call = await here.accept("hold")
    await until_so(lambda: len(begun) == 1)
    await here.worker.stop()
    asyncio.get_running_loop().call_later(0.05, gate.set)
    assert await here.journal.drain(30) == 0
    assert (await here.find(call)).state == "done"


async def test_a_task_whose_end_cannot_be_recorded_waits_again(
    stage: Staging, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = stage(start=False, echo=echo)
    finish, broken = here.store.turns.finish, [True]

    async def fails_once(ended: Any) -> Any:
        if broken:
            broken.clear()
            raise StorageUnavailable
        return await finish(ended)

    monkeypatch.setattr(here.store.turns, "finish", fails_once)
    here.worker.start()
    call = await here.accept("echo")
    task = await here.ended(call)
    assert (task.state, task.turn.attempt) == ("done", 2)


async def test_a_task_that_was_lost_five_times_ends_as_failed(
    stage: Staging, opened: tuple[Place, Store]
) -> None:
    ran: list[int] = []

    async def counts(visit: Visit) -> str:
        ran.append(visit.call.record.attempt)
        return "well"

    here = stage(start=False, counts=counts)
    stopped, lost = await here.accept("counts"), await here.accept("counts")
    opened[0].rows("UPDATE turn SET attempt = 9 WHERE n = ?", stopped.record.n)
    for call, times in ((stopped, MOST_LOST - 1), (lost, MOST_LOST)):
        opened[0].rows("UPDATE task SET lost = ? WHERE turn = ?", times, call.record.n)
    here.worker.start()
    assert (await here.ended(stopped)).state == "done"
    assert (await here.ended(lost)).turn.code == "outcome_unknown"
    assert ran == [9]


async def test_a_sealed_call_that_cannot_be_read_ends_the_task(
    stage: Staging, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = stage(start=False, echo=echo)
    call = await here.accept("echo")
    lease = here.store.tasks.lease

    async def blank(*args: Any, **more: Any) -> Any:
        return [replace(task, call_bytes=b"") for task in await lease(*args, **more)]

    monkeypatch.setattr(here.store.tasks, "lease", blank)
    here.worker.start()
    assert (await here.ended(call)).turn.code == "internal"


async def test_a_cancelled_task_of_an_agent_that_is_gone_is_ended(stage: Staging) -> None:
    here = stage(start=False, echo=echo, gone=echo)
    call = await here.accept("gone")
    there = stage(echo=echo)
    await there.ended(await there.accept("echo", "others are not held up"))
    assert (await there.find(call)).state == "pending"
    await there.store.tasks.cancel(call.task or "", there.clock.wall_us())
    there.worker.wake()
    assert (await there.ended(call)).turn.code == "cancelled"


# ------------------------------------------------------------------------------------ progress


async def test_progress_is_told_and_the_last_word_is_always_written(stage: Staging) -> None:
    gate = asyncio.Event()

    async def works(visit: Visit) -> str:
        for n in range(500):
            visit.progress(n / 1000, f"step {n}")
        visit.progress(0.75, "x" * 1000)
        await gate.wait()
        return str(visit.task)

    here = stage(works=works)
    written: list[int] = []
    progress = here.store.tasks.progress

    async def counting(turn: Any, thousandths: int, note: str | None) -> None:
        written.append(thousandths)
        await progress(turn, thousandths, note)

    here.progress_writer._tasks = type("Counting", (), {"progress": staticmethod(counting)})()  # noqa: SLF001
    call = await here.accept("works")
    task = await here.seen(call, lambda task: task.progress == 750)
    assert task.note == "x" * 200
    assert len(written) <= 3  # hundreds of words were said
    gate.set()
    event = await last_event(here, call)
    assert not isinstance(event, Failed)


async def test_progress_of_what_is_no_task_has_no_effect_and_is_checked_all_the_same(
    stage: Staging,
) -> None:
    async def odd(visit: Visit) -> str:
        visit.progress(0.5)
        try:
            visit.progress(1.5)
        except ValueError as error:
            return f"{visit.task} {error}"
        return "accepted"

    here = stage(odd=odd)
    call = await here.gate.admit(claim("odd"))
    events = await here.journal.whole(call)
    assert "None progress is from 0 to 1" in str(events[0])


# ------------------------------------------------------------------------------------- deadline


async def test_the_time_of_an_agent_begins_when_its_task_runs(stage: Staging) -> None:
    deadlines: list[float | None] = []

    async def looks(visit: Visit) -> str:
        deadlines.append(visit.carnet.deadline)
        return "well"

    here = stage(start=False, looks=looks, seconds=10.0)
    call = await here.accept("looks")
    here.clock.advance(3600)
    here.worker.start()
    assert (await here.ended(call)).state == "done"
    assert deadlines == [here.clock.steady_us() / 1_000_000 + 10]


async def test_the_call_of_a_task_is_sealed_in_the_store_and_gone_at_its_end(
    stage: Staging, opened: tuple[Place, Store]
) -> None:
    here = stage(start=False, echo=echo)
    call = await here.accept("echo", "canary-in-the-call")
    [(sealed,)] = opened[0].rows("SELECT sealed FROM kept_call")
    assert sealed
    assert b"canary" not in bytes(sealed)
    here.worker.start()
    await here.ended(call)
    assert opened[0].rows("SELECT sealed FROM kept_call") == []


async def test_a_cancelled_task_that_is_asked_for_again_runs_under_its_id(
    stage: Staging, opened: tuple[Place, Store]
) -> None:
    here = stage(start=False, echo=echo, per_sender=1)
    call = await here.accept("echo", turn="conv_1.t0.echo")
    await here.store.tasks.cancel(call.task or "", here.clock.wall_us())
    here.worker.start()
    assert (await here.ended(call)).turn.code == "cancelled"
    again = await here.accept("echo", turn="conv_1.t0.echo")
    assert again.task == call.task
    assert (await here.seen(again, lambda task: task.state == "done")).cancelled is None
    taken = "SELECT name FROM purse WHERE name LIKE 'tasks/%' AND spent + reserved <> 0"
    assert opened[0].rows(taken) == []
