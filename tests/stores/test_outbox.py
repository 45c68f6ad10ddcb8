"""Webhook deliveries: written with an end, leased by receiver, delivered or dead at last."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from carnet.ports.calls.turns import Fenced
from carnet.ports.world.outbox import Outcome, StoredDelivery
from carnet.stores import outbox
from carnet.stores.open import Store
from tests.stores.support import servers
from tests.stores.support.scenes import NOW, SECOND, Place, a_claim, a_delivery, a_finish, claimed

OWNER = "agent://b.example"

UNTIL = NOW + 60 * SECOND
DEAD_HOST = "https://dead.example:443"


async def lease(
    store: Store, now: int = NOW, *, at_most: int = 16, per_receiver: int = 2
) -> list[StoredDelivery]:
    until = now + 60 * SECOND
    found = await store.outbox.lease(now, until=until, at_most=at_most, per_receiver=per_receiver)
    return list(found)


def names(deliveries: list[StoredDelivery]) -> list[str]:
    return [stored.delivery.id for stored in deliveries]


def delivered(now: int = NOW) -> Outcome:
    return Outcome(state="delivered", now=now, status=200)


def failed(now: int = NOW, *, due: int = NOW, pause: int | None = None) -> Outcome:
    return Outcome(state="pending", now=now, due=due, status=503, reason="no", pause_until=pause)


async def put(store: Store, count: int, receiver: str = "https://b.example:443") -> None:
    first = receiver[8:11]
    deliveries = [a_delivery(f"{first}{i}", receiver=receiver) for i in range(count)]
    await store.outbox.put(deliveries, NOW)


async def test_a_delivery_is_written_with_the_end_it_tells_and_once(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    end = a_finish(turn, deliveries=(a_delivery("1"), a_delivery("2", learned=False, task=None)))
    assert await store.outbox.find("msg_1") is None
    await store.turns.finish(end)
    with pytest.raises(Fenced):
        await store.turns.finish(end)
    await store.outbox.put([a_delivery("1", body=b"other")], NOW + 5)
    first = await store.outbox.find("msg_1")
    assert first == StoredDelivery(n=1, delivery=a_delivery("1"), due=end.now, created=end.now)
    second = await store.outbox.find("msg_2")
    assert second is not None
    assert second.delivery == a_delivery("2", learned=False, task=None)


async def test_a_fenced_end_writes_no_delivery(store: Store, place: Place) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    await store.turns.finish(a_finish(turn))
    with pytest.raises(Fenced):
        await store.turns.finish(a_finish(turn, deliveries=(a_delivery(),)))
    assert place.rows("SELECT COUNT(*) FROM outbox") == [(0,)]


async def test_deliveries_are_leased_in_order_and_a_few_for_each_receiver(store: Store) -> None:
    await put(store, 5, "https://one.example:443")
    await put(store, 1, "https://two.example:443")
    await store.outbox.put([a_delivery("later")], NOW + 10 * SECOND)
    found = await lease(store)
    assert names(found) == ["msg_one0", "msg_one1", "msg_two0"]
    assert {stored.fence for stored in found} == {1}
    assert await lease(store) == []  # two are under way to the first
    assert await store.outbox.mark(found[0], delivered())
    assert names(await lease(store)) == ["msg_one2"]
    assert names(await lease(store, NOW + 10 * SECOND)) == ["msg_later"]


async def test_no_more_are_leased_than_there_is_room_for(store: Store) -> None:
    for i in range(6):
        await put(store, 2, f"https://{i}00.example:443")
    assert len(await lease(store, at_most=5)) == 5
    assert len(await lease(store, at_most=16)) == 7


async def test_a_delivery_whose_lease_has_run_out_is_leased_again_and_the_late_one_is_told(
    store: Store,
) -> None:
    await put(store, 1)
    (first,) = await lease(store)
    assert await store.outbox.next_due(NOW) == UNTIL
    assert await lease(store, UNTIL - 1) == []
    (second,) = await lease(store, UNTIL)
    assert (second.delivery, second.attempts, second.fence) == (first.delivery, 0, 2)
    assert not await store.outbox.mark(first, delivered())
    assert not await store.outbox.mark(
        first, Outcome(state="dead", now=NOW, pause_until=UNTIL, gone=True)
    )
    assert not await store.outbox.is_gone(first.delivery.url, OWNER)
    assert await store.outbox.mark(second, delivered(UNTIL + 1))
    found = await store.outbox.find("msg_b.e0")
    assert found is not None
    assert (found.state, found.attempts, found.ended) == ("delivered", 1, UNTIL + 1)
    assert found.status == 200
    assert not await store.outbox.mark(second, delivered())
    assert await store.outbox.next_due(NOW) is None


async def test_a_failing_receiver_is_paused_and_then_probed_with_one_delivery(store: Store) -> None:
    await put(store, 4)
    first, second = await lease(store)
    pause = NOW + 5 * SECOND
    assert await store.outbox.mark(first, failed(due=NOW + SECOND, pause=pause))
    assert await store.outbox.mark(second, failed(due=NOW + SECOND, pause=pause))
    assert await store.outbox.next_due(NOW) == pause
    assert await lease(store, pause - 1) == []
    (probe,) = await lease(store, pause)
    assert (probe.delivery.id, probe.failures) == ("msg_b.e2", 2)  # the one that is due first
    assert await lease(store, pause) == []
    assert await store.outbox.next_due(pause) == pause + 60 * SECOND
    assert await store.outbox.mark(probe, delivered(pause))
    found = await lease(store, pause)
    assert (names(found), found[0].failures) == (["msg_b.e3", "msg_b.e0"], 0)
    assert (found[1].attempts, found[1].status, found[1].reason) == (1, 503, "no")


async def test_a_receiver_that_is_down_holds_up_nobody_else(store: Store) -> None:
    await put(store, 30, DEAD_HOST)
    for stored in await lease(store):
        await store.outbox.mark(stored, failed(pause=UNTIL))
    await put(store, 1)
    assert names(await lease(store)) == ["msg_b.e0"]
    assert await store.outbox.next_due(NOW) == UNTIL


async def test_an_address_that_is_gone_gets_no_delivery_any_more(store: Store) -> None:
    same = "https://b.example:443"
    deliveries = [a_delivery("1"), a_delivery("2"), a_delivery("3", url="https://b.example/other")]
    await store.outbox.put(deliveries, NOW)
    first, _ = await lease(store)
    outcome = Outcome(state="dead", now=NOW + 1, status=410, reason="gone", gone=True)
    assert await store.outbox.mark(first, outcome)
    assert await store.outbox.is_gone("https://b.example/hook", OWNER)
    assert not await store.outbox.is_gone("https://b.example/other", OWNER)
    dead = await store.outbox.list(state="dead", limit=9)
    assert [(stored.delivery.id, stored.reason) for stored in dead] == [
        ("msg_2", outbox.GONE),
        ("msg_1", "gone"),
    ]
    await store.outbox.put([a_delivery("4")], NOW)
    turn = claimed(await store.turns.claim(a_claim()))
    await store.turns.finish(
        a_finish(turn, deliveries=(a_delivery("5"), a_delivery("6", url="https://c")))
    )
    for name, state in (("4", "dead"), ("5", "dead"), ("6", "pending")):
        found = await store.outbox.find(f"msg_{name}")
        assert found is not None
        assert found.state == state
        assert (found.ended is not None, found.reason) == (
            (True, outbox.GONE) if state == "dead" else (False, None)
        )
    assert names(await lease(store, UNTIL)) == ["msg_3", "msg_6"]
    assert same == a_delivery().receiver


async def test_deliveries_are_replayed_from_the_first_attempt_and_their_addresses_accepted_again(
    store: Store,
) -> None:
    await store.outbox.put([a_delivery("1"), a_delivery("2"), a_delivery("3")], NOW)
    first, second = await lease(store)
    gone = Outcome(state="dead", now=NOW, status=410, gone=True, pause_until=UNTIL)
    await store.outbox.mark(first, gone)
    assert not await store.outbox.mark(second, delivered())
    late = NOW + 100 * SECOND
    assert await store.outbox.replay(["msg_1", "msg_3", "msg_9"], late) == 2
    assert not await store.outbox.is_gone("https://b.example/hook", OWNER)
    again = await lease(store, late)
    assert names(again) == ["msg_1", "msg_3"]
    counts = [(stored.attempts, stored.created, stored.replayed) for stored in again]
    assert counts == [(0, NOW, late)] * 2
    assert [stored.failures for stored in again] == [0, 0]
    assert await store.outbox.replay(["msg_1"], late) == 0  # it is on its way
    assert await store.outbox.mark(again[0], delivered(late))
    assert await store.outbox.replay([], late) == 0
    found = await store.outbox.find("msg_2")
    assert found is not None
    assert found.state == "dead"


async def test_deliveries_are_listed_the_newest_first(store: Store) -> None:
    await put(store, 4)
    (first, _) = await lease(store)
    await store.outbox.mark(first, delivered())
    page = await store.outbox.list(state=None, limit=3)
    assert [stored.n for stored in page] == [4, 3, 2]
    assert names(list(await store.outbox.list(state=None, limit=9, before=page[-1].n))) == [
        "msg_b.e0"
    ]
    assert names(list(await store.outbox.list(state="delivered", limit=9))) == ["msg_b.e0"]
    assert len(await store.outbox.list(state="pending", limit=9)) == 3
    assert await store.outbox.find("msg_9") is None


async def test_what_ended_long_ago_is_forgotten_and_what_waits_is_kept(store: Store) -> None:
    await put(store, 3)
    for i, stored in enumerate(await lease(store)):
        await store.outbox.mark(stored, delivered(NOW + i))
    assert await store.outbox.forget(NOW) == 0
    assert await store.outbox.forget(NOW + 1) == 1
    assert await store.outbox.forget(NOW + 10) == 1
    assert names(list(await store.outbox.list(state=None, limit=9))) == ["msg_b.e2"]


FILL = (
    "WITH RECURSIVE g (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM g WHERE i < 10000)"
    " INSERT INTO outbox (id, kind, receiver, url, body, secret_of, learned, state, attempts, due,"
    " fence, created) SELECT 'd' || i, 'callback', 'https://dead.example:443', 'https://dead',"
    " {body}, '', 1, 'pending', 0, 1, 0, 1 FROM g"
)


async def test_the_deliveries_of_one_receiver_are_not_read_to_find_those_of_another_sqlite(
    store: Store, place: Place
) -> None:
    place.rows(FILL.format(body="x''"))
    await put(store, 1)
    plan = place.rows(f"EXPLAIN QUERY PLAN {outbox._RECEIVERS}", NOW, NOW)  # noqa: SLF001
    reads = [text for *_, text in plan if text.startswith(("SCAN", "SEARCH"))]
    unbound = [text for text in reads if text.startswith("SCAN") and " m" not in text[4:7]]
    assert unbound == []
    assert any("outbox_pending" in text for text in reads)
    assert any("outbox_leased" in text for text in reads)
    for stored in await lease(store):
        if stored.delivery.receiver == DEAD_HOST:
            await store.outbox.mark(stored, failed(pause=UNTIL))
    assert await lease(store) == []


async def test_the_deliveries_of_one_receiver_are_not_read_to_find_those_of_another_postgres(
    store: Store, place: Place
) -> None:
    servers.run(place.postgres, FILL.format(body="''::bytea") + "; ANALYZE outbox")
    await put(store, 1)
    query = outbox._RECEIVERS.replace("?", str(NOW))  # noqa: SLF001
    ((plan,),) = [
        ("\n".join(line for (line,) in place.rows(f"EXPLAIN (ANALYZE, TIMING OFF) {query}")),)
    ]
    assert "Seq Scan on outbox" not in plan
    assert "outbox_pending" in plan
    found = await lease(store)
    assert sorted({stored.delivery.receiver for stored in found}) == [
        "https://b.example:443",
        DEAD_HOST,
    ]
    for stored in found:
        if stored.delivery.receiver == DEAD_HOST:
            await store.outbox.mark(stored, failed(pause=UNTIL))
    assert await lease(store) == []


async def test_what_waits_for_a_receiver_is_counted_up_to_a_bound(store: Store) -> None:
    await put(store, 5)
    await put(store, 1, DEAD_HOST)
    (first, *_) = await lease(store, at_most=1)
    await store.outbox.mark(first, delivered())
    host = "https://b.example:443"
    assert [await store.outbox.waiting(host, most=most) for most in (100, 4, 3)] == [4, 4, 3]
    assert await store.outbox.waiting("https://nobody.example:443", most=3) == 0


@pytest.fixture
async def other(place: Place) -> AsyncIterator[Store]:
    opened = await place.start()
    yield opened
    await opened.close()


async def test_two_postgres_replicas_lease_each_delivery_once(store: Store, other: Store) -> None:
    for i in range(20):
        await put(store, 3, f"https://{i:03}.example:443")
    taken: list[str] = []
    while True:
        found = await asyncio.gather(*[lease(s, per_receiver=9) for s in (store, other) * 2])
        if not any(found):
            break
        taken += [stored.delivery.id for some in found for stored in some]
    assert len(taken) == len(set(taken)) == 60


async def test_deliveries_of_a_worker_that_is_gone_are_due_at_once_where_there_is_no_other(
    place: Place,
) -> None:
    store = await place.start()
    await put(store, 1)
    (stored,) = await lease(store)
    await store.close()
    store = await place.start()
    again = await lease(store)
    is_alone = not place.postgres  # on PostgreSQL another gateway may be sending it
    assert names(again) == (["msg_b.e0"] if is_alone else [])
    if is_alone:
        assert not await store.outbox.mark(stored, delivered())
    await store.close()
