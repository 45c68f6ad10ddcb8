"""What a start finds, and what it forgets when told to."""

import msgspec
import pytest

from carnet.core.people.identity import Payer
from carnet.ports.calls.turns import Claimed, Denied, Fenced, Known, Rate
from carnet.ports.trust.trust import NewToken
from carnet.stores.database import Database
from carnet.stores.open import Store
from carnet.stores.upkeep.recovery import recover
from carnet.stores.upkeep.retention import DAY, Pruned
from tests.stores.support.scenes import ALICE, Place, a_claim, a_finish, claimed, finished

LIMITED = Payer(account=ALICE.account, quota="p", limit=1000)


async def test_turns_of_a_worker_that_is_gone_are_unknown_and_released(place: Place) -> None:
    store = await place.start()
    ended = await finished(store, "done")
    lost = [
        claimed(await store.turns.claim(a_claim(f"r{i}", payer=LIMITED, reserve=100)))
        for i in range(3)
    ]
    await store.close()
    store = await place.open()
    assert await store.start() == 3
    assert [(await store.turns.reload(turn)).state for turn in lost] == ["unknown"] * 3
    assert place.rows("SELECT reserved FROM purse WHERE name = 'p'") == [(0,)]
    assert await store.turns.claim(a_claim("done")) == Known(ended)
    again = claimed(await store.turns.claim(a_claim("r0", payer=LIMITED, reserve=1000)))
    assert (again.attempt, again.fence, again.worker) == (2, 2, store.worker)
    with pytest.raises(Fenced):
        await store.turns.finish(a_finish(lost[0]))
    await store.close()


async def test_a_recovered_turn_shows_in_its_run_that_it_ended(place: Place) -> None:
    store = await place.start()
    await store.turns.claim(a_claim())
    await store.close()
    store = await place.start()
    entries = await store.records.entries("r1", reader=None, after=0, limit=9)
    assert [(entry.kind, entry.data) for entry in entries][1:] == [
        ("ended", b'{"state":"unknown"}')
    ]
    await store.close()


async def test_recovering_twice_changes_nothing(place: Place) -> None:
    store = await place.start()
    await store.turns.claim(a_claim(payer=LIMITED, reserve=100))
    await store.close()
    store = await place.start()
    rows = place.rows("SELECT * FROM turn"), place.rows("SELECT * FROM purse"), place.counts()
    database: Database = store._database  # noqa: SLF001
    assert await recover(database, now=1) == 0
    await store.close()
    store = await place.open()
    assert await store.start() == 0
    await store.close()
    assert rows == (
        place.rows("SELECT * FROM turn"),
        place.rows("SELECT * FROM purse"),
        place.counts(),
    )


async def test_more_lost_turns_than_one_round_takes(place: Place) -> None:
    store = await place.start()
    for i in range(120):
        await store.turns.claim(a_claim("r1", turn=f"t{i}"))
    await store.close()
    store = await place.open()
    assert await store.start() == 120
    await store.close()


async def test_the_running_turns_are_found_by_their_sqlite_index(
    place: Place, store: Store
) -> None:
    await finished(store)
    plan = place.rows("EXPLAIN QUERY PLAN SELECT n FROM turn WHERE state = 'running' ORDER BY n")
    assert "turn_running" in plan[0][3]


async def test_what_ended_long_ago_is_forgotten_and_the_ledger_is_kept(
    store: Store, place: Place
) -> None:
    old = await finished(store, "old")
    running = claimed(await store.turns.claim(a_claim("old", turn="still running")))
    await finished(store, "older")
    place.clock.advance(31 * 86_400)
    now = place.clock.wall_us()
    new = claimed(await store.turns.claim(a_claim("new", now=now)))
    new = await store.turns.finish(a_finish(new))
    report = await store.prune(turn_days=30, event_days=30, dry_run=True)
    assert (report.turns, report.events) == (2, 4)
    assert await store.prune(turn_days=30, event_days=30) == Pruned(turns=2, events=4, runs=1)
    assert await store.prune(turn_days=30, event_days=30) == Pruned()
    assert [turn.n for turn in await store.records.run("old", reader=None)] == [running.n]
    assert await store.records.run("older", reader=None) == []
    assert await store.turns.claim(a_claim("new")) == Known(new)
    assert place.rows("SELECT run FROM ledger ORDER BY n") == [("old",), ("older",), ("new",)]
    again = claimed(await store.turns.claim(a_claim("old", turn=old.turn)))
    assert again.n > new.n


async def test_numbers_are_not_given_twice_when_all_is_old(place: Place) -> None:
    store = await place.start()
    await finished(store, "r1")
    last = await finished(store, "r2")
    place.clock.advance(100 * 86_400)
    await store.prune(turn_days=1, event_days=1)
    await store.close()
    store = await place.start()
    assert claimed(await store.turns.claim(a_claim("next"))).n == last.n + 1
    await store.close()


async def test_events_may_be_forgotten_before_their_turns(store: Store, place: Place) -> None:
    old = await finished(store, "old")
    place.clock.advance(10 * 86_400)
    await finished(store, "new", now=place.clock.wall_us())
    assert await store.prune(turn_days=30, event_days=7) == Pruned(events=2)
    (kept,) = await store.records.run("old", reader=None)
    assert kept == msgspec.structs.replace(old, key=kept.key)
    assert await store.turns.events(old) == []
    # Without its events it cannot be replayed: the same request is a new turn.
    assert isinstance(await store.turns.claim(a_claim("old")), Claimed)


async def test_what_ended_today_is_kept(store: Store) -> None:
    with pytest.raises(ValueError, match="less than a day"):
        await store.prune(turn_days=0, event_days=1)


async def test_used_up_rates_and_ended_tokens_go_and_forwardable_ones_stay(
    store: Store, place: Place
) -> None:
    now = place.clock.wall_us()
    rate = Rate(bucket="b", calls=1, seconds=60)
    await store.turns.claim(a_claim(rates=(rate,), now=now))
    for name, forwardable in (("plain", False), ("forwardable", True), ("live", False)):
        new = NewToken(name=name, scopes=frozenset({"call:*"}), forwardable=forwardable)
        await store.tokens.create(new, now)
    await store.tokens.revoke("plain", now)
    await store.tokens.revoke("forwardable", now)
    assert isinstance(await store.turns.claim(a_claim("r2", rates=(rate,), now=now)), Denied)
    place.clock.advance(2 * DAY / 1_000_000)
    assert (await store.prune(turn_days=1, event_days=1)).tokens == 1
    assert [token.name for token in await store.tokens.list()] == ["live", "forwardable"]
    assert place.counts()["rate"] == 0
