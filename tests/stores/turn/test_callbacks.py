"""A task is told to several addresses, and an address that is gone is gone for its owner alone."""

from collections.abc import Callable, Sequence

import asyncpg
import pytest

from carnet.core.people.identity import Secret
from carnet.errors import Overloaded
from carnet.ports.calls.tasks import MOST_CALLBACKS, Callback
from carnet.ports.world.outbox import Delivery, Outcome
from carnet.stores.open import Store
from tests.stores.support.scenes import NOW, SECOND, Place, a_delivery, a_finish, a_task, leased

FIRST = Callback(url="https://b.example/hook", dialect="samvad", created=NOW)
SECOND_ONE = Callback(
    url="https://b.example/other",
    dialect="a2a",
    token="shown again",
    authorization=Secret("Bearer canary"),
    created=NOW + 1,
)


async def test_a_task_has_several_callbacks_each_in_its_own_words(
    store: Store, place: Place
) -> None:
    await store.turns.claim(a_task(dialect="samvad"))
    assert await store.tasks.callbacks("task-r1") == [FIRST]
    assert await store.tasks.add_callback("task-r1", SECOND_ONE)
    first, second = await store.tasks.callbacks("task-r1")
    assert (first, second.place, second.authorization) == (FIRST, 1, SECOND_ONE.authorization)
    assert (second.url, second.dialect, second.token) == (
        SECOND_ONE.url,
        SECOND_ONE.dialect,
        SECOND_ONE.token,
    )
    assert b"canary" not in repr(place.rows("SELECT * FROM callback")).encode()
    assert await store.tasks.remove_callback("task-r1", 0)
    assert not await store.tasks.remove_callback("task-r1", 0)
    assert [one.place for one in await store.tasks.callbacks("task-r1")] == [1]
    assert await store.tasks.callbacks("nobody's") == []


def telling(at_first: Callable[[], object]) -> Callable[[Sequence[Callback]], tuple[Delivery, ...]]:
    """Deliveries to addresses; when they are asked for the first time, something happens."""
    first = [at_first]

    def tell(callbacks: Sequence[Callback]) -> tuple[Delivery, ...]:
        deliveries = tuple(a_delivery(str(one.place), url=one.url) for one in callbacks)
        if first:
            first.pop()()
        return deliveries

    return tell


async def delivered_to(store: Store) -> set[str]:
    return {one.delivery.url for one in await store.outbox.list(state=None, limit=9)}


async def test_an_address_that_is_named_while_the_end_is_being_written_is_told_as_well(
    store: Store, place: Place
) -> None:
    await store.turns.claim(a_task())
    (task,) = await leased(store)
    add = "INSERT INTO callback (turn, place, url, created) VALUES (?, 1, 'https://late', 1)"
    tell = telling(lambda: place.rows(add, task.turn.n))
    ended = await store.turns.finish(a_finish(task.turn, is_task=True, tell=tell))
    assert ended.state == "done"
    assert await delivered_to(store) == {"https://b.example/hook", "https://late"}
    assert not await store.tasks.add_callback("task-r1", SECOND_ONE)


async def test_an_address_that_is_taken_back_while_the_end_is_being_written_is_not_told(
    store: Store, place: Place
) -> None:
    await store.turns.claim(a_task())
    await store.tasks.add_callback("task-r1", SECOND_ONE)
    (task,) = await leased(store)
    tell = telling(lambda: place.rows("DELETE FROM callback WHERE place = 0"))
    await store.turns.finish(a_finish(task.turn, is_task=True, tell=tell))
    assert await delivered_to(store) == {SECOND_ONE.url}


async def test_an_end_that_nobody_was_to_be_told_of_is_told_to_who_was_named_meanwhile(
    store: Store,
) -> None:
    await store.turns.claim(a_task())
    await store.tasks.remove_callback("task-r1", 0)
    (task,) = await leased(store)
    asked: list[Sequence[Callback]] = []

    def tell(callbacks: Sequence[Callback]) -> tuple[Delivery, ...]:
        asked.append(callbacks)
        return (a_delivery("0", url=callbacks[0].url),)

    ended = a_finish(task.turn, is_task=True, has_callback=False, tell=tell)
    assert await store.tasks.add_callback("task-r1", SECOND_ONE)
    assert (await store.turns.finish(ended)).state == "done"
    assert [[one.url for one in callbacks] for callbacks in asked] == [[SECOND_ONE.url]]
    assert await delivered_to(store) == {SECOND_ONE.url}


