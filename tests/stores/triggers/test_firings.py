"""What is to be begun: held by one gateway at a time, and forgotten when it has ended."""

from carnet.stores.open import Store
from carnet.stores.triggers.firings import KEEP_US
from tests.stores.support.scenes import NOW, SECOND, Place
from tests.stores.triggers.scene import a_hook, a_person, a_schedule, receive


async def test_one_gateway_holds_a_firing_until_its_lease_runs_out(store: Store) -> None:
    who = await a_person(store, "alice")
    hook, firings = await a_hook(store, who), store.triggers.firings
    await receive(store, hook, "e", "k")
    until = NOW + 30 * SECOND
    assert await firings.lease("w1", until=until, limit=9, now=NOW - 1) == []
    (held,) = await firings.lease("w1", until=until, limit=9, now=NOW)
    assert (held.key, held.kind, held.name, held.person) == ("k", "webhook", "orders", who[0])
    assert (held.token, held.content, held.fence) == (who[1], "An order came.", 1)
    assert await firings.lease("w2", until=until, limit=9, now=until - 1) == []
    assert await firings.renew(held, until=until + SECOND)
    assert await firings.lease("w2", until=until, limit=9, now=until) == []
    (taken,) = await firings.lease("w2", until=until + SECOND, limit=9, now=until + SECOND)
    assert taken.attempts == 1
    for change in (
        firings.renew(held, until=until),
        firings.begun(held, "conv"),
        firings.end(held, code=None, now=NOW),
        firings.put_off(held, due=NOW),
    ):
        assert not await change
    assert await firings.begun(taken, "conv_1")
    assert await firings.end(taken, code=None, now=until)
    assert await firings.lease("w1", until=until, limit=9, now=until + 90 * SECOND) == []


async def test_what_ended_is_told_without_its_words_and_forgotten_later(
    store: Store, place: Place
) -> None:
    who = await a_person(store, "alice")
    hook, firings = await a_hook(store, who), store.triggers.firings
    await a_schedule(store, who, "orders")  # of the same name, and another thing
    for event in "ab":
        await receive(store, hook, event, event)
    first, second = await firings.lease("w", until=NOW + SECOND, limit=9, now=NOW)
    assert await firings.put_off(second, due=NOW + 5 * SECOND)
    assert await firings.begun(first, "conv_1")
    assert await firings.end(first, code=None, now=NOW)
    assert await firings.lease("w", until=NOW + SECOND, limit=9, now=NOW) == []
    (second,) = await firings.lease("w", until=NOW + SECOND, limit=9, now=NOW + 5 * SECOND)
    assert await firings.end(second, code="agent_not_found", now=NOW + SECOND)
    told = await firings.recent("webhook", who[0], "orders", 9)
    assert [(each.state, each.conversation, each.code, each.ended) for each in told] == [
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
    await store.triggers.firings.lease("w", until=NOW * 2, limit=9, now=NOW)
    await store.close()
    again = await place.start()
    assert len(await again.triggers.firings.lease("w", until=NOW * 2, limit=9, now=NOW)) == 1
    await again.close()
