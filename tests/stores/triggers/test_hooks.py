"""Hooks as they are kept: their secrets, and that an event is taken once."""

import asyncio

import pytest

from carnet.core.people.identity import Secret
from carnet.errors import (
    StorageUnavailable,
    TooManyFirings,
    TooManyTriggers,
    TriggerExists,
    TriggerPaused,
)
from carnet.stores.open import Store
from tests.stores.support.scenes import NOW, SECOND, Place
from tests.stores.triggers.scene import a_hook, a_person, receive

KEYS = "SELECT key FROM firing ORDER BY n"
SEEN = "SELECT event FROM hook_seen ORDER BY event"


async def test_a_hook_is_its_owners_and_nobody_elses(store: Store) -> None:
    alice, bob = await a_person(store, "alice"), await a_person(store, "bob")
    hooks = store.triggers.hooks
    hers, his = await a_hook(store, alice), await a_hook(store, bob)
    assert await hooks.own.find(alice[0], "orders") == hers
    assert await hooks.own.list(bob[0]) == [his]
    await a_hook(store, alice, "other")
    assert await hooks.own.find(bob[0], "other") is None
    assert not await hooks.own.pause(bob[0], "other", NOW)
    assert not await hooks.own.resume(bob[0], "other", token=bob[1])
    assert not await hooks.own.delete(bob[0], "other")
    with pytest.raises(TriggerExists):
        await a_hook(store, alice)
    await a_hook(store, alice, "third")
    with pytest.raises(TooManyTriggers):
        await a_hook(store, alice, "fourth")


async def test_an_event_is_taken_once_however_many_copies_come_at_once(
    store: Store, place: Place
) -> None:
    hook = await a_hook(store, await a_person(store, "alice"))
    taken = await asyncio.gather(*(receive(store, hook, "e", f"k{n}") for n in range(100)))
    assert sum(taken) == 1
    assert place.rows(KEYS) == [(f"k{taken.index(True)}",)]
    assert await receive(store, hook, "other", "x")


async def test_an_event_is_remembered_until_it_expires(store: Store, place: Place) -> None:
    hook = await a_hook(store, await a_person(store, "alice"))
    assert await receive(store, hook, "e", "a", expires=NOW + SECOND)
    assert not await receive(store, hook, "e", "b", now=NOW + SECOND - 1)
    assert await receive(store, hook, "e", "c", now=NOW + SECOND, expires=NOW + 2 * SECOND)
    assert place.rows(KEYS) == [("a",), ("c",)]
    place.clock.advance(1)
    assert await store.triggers.forget() == 0
    place.clock.advance(1)
    assert await store.triggers.forget() == 1
    assert place.rows(SEEN) == []


async def test_one_that_is_paused_or_gone_or_full_keeps_nothing(store: Store, place: Place) -> None:
    who = await a_person(store, "alice")
    hook, hooks = await a_hook(store, who), store.triggers.hooks
    assert await receive(store, hook, "e", "a", most=1)
    with pytest.raises(TooManyFirings) as refusal:
        await receive(store, hook, "f", "b", most=1)
    assert refusal.value.retry_after
    assert not await receive(store, hook, "e", "c", most=1)  # what is known is known
    assert await hooks.own.pause(who[0], "orders", NOW)
    with pytest.raises(TriggerPaused):
        await receive(store, hook, "f", "d")
    assert await hooks.own.resume(who[0], "orders", token=who[1])
    assert await receive(store, hook, "f", "e")
    assert await hooks.own.delete(who[0], "orders")
    assert (place.rows(KEYS), place.rows(SEEN)) == ([], [])
    with pytest.raises(TriggerPaused):
        await receive(store, hook, "g", "f")


async def test_a_former_secret_is_good_for_a_while(store: Store, place: Place) -> None:
    hook = await a_hook(store, await a_person(store, "alice"))
    hooks = store.triggers.hooks
    first, second = Secret("s" * 32), Secret("t" * 32)
    assert await hooks.secrets(hook, NOW) == [first]
    assert await hooks.rotate(hook, second, token=77, until=NOW + SECOND)
    assert await hooks.secrets(hook, NOW) == [second, first]
    assert await hooks.secrets(hook, NOW + SECOND) == [second]
    rotated = await hooks.own.find(hook.person, "orders")
    assert rotated is not None
    assert (rotated.previous_until, rotated.token) == (NOW + SECOND, 77)
    for row in place.rows("SELECT sealed, previous_sealed FROM hook"):
        assert b"ssss" not in bytes(row[0]) + bytes(row[1])
    await hooks.own.delete(hook.person, "orders")
    assert await hooks.secrets(hook, NOW) == []
    assert not await hooks.rotate(hook, first, token=77, until=NOW)


async def test_a_secret_opens_for_its_own_hook_alone(store: Store, place: Place) -> None:
    alice, bob = await a_person(store, "alice"), await a_person(store, "bob")
    hers, _ = await a_hook(store, alice), await a_hook(store, bob)
    place.rows("UPDATE hook SET sealed = (SELECT h.sealed FROM hook h WHERE h.n <> hook.n)")
    with pytest.raises(StorageUnavailable):
        await store.triggers.hooks.secrets(hers, NOW)


async def test_a_person_who_ended_has_none_that_listens(store: Store) -> None:
    who = await a_person(store, "alice")
    hook = await a_hook(store, who)
    ended = await store.people.end("alice", NOW)
    assert ended is not None
    assert ("hook", "orders") in {(thing.kind, thing.name) for thing in ended.things}
    with pytest.raises(TriggerPaused):
        await receive(store, hook, "e", "a")
