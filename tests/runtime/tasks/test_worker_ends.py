"""The end of a task is told to the addresses that it has then, however it ends."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from carnet.core.call import Call
from carnet.core.messages.events import End, Waiting
from carnet.core.messages.output import Output
from carnet.ports.calls.tasks import Callback
from carnet.runtime.visit.visit import Visit
from carnet.stores.open import Store
from tests.guards.scene import target
from tests.runtime.tasks.stage import TaskStage, open_place
from tests.stores.support.scenes import Place, an_interrupt

LATE = Callback(url="https://late.example/hook", dialect="openai", created=1)


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[tuple[Place, Store]]:
    place, store = await open_place(tmp_path)
    yield place, store
    await store.close()


async def echo(visit: Visit) -> str:
    return visit.text


async def asks(_: Call, __: Output, /) -> End:
    return Waiting((an_interrupt(),))


async def test_an_address_that_is_named_while_a_task_waits_to_run_is_told_its_end(
    opened: tuple[Place, Store],
) -> None:
    here = TaskStage(opened[1], echo=echo)
    call = await here.accept("echo", "later")
    assert await here.store.tasks.add_callback(call.task or "", LATE)
    here.worker.start()
    await here.ended(call)
    (stored,) = await here.store.outbox.list(state="pending", limit=9)
    assert (stored.delivery.url, stored.delivery.task) == (LATE.url, call.task)
    assert json.loads(stored.delivery.body)["choices"][0]["message"]["content"] == "later"
    await here.close()


async def test_a_task_that_waits_for_an_answer_too_long_tells_that_it_failed(
    opened: tuple[Place, Store],
) -> None:
    place, store = opened
    here = TaskStage(store, more=[target("asks", agent=asks)])
    store.expiry.teller = here.worker.expired
    here.worker.start()
    call = await here.accept("asks")
    await store.tasks.add_callback(call.task or "", LATE)
    await here.seen(call, lambda task: task.turn.state == "waiting")
    assert await store.outbox.list(state=None, limit=9) == []  # which is no end
    place.clock.advance(25 * 3600)
    await store.upkeep()
    task = await here.ended(call)
    assert task.turn.code == "interrupt_expired"
    (stored,) = await store.outbox.list(state="pending", limit=9)
    assert stored.delivery.url == LATE.url
    assert json.loads(stored.delivery.body)["code"] == "interrupt_expired"
    await here.close()


async def test_a_task_that_cannot_be_read_any_more_is_told_in_the_dialect_of_its_record(
    opened: tuple[Place, Store],
) -> None:
    place, store = opened
    here = TaskStage(store, echo=echo)
    call = await here.accept("echo")
    await store.tasks.add_callback(call.task or "", replace(LATE, dialect=""))
    place.rows("UPDATE kept_call SET sealed = ?", b"\x00lost")
    place.rows("UPDATE turn SET dialect = 'openai'")
    here.worker.start()
    assert (await here.ended(call)).turn.code == "internal"
    (stored,) = await store.outbox.list(state="pending", limit=9)
    assert json.loads(stored.delivery.body)["error"]["code"] == "internal"
    await here.close()


async def test_a_task_that_is_cancelled_while_it_waits_for_an_answer_tells_so(
    opened: tuple[Place, Store],
) -> None:
    store = opened[1]
    here = TaskStage(store, more=[target("asks", agent=asks)])
    store.expiry.teller = here.worker.expired
    here.worker.start()
    call = await here.accept("asks")
    await store.tasks.add_callback(call.task or "", LATE)
    await here.seen(call, lambda task: task.turn.state == "waiting")
    assert await store.tasks.cancel(call.task or "", 1)
    await store.upkeep()
    assert (await here.ended(call)).turn.code == "cancelled"
    (stored,) = await store.outbox.list(state="pending", limit=9)
    assert json.loads(stored.delivery.body)["code"] == "cancelled"
    await here.close()
