"""Strangers in a store: remembered once, changed by themselves or by a person alone."""

import asyncio

from carnet.stores.open import Store

OLD, NEW, OTHER = (bytes([number]) * 32 for number in (1, 2, 3))
DOMAIN = "globex.example"


async def test_keys_are_remembered_at_first_use_and_whoever_was_faster_has_it(store: Store) -> None:
    assert await store.strangers.find(DOMAIN) is None
    keys = [frozenset({OLD}), frozenset({NEW})]
    meet = store.strangers.meet
    met = await asyncio.gather(*(meet(DOMAIN, each, by="a", most=9) for each in keys))
    assert met[0] == met[1]
    assert met[0] is not None
    assert met[0].keys in keys
    assert (met[0].offered, met[0].confirmed_by) == (None, None)
    assert await store.strangers.list() == [met[0]]


async def test_no_more_are_remembered_of_one_caller_than_may_be(store: Store) -> None:
    assert await store.strangers.meet(DOMAIN, frozenset(), by="a", most=1) is not None
    assert await store.strangers.meet("other.example", frozenset(), by="a", most=1) is None
    # What one caller has met is none of another's.
    assert await store.strangers.meet("third.example", frozenset(), by="b", most=1) is not None
    known = await store.strangers.meet(DOMAIN, frozenset({OLD}), by="a", most=1)
    assert known is not None
    assert known.keys == frozenset()


async def test_what_is_remembered_follows_from_what_was_so_alone(store: Store) -> None:
    await store.strangers.meet(DOMAIN, frozenset({OLD}), by="a", most=9)
    await store.strangers.follow(DOMAIN, frozenset({OTHER}), frozenset({NEW}))
    found = await store.strangers.find(DOMAIN)
    assert found is not None
    assert found.keys == {OLD}
    await store.strangers.follow(DOMAIN, frozenset({OLD}), frozenset({OLD, NEW}))
    found = await store.strangers.find(DOMAIN)
    assert found is not None
    assert found.keys == {OLD, NEW}


async def test_other_keys_count_once_a_person_has_confirmed_them(store: Store) -> None:
    await store.strangers.meet(DOMAIN, frozenset({OLD}), by="a", most=9)
    assert await store.strangers.confirm(DOMAIN, 7) is None
    await store.strangers.note_offer(DOMAIN, frozenset({NEW, OTHER}))
    found = await store.strangers.find(DOMAIN)
    assert found is not None
    assert found.keys == frozenset({OLD})
    assert found.offered == frozenset({NEW, OTHER})
    confirmed = await store.strangers.confirm(DOMAIN, 7)
    assert confirmed is not None
    assert confirmed.keys == frozenset({NEW, OTHER})
    assert confirmed.offered is None
    assert confirmed.confirmed_by == 7
    assert await store.strangers.confirm("nobody.example", 7) is None