async def test_an_end_that_is_told_to_nobody_asks_for_no_deliveries(store: Store) -> None:
    await store.turns.claim(a_task())
    await store.tasks.remove_callback("task-r1", 0)
    (task,) = await leased(store)
    asked: list[Sequence[Callback]] = []
    tell = telling(lambda: asked.append(()))
    assert (await store.turns.finish(a_finish(task.turn, is_task=True, tell=tell))).state == "done"
    assert (asked, await delivered_to(store)) == ([], set())


async def test_the_call_that_was_kept_for_a_task_is_forgotten_when_a_later_attempt_answers_at_once(
    store: Store, place: Place
) -> None:
    await store.turns.claim(a_task())
    (task,) = await leased(store)
    again = await store.turns.finish(a_finish(task.turn, state="queued", is_task=True))
    assert (again.fence, place.rows("SELECT COUNT(*) FROM kept_call")) == (2, [(1,)])
    (task,) = await leased(store)
    await store.turns.finish(a_finish(task.turn, is_task=True, is_listed=True))
    assert place.rows("SELECT COUNT(*) FROM kept_call") == [(0,)]


async def test_an_address_in_postgres_is_changed_under_the_lock_that_an_end_takes(
    store: Store, place: Place
) -> None:
    await store.turns.claim(a_task())
    outside = await asyncpg.connect(place.postgres)
    async with outside.transaction():
        await outside.execute("SELECT n FROM run WHERE id = 'r1' FOR UPDATE")  # as an end does
        with pytest.raises(Overloaded):
            await store.tasks.add_callback("task-r1", SECOND_ONE)
        with pytest.raises(Overloaded):
            await store.tasks.remove_callback("task-r1", 0)
    await outside.close()
    assert await store.tasks.add_callback("task-r1", SECOND_ONE)
    assert await store.tasks.remove_callback("task-r1", 0)


async def test_a_task_has_so_many_callbacks_and_none_more_after_its_end(store: Store) -> None:
    await store.turns.claim(a_task())
    for _ in range(MOST_CALLBACKS - 1):
        assert await store.tasks.add_callback("task-r1", SECOND_ONE)
    assert not await store.tasks.add_callback("task-r1", SECOND_ONE)
    await store.turns.claim(a_task("r2"))
    tasks = {task.id: task for task in await leased(store)}
    await store.turns.finish(a_finish(tasks["task-r2"].turn, is_task=True))
    assert not await store.tasks.add_callback("task-r2", SECOND_ONE)
    assert not await store.tasks.add_callback("nobody's", SECOND_ONE)


async def test_a_task_that_is_sent_again_has_the_callback_of_the_last_time(store: Store) -> None:
    await store.turns.claim(a_task())
    await store.tasks.add_callback("task-r1", SECOND_ONE)
    (task,) = await leased(store)
    failed = {"state": "failed", "code": "cancelled", "retryable": True, "is_task": True}
    await store.turns.finish(a_finish(task.turn, **failed))
    await store.turns.claim(a_task(dialect="samvad"))
    assert await store.tasks.callbacks("task-r1") == [FIRST]


async def test_an_address_is_gone_for_the_owner_whose_delivery_it_refused(store: Store) -> None:
    theirs = a_delivery("2", secret_of="agent://c.example", receiver="https://b.example:443 c")
    await store.outbox.put([a_delivery(), theirs], NOW)
    stored = await store.outbox.lease(NOW, until=NOW + SECOND, at_most=9, per_receiver=9)
    (first,) = [one for one in stored if one.delivery.id == "msg_1"]
    await store.outbox.mark(first, Outcome(state="dead", now=NOW, gone=True))
    assert await store.outbox.is_gone(theirs.url, "agent://b.example")
    assert not await store.outbox.is_gone(theirs.url, "agent://c.example")
    await store.outbox.put([a_delivery("3"), a_delivery("4", secret_of="agent://c.example")], NOW)
    states = {one.delivery.id: one.state for one in await store.outbox.list(state=None, limit=9)}
    assert states == {"msg_1": "dead", "msg_2": "pending", "msg_3": "dead", "msg_4": "pending"}
    await store.outbox.replay(["msg_1"], NOW)
    assert not await store.outbox.is_gone(theirs.url, "agent://b.example")


async def test_an_address_that_was_gone_before_owners_were_kept_is_gone_for_all(
    store: Store, place: Place
) -> None:
    place.rows("INSERT INTO gone (owner, url, at) VALUES ('', 'https://b.example/hook', 1)")
    assert await store.outbox.is_gone("https://b.example/hook", "agent://anybody.example")
