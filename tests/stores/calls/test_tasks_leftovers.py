"""What is left of tasks and deliveries when others gave them up, or are about to forget them."""

import asyncio
from typing import Any

import asyncpg

from carnet.core.people.identity import Payer
from carnet.ports.calls.turns import Quota, end_unknown
from carnet.ports.world.outbox import Outcome
from carnet.stores.open import Store
from carnet.stores.secrets import secrets_file
from tests.stores.support.scenes import (
    ALICE,
    NOW,
    SECOND,
    Place,
    a_claim,
    a_delivery,
    a_finish,
    a_task,
    claimed,
    leased,
)

QUOTA = "tasks/echo/agent://b.example"


async def test_a_task_that_an_earlier_version_gave_up_waits_again_at_the_next_start(
    place: Place,
) -> None:
    store = await place.start()
    await store.turns.claim(a_task())
    (task,) = await leased(store)
    payer = Payer(account=ALICE.account, quota="")
    await store.turns.finish(end_unknown(task.turn, payer, now=NOW))  # as it would any turn
    call = claimed(await store.turns.claim(a_claim("call")))
    await store.turns.finish(end_unknown(call, payer, now=NOW))
    await store.close()
    store = await place.open()
    assert await store.start() == 1
    (again,) = await leased(store)
    assert (again.id, again.lost, again.turn.attempt) == ("task-r1", 1, 2)
    assert (again.turn.ended, again.turn.code) == (None, None)
    assert (await store.turns.reload(call)).state == "unknown"
    await store.turns.finish(a_finish(again.turn, is_task=True))
    await store.close()
    store = await place.open()
    assert await store.start() == 0
    await store.close()


async def test_the_agents_are_named_for_which_tasks_wait(store: Store) -> None:
    assert not await store.tasks.waiting_for()
    for i, agent in enumerate(("b", "a", "b", "c")):
        await store.turns.claim(a_task(f"r{i}", agent=agent))
    await store.tasks.lease([("c", 1)])
    assert set(await store.tasks.waiting_for()) == {"a", "b"}


async def test_the_quota_of_a_task_is_known_although_its_sealed_call_cannot_be_opened(
    place: Place,
) -> None:
    store = await place.start()
    tokens = Quota(name="tokens/2027-01-15/echo/agent://b.example", limit=9)
    counted = Quota(name=QUOTA, limit=5, take=1)
    await store.turns.claim(a_task(quotas=(tokens, counted)))
    await store.turns.claim(a_task("r2"))
    await store.close()
    place.secrets.unlink()
    secrets_file.create(place.secrets)
    place.rows("DELETE FROM own_key")  # which cannot be opened either
    store = await place.start()
    first, second = await leased(store)
    assert (first.call_bytes, first.quota) == (b"", QUOTA)
    assert (second.call_bytes, second.quota) == (b"", None)
    await store.close()


async def test_a_task_of_postgres_that_waits_again_is_not_forgotten_in_that_moment(
    store: Store, place: Place
) -> None:
    await store.turns.claim(a_task())
    (task,) = await leased(store)
    await store.turns.finish(a_finish(task.turn, is_task=True, now=5))
    again = "UPDATE task SET ended = NULL WHERE id = 'task-r1'"  # as a claim does
    assert await _meanwhile(place, again, store.tasks.forget(6)) == 0
    assert await store.tasks.find("task-r1") is not None
    await store.turns.reload(task.turn)


async def test_a_delivery_of_postgres_that_is_replayed_is_not_forgotten_in_that_moment(
    store: Store, place: Place
) -> None:
    await store.outbox.put([a_delivery()], 5)
    (stored,) = await store.outbox.lease(5, until=6, at_most=1, per_receiver=1)
    await store.outbox.mark(stored, Outcome(state="delivered", now=5))
    again = "UPDATE outbox SET state = 'pending', ended = NULL"
    assert await _meanwhile(place, again, store.outbox.forget(6)) == 0
    assert await store.outbox.find("msg_1") is not None


