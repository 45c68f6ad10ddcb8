"""Schedules as they are kept: whose they are, and that a tick is written down once."""

import asyncio

import pytest
from msgspec.structs import replace

from carnet.core.triggers.ticks import Due
from carnet.errors import TooManyFirings, TooManyTriggers, TriggerExists
from carnet.ports.calls.triggers import Schedule
from carnet.ports.world.outbox import Delivery
from carnet.stores.open import Store
from tests.stores.support.scenes import NOW, SECOND, Place
from tests.stores.triggers.scene import MOST, a_firing, a_person, a_schedule

SECONDS = NOW // SECOND
NOTICE = Delivery(
    id="msg_1",
    kind="notice",
    url="https://n.example/",
    receiver="n",
    body=b"{}",
    secret_of="notify",
)
FIRINGS = "SELECT key, tick, state, agent, content FROM firing ORDER BY n"


async def tick(store: Store, schedule: Schedule, due: Due, most: int = 9) -> int | None:
    """How many begin nothing, of which a notice tells; None if it stands elsewhere."""

    def notices(at: int) -> list[Delivery]:
        return [replace(NOTICE, id=f"msg_{at}")]

    return await store.triggers.schedules.tick(schedule, due, most=most, now=NOW, notices=notices)


async def test_a_schedule_is_its_owners_and_nobody_elses(store: Store) -> None:
    alice, bob = await a_person(store, "alice"), await a_person(store, "bob")
    schedules = store.triggers.schedules
    hers, his = await a_schedule(store, alice), await a_schedule(store, bob)  # of the same name
    assert hers.n != his.n
    assert await schedules.own.find(alice[0], "digest") == hers
    assert await schedules.own.list(bob[0]) == [his]
    assert not await schedules.own.delete(bob[0], "other")
    await a_schedule(store, alice, "other")
    assert await schedules.own.find(bob[0], "other") is None
    assert not await schedules.own.pause(bob[0], "other", NOW)
    assert not await schedules.own.resume(bob[0], "other", token=bob[1])
    assert not await schedules.own.delete(bob[0], "other")
    assert len(await schedules.own.list(alice[0])) == 2


async def test_a_name_is_taken_once_and_there_are_as_many_as_may_be(store: Store) -> None:
    alice = await a_person(store, "alice")
    await a_schedule(store, alice)
    with pytest.raises(TriggerExists):
        await a_schedule(store, alice)
    for name in ("b", "c"):
        await a_schedule(store, alice, name)
    with pytest.raises(TooManyTriggers) as refusal:
        await a_schedule(store, alice, "d")
    assert refusal.value.facts == {"limit": MOST}
    await a_schedule(store, await a_person(store, "bob"))  # of somebody else's there are none


async def test_a_tick_is_written_down_once_and_moves_the_schedule_on(
    store: Store, place: Place
) -> None:
    schedule = await a_schedule(store, await a_person(store, "alice"))
    schedules = store.triggers.schedules
    assert await schedules.due(NOW - 1, limit=9) == []
    assert await schedules.due(NOW, limit=9) == [schedule]
    due = Due((SECONDS - 60, SECONDS), following=SECONDS + 60)
    found = await asyncio.gather(*(tick(store, schedule, due) for _ in range(8)))
    assert sorted(found, key=str) == [0] + [None] * 7
    assert [(row[1], *row[2:]) for row in place.rows(FIRINGS)] == [
        (NOW - 60 * SECOND, "due", "echo", "Write it."),
        (NOW, "due", "echo", "Write it."),
    ]
    moved = await schedules.own.find(schedule.person, "digest")
    assert moved is not None
    assert moved.next == NOW + 60 * SECOND
    assert await tick(store, moved, Due(following=None)) == 0
    assert await schedules.due(NOW * 2, limit=9) == []


async def test_no_more_is_to_begin_than_may_be(store: Store, place: Place) -> None:
    schedule = await a_schedule(store, await a_person(store, "alice"))
    due = Due(tuple(SECONDS + n for n in range(5)), following=SECONDS + 60)
    assert await tick(store, schedule, due, most=2) == 3
    assert [row[2] for row in place.rows(FIRINGS)] == ["due"] * 2 + ["dropped"] * 3
    notice = f"msg_{(SECONDS + 2) * SECOND}"  # of the first of those that follow one another
    assert place.rows("SELECT id, state FROM outbox") == [(notice, "pending")]
    assert [row[4] for row in place.rows(FIRINGS)] == ["Write it."] * 2 + [""] * 3
    with pytest.raises(TooManyFirings):
        await store.triggers.schedules.fire(schedule, a_firing("now"), most=2)
    await store.triggers.schedules.fire(schedule, a_firing("now"), most=3)
    assert place.rows(FIRINGS)[-1][0] == "now"


async def test_one_that_is_paused_or_gone_is_never_due(store: Store, place: Place) -> None:
    who = await a_person(store, "alice")
    schedule, schedules = await a_schedule(store, who), store.triggers.schedules
    due = Due((SECONDS,), following=SECONDS + 60)
    assert await schedules.own.pause(who[0], "digest", NOW)
    assert await schedules.own.pause(who[0], "digest", NOW + 1)
    paused = await schedules.own.find(who[0], "digest")
    assert paused is not None
    assert paused.paused == NOW
    assert await schedules.due(NOW, limit=9) == []
    assert await tick(store, schedule, due) is None
    assert await schedules.own.resume(who[0], "digest", token=who[1], following=NOW + SECOND)
    assert await tick(store, schedule, due) is None  # it stands elsewhere
    await schedules.fire(schedule, a_firing("k"), most=9)
    assert await schedules.own.delete(who[0], "digest")
    assert place.rows(FIRINGS) == []
    assert await tick(store, schedule, due) is None


async def test_a_person_who_ended_has_none_that_runs(store: Store) -> None:
    who = await a_person(store, "alice")
    await a_schedule(store, who)
    ended = await store.people.end("alice", NOW)
    assert ended is not None
    assert ("schedule", "digest") in {(thing.kind, thing.name) for thing in ended.things}
    assert await store.triggers.schedules.due(NOW, limit=9) == []
    with pytest.raises(TooManyTriggers):  # and makes none
        await a_schedule(store, who, "late")
