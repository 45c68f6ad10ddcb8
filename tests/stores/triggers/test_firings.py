"""What is to be begun: held by one gateway at a time, and forgotten when it has ended."""

from carnet.ports.calls.triggers import Firing, FiringEnd, Room
from carnet.stores.open import Store
from carnet.stores.triggers.firings import KEEP_US
from tests.stores.support.scenes import NOW, SECOND, Place
from tests.stores.triggers.scene import a_hook, a_person, a_schedule, receive

DONE = FiringEnd(state="done", conversation="conv_1")
FAILED = FiringEnd(state="failed", conversation=None, code="agent_not_found")


async def take(store: Store, worker: str, *, until: int, now: int, each: int = 9) -> list[Firing]:
    room = Room(each, {})
    found = await store.triggers.firings.lease(worker, until=until, limit=9, room=room, now=now)
    return list(found)


async def test_one_gateway_holds_a_firing_until_its_lease_runs_out(store: Store) -> None:
    who = await a_person(store, "alice")
    hook, firings = await a_hook(store, who), store.triggers.firings
    await receive(store, hook, "e", "k")
    until = NOW + 30 * SECOND
    assert await take(store, "w1", until=until, now=NOW - 1) == []
    (held,) = await take(store, "w1", until=until, now=NOW)
    assert (held.key, held.kind, held.name, held.person) == ("k", "webhook", "orders", who[0])
    assert (held.token, held.content, held.fence) == (who[1], "An order came.", 1)
    assert await take(store, "w2", until=until, now=until - 1) == []
    assert await firings.renew(held, until=until + SECOND)
    assert await take(store, "w2", until=until, now=until) == []
    (taken,) = await take(store, "w2", until=until + SECOND, now=until + SECOND)
    assert taken.attempts == 1
    for change in (
        firings.renew(held, until=until),
        firings.begun(held, "conv"),
        firings.end(held, DONE, (), now=NOW),
        firings.put_off(held, due=NOW),
    ):
        assert not await change
    assert await firings.begun(taken, "conv_1")
    assert await firings.end(taken, DONE, (), now=until)
    assert await take(store, "w1", until=until, now=until + 90 * SECOND) == []


async def test_what_ended_is_told_without_its_words_and_forgotten_later(
    store: Store, place: Place
) -> None:
    who = await a_person(store, "alice")
    hook, firings = await a_hook(store, who), store.triggers.firings
    await a_schedule(store, who, "orders")  # of the same name, and another thing
    for event in "ab":
        await receive(store, hook, event, event)
    first, second = await take(store, "w", until=NOW + SECOND, now=NOW)
    assert await firings.put_off(second, due=NOW + 5 * SECOND)
    assert await firings.begun(first, "conv_1")
    assert await firings.end(first, DONE, (), now=NOW)
    assert await take(store, "w", until=NOW + SECOND, now=NOW) == []
    (second,) = await take(store, "w", until=NOW + SECOND, now=NOW + 5 * SECOND)
    assert await firings.end(second, FAILED, (), now=NOW + SECOND)
    found = await firings.recent("webhook", who[0], "orders", 9)
    assert [(each.state, each.conversation, each.code, each.ended) for each in found] == [
        ("failed", None, "agent_not_found", NOW + SECOND),
        ("fired", "conv_1", None, NOW),
    ]
    assert await firings.recent("schedule", who[0], "orders", 9) == []
    assert await firings.recent("webhook", who[0] + 1, "orders", 9) == []
    assert {row[0] for row in place.rows("SELECT content FROM firing")} == {""}
    place.clock.advance(KEEP_US / SECOND + 0.5)
    await store.triggers.keep()
    assert len(await firings.recent("webhook", who[0], "orders", 9)) == 1


async def test_a_sqlite_store_that_starts_again_lets_go_what_was_held(
    store: Store, place: Place
) -> None:
    hook = await a_hook(store, await a_person(store, "alice"))
    await receive(store, hook, "e", "k")
    await take(store, "w", until=NOW * 2, now=NOW)
    await store.close()
    again = await place.start()
    assert len(await take(again, "w", until=NOW * 2, now=NOW)) == 1
    await again.close()


async def test_of_each_person_a_few_are_taken_and_nobody_waits_behind_another(
    store: Store,
) -> None:
    alice, bob = await a_person(store, "alice"), await a_person(store, "bob")
    hers, his = await a_hook(store, alice), await a_hook(store, bob)
    for n in range(6):
        await receive(store, hers, f"e{n}", f"k{n}")
    await receive(store, his, "e", "k")
    firings, until = store.triggers.firings, NOW + SECOND
    room = Room(3, {alice[0]: 1})
    taken = await firings.lease("w", until=until, limit=9, room=room, now=NOW)
    assert [firing.key for firing in taken] == ["k0", "k1", "k"]