async def _meanwhile(place: Place, change: str, forgetting: Any) -> Any:  # noqa: ANN401, RUF100
    """Change a row in a transaction that ends after somebody else has begun to forget it."""
    outside = await asyncpg.connect(place.postgres)
    async with outside.transaction():
        assert await outside.execute(change) == "UPDATE 1"
        waiting = asyncio.ensure_future(forgetting)
        await asyncio.wait([waiting], timeout=0.3)
    await outside.close()
    return await waiting


async def test_a_receiver_that_asked_for_a_long_pause_is_not_called_after_a_shorter_one(
    store: Store, place: Place
) -> None:
    await store.outbox.put([a_delivery("1"), a_delivery("2")], NOW)
    until, due = NOW + 60 * SECOND, NOW + 10 * SECOND
    both = await store.outbox.lease(NOW, until=until, at_most=2, per_receiver=2)
    for stored, pause in zip(both, (3600, 5), strict=True):
        late = Outcome(state="pending", now=NOW, due=due, pause_until=NOW + pause * SECOND)
        assert await store.outbox.mark(stored, late)
    rows = place.rows("SELECT paused_until, failures FROM receiver")
    assert rows == [(NOW + 3600 * SECOND, 2)]


async def test_two_deliveries_of_postgres_that_are_answered_410_at_once_do_not_wait_for_each_other(
    store: Store, place: Place
) -> None:
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    before = place.rows(deadlocks)
    for i in range(4):
        url = f"https://b.example/{i}"
        await store.outbox.put([a_delivery(f"{i}{c}", url=url) for c in "abc"], NOW)
        both = await store.outbox.lease(NOW, until=NOW + SECOND, at_most=2, per_receiver=2)
        end = Outcome(state="dead", now=NOW, status=410, gone=True)
        marked = await asyncio.gather(*(store.outbox.mark(stored, end) for stored in both))
        assert sorted(marked) == [False, True]
    assert place.rows("SELECT state, COUNT(*) FROM outbox GROUP BY state") == [("dead", 12)]
    assert place.rows(deadlocks) == before


async def test_who_answers_is_not_held_up_by_many_that_fail(store: Store, place: Place) -> None:
    hosts = [f"https://h{i}.example:443" for i in range(4)]
    for i, host in enumerate(hosts):
        await store.outbox.put([a_delivery(str(i), receiver=host)], NOW + i)
    for host in hosts[:3]:
        place.rows("INSERT INTO receiver VALUES (?, ?, 3)", host, NOW)
    later = NOW + 10
    taken = await store.outbox.lease(later, until=later + 9, at_most=2, per_receiver=2)
    assert [stored.delivery.id for stored in taken] == ["msg_3", "msg_0"]


async def test_the_failures_of_a_receiver_are_forgotten_with_its_deliveries(
    store: Store, place: Place
) -> None:
    place.rows("INSERT INTO receiver (name, paused_until, failures) VALUES ('old', ?, 3)", NOW)
    place.rows("INSERT INTO receiver (name, paused_until, failures) VALUES ('new', ?, 3)", NOW + 9)
    await store.outbox.forget(NOW + 1)
    assert place.rows("SELECT name FROM receiver") == [("new",)]


async def test_a_task_whose_row_is_damaged_comes_without_its_call_and_holds_up_no_other(
    store: Store, place: Place
) -> None:
    await store.turns.claim(a_task("r1", quotas=(Quota(name=QUOTA, limit=5, take=1),)))
    await store.turns.claim(a_task("r2"))
    await store.turns.claim(a_task("r3"))
    for name, sealed in (("r1", bytes(range(255, 0, -1))), ("r3", b"")):
        place.rows(
            "UPDATE kept_call SET sealed = ? WHERE turn = (SELECT turn FROM task WHERE id = ?)",
            sealed,
            f"task-{name}",
        )
    found = {task.id: (task.call_bytes, task.quota) for task in await leased(store, most=9)}
    assert found["task-r1"] == found["task-r3"] == (b"", None)
    assert found["task-r2"][0] != b""
