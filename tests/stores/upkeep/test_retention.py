"""What a store forgets by itself, and what `prune` forgets with the turns."""

import asyncio

from carnet.ports.calls.steps import Step
from carnet.ports.calls.turns import Quota, Use
from carnet.ports.world.outbox import Outcome
from carnet.stores.open import Store
from carnet.stores.upkeep.retention import HOUR, CleanupCounts, Pruned
from tests.stores.support.scenes import (
    NOW,
    Place,
    a_claim,
    a_delivery,
    a_finish,
    a_task,
    claimed,
    finished,
    leased,
)

TODAY = "2027-01-15"  # where the clock stands


async def done_task(store: Store, name: str, now: int) -> None:
    await store.turns.claim(a_task(name, now=now))
    (task,) = await leased(store)
    await store.steps.keep(task.turn, Step(0, "only", b"1"))
    await store.turns.finish(a_finish(task.turn, is_task=True, now=now))


def quota_names(place: Place) -> list[str]:
    return [name for (name,) in place.rows("SELECT name FROM purse ORDER BY name")]


async def test_an_ended_task_is_forgotten_by_the_upkeep_after_a_day(
    store: Store, place: Place
) -> None:
    await store.upkeep()
    now = place.clock.wall_us()
    await done_task(store, "old", now)
    await store.turns.claim(a_task("waiting", now=now))
    place.clock.advance(23 * 3600)
    await store.upkeep()
    assert await store.tasks.find("task-old") is not None
    place.clock.advance(3601)
    await store.upkeep()
    assert await store.tasks.find("task-old") is None
    assert await store.tasks.find("task-waiting") is not None


async def test_a_task_is_forgotten_with_the_addresses_that_were_told(
    store: Store, place: Place
) -> None:
    now = place.clock.wall_us()
    await done_task(store, "old", now)
    await store.turns.claim(a_task("waiting", now=now))
    assert await store.tasks.forget(now + 1) == 1
    found = "SELECT k.id FROM callback b LEFT JOIN task k ON k.turn = b.turn"
    assert place.rows(found) == [("task-waiting",)]


async def test_deliveries_are_forgotten_a_month_after_their_end(store: Store, place: Place) -> None:
    now = place.clock.wall_us()
    await store.outbox.put([a_delivery("1"), a_delivery("2")], now)
    (first,) = await store.outbox.lease(now, until=now + 1, at_most=1, per_receiver=1)
    await store.outbox.mark(first, Outcome(state="dead", now=now))
    place.clock.advance(29 * 86_400)
    assert await store._cleanup.forget() == CleanupCounts()  # noqa: SLF001
    place.clock.advance(86_401)
    assert await store._cleanup.forget() == CleanupCounts(deliveries=1)  # noqa: SLF001
    assert await store.outbox.find("msg_2") is not None


async def test_quotas_of_earlier_days_and_of_no_task_are_forgotten(
    store: Store, place: Place
) -> None:
    place.clock.advance((NOW - place.clock.wall_us()) / 1_000_000)
    day_before, next_day = "2027-01-14", "2027-01-16"
    used = tuple(
        Use(quota, amount)
        for quota, amount in (
            (f"tokens/{day_before}/echo/b", 5),
            ("tokens/1999-12-31/echo/b", 5),
            (f"tokens/{TODAY}/echo/b", 5),
            (f"tokens/{next_day}/echo/b", 5),
            ("tasks/echo/ended", -1),
            ("token:alice", 0),
        )
    )
    quotas = [Quota(name=f"tasks/echo/{name}", limit=5, take=1) for name in ("ended", "b")]
    turn = claimed(await store.turns.claim(a_claim(quotas=tuple(quotas))))
    await store.turns.finish(a_finish(turn, uses=used))
    forgotten = await store._cleanup.forget()  # noqa: SLF001
    assert forgotten == CleanupCounts(quotas=3)
    assert quota_names(place) == [
        "tasks/echo/b",
        "token:alice",
        f"tokens/{TODAY}/echo/b",
        f"tokens/{next_day}/echo/b",
    ]


async def test_many_old_quotas_are_forgotten_in_pieces(store: Store, place: Place) -> None:
    place.clock.advance((NOW - place.clock.wall_us()) / 1_000_000)
    turn = claimed(await store.turns.claim(a_claim()))
    many = [Use(f"tokens/2026-01-01/echo/{i}", 1) for i in range(450)]
    many += [Use(f"tasks/echo/{i}", 1 - i % 2) for i in range(450)]
    await store.turns.finish(a_finish(turn, uses=tuple(many), debits=()))
    place.rows("UPDATE purse SET spent = 0 WHERE name LIKE 'tasks/%1'")
    await asyncio.gather(
        store._cleanup.forget(),  # noqa: SLF001
        store._cleanup.forget(),  # noqa: SLF001
    )
    left = quota_names(place)
    assert all(name.startswith("tasks/") for name in left)
    assert place.rows("SELECT COUNT(*) FROM purse WHERE spent = 0") == [(0,)]
    assert len(left) == 225


async def test_prune_takes_tasks_and_steps_with_their_turns(store: Store, place: Place) -> None:
    now = place.clock.wall_us()
    await done_task(store, "old", now)
    kept = claimed(await store.turns.claim(a_claim("running", now=now)))
    await store.steps.keep(kept, Step(0, "only", b"1"))
    place.clock.advance(31 * 86_400)
    await finished(store, "new", now=place.clock.wall_us())
    gone = await store.prune(turn_days=30, event_days=30)
    assert gone == Pruned(turns=1, events=2, runs=1, tasks=1)
    assert place.rows("SELECT turn FROM step") == [(kept.n,)]
    assert place.rows("SELECT COUNT(*) FROM task") == [(0,)]


async def test_prune_takes_tasks_and_steps_with_the_events_they_need(
    store: Store, place: Place
) -> None:
    now = place.clock.wall_us()
    await done_task(store, "old", now)
    place.clock.advance(8 * 86_400)
    await finished(store, "new", now=place.clock.wall_us())
    gone = await store.prune(turn_days=30, event_days=7)
    assert gone == Pruned(events=2, tasks=1)
    assert place.rows("SELECT COUNT(*) FROM step") == [(0,)]
    claimed(await store.turns.claim(a_task("old")))  # a new turn, and a new task


async def test_a_store_may_keep_its_tasks_for_less_than_a_day(place: Place) -> None:
    store = await place.open(task_hours=2)
    await store.start()
    now = place.clock.wall_us()
    await done_task(store, "old", now)
    place.clock.advance(2 * HOUR / 1_000_000 + 1)
    await store.prune(turn_days=30, event_days=30)
    assert await store.tasks.find("task-old") is None
    await store.close()


async def test_the_secret_shared_with_an_identity_is_its_own_and_stays(place: Place) -> None:
    store = await place.open(exclusive=False)
    secret = store.webhook_secret("agent://b.example")
    assert len(secret) == 32
    assert secret != store.webhook_secret("agent://c.example")
    await store.close()
    store = await place.open(exclusive=False)
    assert store.webhook_secret("agent://b.example") == secret
    await store.close()
