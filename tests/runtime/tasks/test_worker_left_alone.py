"""What becomes of tasks that nobody here can run, and of what they were doing when let go."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from carnet.errors import OutcomeUnknown, StorageUnavailable
from carnet.ports.calls.steps import Step
from carnet.runtime.visit.visit import Visit
from carnet.stores.open import Store
from carnet.telemetry import CallNote
from carnet.testing.wait import until_so
from tests.runtime.tasks.stage import TaskStage, open_place
from tests.stores.support.scenes import Place


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[tuple[Place, Store]]:
    place, store = await open_place(tmp_path)
    yield place, store
    await store.close()


async def echo(visit: Visit) -> str:
    return visit.text


async def test_it_is_told_that_tasks_wait_for_an_agent_that_is_not_here(
    opened: tuple[Place, Store], caplog: pytest.LogCaptureFixture
) -> None:
    here = TaskStage(opened[1], echo=echo, removed=echo)
    call = await here.accept("removed")
    there = TaskStage(opened[1], echo=echo)
    with caplog.at_level(logging.WARNING, logger="carnet.tasks"):
        there.worker.start()
        await there.ended(await there.accept("echo"))
        await there.close()
    logged: list[Any] = [record for record in caplog.records if "not here" in record.message]
    assert [record.agent for record in logged] == ["removed"]
    assert (await there.find(call)).state == "pending"


async def test_a_task_that_the_worker_stumbles_over_waits_again(
    opened: tuple[Place, Store], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    here = TaskStage(opened[1], echo=echo)
    run, broken = here.journal.run, [True]

    async def stumbles_once(*args: Any) -> Any:
        if broken:
            broken.clear()
            raise RuntimeError("nobody thought of this")
        return await run(*args)

    monkeypatch.setattr(here.journal, "run", stumbles_once)
    here.worker.start()
    task = await here.ended(await here.accept("echo"))
    assert (task.state, task.turn.attempt, task.lost) == ("done", 2, 1)
    await until_so(lambda: here.worker.running == 0)
    await here.close()
    logged: list[Any] = [record for record in caplog.records if "taken up again" in record.message]
    assert [(line.attempt, line.lost, line.run) for line in logged] == [(2, 1, task.turn.run)]
    assert [line.task for line in logged] == [task.id[:8]]  # who knows all of it may poll


async def test_the_end_of_a_task_is_a_line_with_its_attempt_and_the_beginning_of_its_id(
    opened: tuple[Place, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[CallNote] = []
    monkeypatch.setattr("carnet.runtime.tasks.worker.note_call", notes.append)
    here = TaskStage(opened[1], echo=echo)
    here.worker.start()
    task = await here.ended(await here.accept("echo"))
    await here.close()
    (line,) = [json.loads(note.line()) for note in notes]
    assert (line["message"], line["attempt"], line["task"]) == ("task ended", 1, task.id[:8])
    assert task.id not in json.dumps(line)


async def test_a_task_whose_sealed_call_cannot_be_read_takes_no_place_any_more(
    opened: tuple[Place, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    place, store = opened
    here = TaskStage(store, echo=echo)
    lease = store.tasks.lease

    async def blank(*args: Any, **more: Any) -> Any:
        return [replace(task, call_bytes=b"") for task in await lease(*args, **more)]

    monkeypatch.setattr(store.tasks, "lease", blank)
    call = await here.accept("echo")
    taken = "SELECT spent FROM purse WHERE name LIKE 'tasks/%'"
    assert place.rows(taken) == [(1,)]
    here.worker.start()
    assert (await here.ended(call)).turn.code == "internal"
    assert place.rows(taken) == [(0,)]
    await here.close()


async def test_a_step_that_is_being_kept_while_its_task_is_let_go_is_not_done_again(
    opened: tuple[Place, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, done = opened[1], list[int]()
    keep, keeps = store.steps.keep, asyncio.Event()

    async def slowly(turn: Any, step: Step) -> None:
        keeps.set()
        await asyncio.sleep(0.2)
        await keep(turn, step)

    async def once(visit: Visit) -> Any:
        async def effect() -> int:
            done.append(1)
            return len(done)

        return str(await visit.step("effect", effect))

    monkeypatch.setattr(store.steps, "keep", slowly)
    here = TaskStage(store, agent=once)
    here.worker.start()
    call = await here.accept("agent")
    await asyncio.wait_for(keeps.wait(), 30)
    await here.close()
    assert (await here.find(call)).state == "pending"
    there = TaskStage(store, agent=once)
    there.worker.start()
    assert (await there.ended(call)).state == "done"
    assert done == [1]
    await there.close()


async def test_a_step_is_kept_although_the_store_was_away_for_a_moment(
    opened: tuple[Place, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, done = opened[1], list[int]()
    keep, away = store.steps.keep, [StorageUnavailable(), OutcomeUnknown()]

    async def flickers(turn: Any, step: Step) -> None:
        if away:
            raise away.pop()
        await keep(turn, step)

    async def once(visit: Visit) -> str:
        return str(await visit.step("effect", done.append, 1))

    monkeypatch.setattr(store.steps, "keep", flickers)
    here = TaskStage(store, agent=once)
    here.worker.start()
    assert (await here.ended(await here.accept("agent"))).state == "done"
    assert done == [1]
    await here.close()
