"""Schedules as they are kept: whose they are, and that a tick is written down once."""

import asyncio

import pytest

from carnet.core.triggers.ticks import Due
from carnet.errors import TooManyFirings, TooManyTriggers, TriggerExists
from carnet.stores.open import Store
from tests.stores.support.scenes import NOW, SECOND, Place
from tests.stores.triggers.scene import MOST, a_firing, a_person, a_schedule

SECONDS = NOW // SECOND
FIRINGS = "SELECT key, tick, state, agent, content FROM firing ORDER BY n"


async def test_a_schedule_is_its_owners_and_nobody_elses(store: Store) -> None:
    alice, bob = await a_person(store, "alice"), await a_person(store, "bob")
    schedules = store.triggers.schedules
    hers, his = await a_schedule(store, alice), await a_schedule(store, bob)  # of the same name
    assert hers.n != his.n
    assert await schedules.find(alice[0], "digest") == hers
    assert await schedules.list(bob[0]) == [his]
    assert not await schedules.delete(bob[0], "other")
    await a_schedule(store, alice, "other")
    assert await schedules.find(bob[0], "other") is None
    assert not await schedules.pause(bob[0], "other", NOW)
    assert not await schedules.resume(bob[0], "other", None)
    assert not await schedules.delete(bob[0], "other")
    assert len(await schedules.list(alice[0])) == 2


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
    found = await asyncio.gather(*(schedules.tick(schedule, due, most=9) for _ in range(8)))
    assert sorted(found) == [False] * 7 + [True]
    assert [(row[1], *row[2:]) for row in place.rows(FIRINGS)] == [
        (NOW - 60 * SECOND, "due", "echo", "Write it."),
        (NOW, "due", "echo", "Write it."),
    ]
    moved = await schedules.find(schedule.person, "digest")
    assert moved is not None
    assert moved.next == NOW + 60 * SECOND
    assert await schedules.tick(moved, Due(following=None), most=9)
    assert await schedules.due(NOW * 2, limit=9) == []


async def test_no_more_is_to_begin_than_may_be(store: Store, place: Place) -> None:
    schedule = await a_schedule(store, await a_person(store, "alice"))
    due = Due(tuple(SECONDS + n for n in range(5)), following=SECONDS + 60)
    assert await store.triggers.schedules.tick(schedule, due, most=2)
    assert len(place.rows(FIRINGS)) == 2
    with pytest.raises(TooManyFirings):
        await store.triggers.schedules.fire(schedule, a_firing("now"), most=2)
    await store.triggers.schedules.fire(schedule, a_firing("now"), most=3)
    assert place.rows(FIRINGS)[-1][0] == "now"


async def test_one_that_is_paused_or_gone_is_never_due(store: Store, place: Place) -> None:
    who = await a_person(store, "alice")
    schedule, schedules = await a_schedule(store, who), store.triggers.schedules
    due = Due((SECONDS,), following=SECONDS + 60)
    assert await schedules.pause(who[0], "digest", NOW)
    assert await schedules.pause(who[0], "digest", NOW + 1)
    paused = await schedules.find(who[0], "digest")
    assert paused is not None
    assert paused.paused == NOW
    assert await schedules.due(NOW, limit=9) == []
    assert not await schedules.tick(schedule, due, most=9)
    assert await schedules.resume(who[0], "digest", NOW + SECOND)
    assert not await schedules.tick(schedule, due, most=9)  # it stands elsewhere
    await schedules.fire(schedule, a_firing("k"), most=9)
    assert await schedules.delete(who[0], "digest")
    assert place.rows(FIRINGS) == []
    assert not await schedules.tick(schedule, due, most=9)


async def test_a_person_who_ended_has_none_that_runs(store: Store) -> None:
    who = await a_person(store, "alice")
    await a_schedule(store, who)
    ended = await store.people.end("alice", NOW)
    assert ended is not None
    assert ("schedule", "digest") in {(thing.kind, thing.name) for thing in ended.things}
    assert await store.triggers.schedules.due(NOW, limit=9) == []
    with pytest.raises(TooManyTriggers):  # and makes none
        await a_schedule(store, who, "late")
