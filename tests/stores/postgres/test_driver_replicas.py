"""Several gateways on one PostgreSQL behave as one (F25, F27)."""

import asyncio
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar

import asyncpg
import pytest

from carnet.core.people.identity import Account, Payer
from carnet.errors import Overloaded
from carnet.ports.calls.turns import Claimed, Denied, Fenced, Known, Rate, TurnClaim
from carnet.stores.commit.queue import Queue
from carnet.stores.open import Store
from carnet.stores.postgres import writer
from tests.stores.support.scenes import (
    ALICE,
    Place,
    a_claim,
    a_finish,
    a_nonce,
    a_task,
    claimed,
    finished,
    leased,
)

T = TypeVar("T")
BUSY_SECONDS = 60.0  # for a claim or a batch, on a machine that is busy
TEN = Rate(bucket="b", calls=10, seconds=60)
LIMITED = Payer(account=ALICE.account, quota="token:alice", limit=1000)


@pytest.fixture
async def other(place: Place) -> AsyncIterator[Store]:
    opened = await place.start()
    yield opened
    await opened.close()


@contextmanager
def replica(place: Place, *what: str) -> Iterator[subprocess.Popen[str]]:
    """A process of its own; it has said that it is ready."""
    command = [sys.executable, "-m", "tests.stores.support.replica", str(place.folder), *what]
    root = Path(__file__).parents[3]
    with subprocess.Popen(  # noqa: S603
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline()
            yield process
        finally:
            process.kill()


def tell(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def output(process: subprocess.Popen[str]) -> list[str]:
    """All that it says until its end."""
    assert process.stdout is not None
    return process.stdout.read().split("\n")[:-1]


def lines_until_it_waits(process: subprocess.Popen[str]) -> Iterator[str]:
    """All that it says until it waits to be told again."""
    assert process.stdout is not None
    for line in process.stdout:
        if line == "told\n":
            return
        yield line


def test_two_postgres_replicas_that_claim_the_same_keys_claim_each_once(place: Place) -> None:
    with replica(place, "contend", "a") as first, replica(place, "contend", "b") as second:
        tell(first)
        tell(second)
        lines = [*lines_until_it_waits(first), *lines_until_it_waits(second)]
    assert len(lines) == 128
    winners = Counter(line.split()[1] for line in lines if line.startswith("Claimed"))
    assert winners == Counter({f"r{i}": 1 for i in range(64)})
    assert place.counts()["turn"] == place.counts()["journal"] == 64


async def test_two_postgres_replicas_take_each_task_once(store: Store, place: Place) -> None:
    await asyncio.gather(*[store.turns.claim(a_task(f"r{i}")) for i in range(60)])
    with replica(place, "take", "3") as first, replica(place, "take", "5") as second:
        tell(first)
        tell(second)
        lines = [
            *await asyncio.to_thread(list, lines_until_it_waits(first)),
            *await asyncio.to_thread(list, lines_until_it_waits(second)),
        ]
    assert Counter(lines) == Counter({f"task-r{i} True the call of r{i}\n": 1 for i in range(60)})
    assert place.rows("SELECT COUNT(DISTINCT worker) FROM turn WHERE state = 'running'")[0][0] > 0
    assert await store.tasks.waiting() == 0


async def test_a_postgres_replica_whose_lease_has_run_out_takes_no_task(
    store: Store, place: Place
) -> None:
    await store.turns.claim(a_task())
    place.rows("UPDATE worker SET until = 0 WHERE id = ?", store.worker)
    assert await leased(store) == []
    place.clock.advance(11)
    await store.upkeep()  # it is renewed
    assert [task.turn.attempt for task in await leased(store)] == [1]


async def test_a_task_of_a_postgres_replica_that_is_gone_is_attached_to_until_it_waits_again(
    store: Store, other: Store, place: Place
) -> None:
    await store.turns.claim(a_task())
    (task,) = await leased(other)
    place.rows("UPDATE worker SET until = 0 WHERE id = ?", other.worker)
    assert await store.turns.claim(a_task()) == Known(task.turn)
    assert await store.turns.claim(a_claim()) == Known(task.turn)
    place.clock.advance(11)
    await store.upkeep()
    (again,) = await leased(store)
    assert (again.turn.attempt, again.turn.worker) == (2, store.worker)
    with pytest.raises(Fenced):
        await other.turns.finish(a_finish(task.turn, is_task=True))
    assert not await other.tasks.release(task.turn, 1)
    ended = await store.turns.finish(a_finish(again.turn, is_task=True))
    assert await other.turns.claim(a_task()) == Known(ended)


async def test_a_postgres_replica_that_slept_beyond_its_lease_is_fenced(
    store: Store, place: Place
) -> None:
    with replica(place, "hold", "r1") as sleeper:
        assert isinstance(await store.turns.claim(a_claim("r1")), Known)
        os.kill(sleeper.pid, signal.SIGSTOP)
        place.rows("UPDATE worker SET until = 0 WHERE id <> ?", store.worker)
        turn = claimed(await store.turns.claim(a_claim("r1")))
        assert (turn.attempt, turn.fence, turn.worker) == (2, 2, store.worker)
        ended = await store.turns.finish(a_finish(turn))
        os.kill(sleeper.pid, signal.SIGCONT)
        tell(sleeper)
        assert await asyncio.to_thread(output, sleeper) == ["fenced", "fenced"]
    assert await store.turns.reload(turn) == ended
    assert await store.turns.claim(a_claim("r1")) == Known(ended)
    assert place.rows("SELECT COUNT(*), SUM(amount) FROM ledger") == [(1, 200)]


async def test_a_turn_of_another_postgres_replica_is_attached_to(
    store: Store, other: Store
) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    assert await other.turns.claim(a_claim()) == Known(turn)
    await store.turns.append(turn, 0, 0, b'[["text","a"]]')
    assert await other.turns.events(turn) == [b'[["text","a"]]']
    ended = await store.turns.finish(a_finish(turn, first=1, last=2))
    assert await other.turns.reload(turn) == ended
    assert await other.turns.claim(a_claim()) == Known(ended)


async def test_a_reader_of_a_run_is_woken_to_look_at_what_another_postgres_replica_wrote(
    store: Store, other: Store
) -> None:
    with store.watch("r1") as watch:
        assert not await watch.changed(0)
        await finished(other)
        assert await watch.changed(30)
    assert len(await store.records.run("r1", reader=None)) == 1


async def test_a_start_leaves_the_turns_of_living_postgres_replicas_alone(
    store: Store, place: Place
) -> None:
    turn = claimed(await store.turns.claim(a_claim(payer=LIMITED, reserve=700)))
    other = await place.open()
    assert await other.start() == 0
    assert (await other.turns.reload(turn)).state == "running"
    place.rows("UPDATE worker SET until = 0 WHERE id = ?", store.worker)
    place.clock.advance(11)  # a lease is renewed each ten seconds, and those of others looked at
    await other.upkeep()
    assert (await other.turns.reload(turn)).state == "unknown"
    assert place.rows("SELECT reserved FROM purse") == [(0,)]
    with pytest.raises(Fenced):
        await store.turns.finish(a_finish(turn, payer=LIMITED))
    await other.close()


async def test_after_an_outage_postgres_replicas_give_one_another_time_to_renew(
    store: Store, place: Place
) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    other = await place.start()
    place.end_leases()  # nobody could renew
    place.clock.advance(40)
    await other.upkeep()
    await store.upkeep()
    place.clock.advance(11)
    await other.upkeep()
    assert (await other.turns.reload(turn)).state == "running"
    assert place.rows("SELECT fence FROM worker") == [(2,), (2,)]
    await other.close()


async def test_two_that_recover_a_postgres_store_at_once_release_what_was_held_once(
    place: Place,
) -> None:
    store = await place.start()
    for i in range(150):
        await store.turns.claim(a_claim(f"r{i}", payer=LIMITED, reserve=5))
    await store.close()
    others = [await place.open() for _ in range(3)]
    assert sum(await asyncio.gather(*[other.start() for other in others])) == 150
    assert place.rows("SELECT reserved FROM purse") == [(0,)]
    assert place.rows("SELECT COUNT(*) FROM journal WHERE kind = 'ended'") == [(150,)]
    for other in others:
        await other.close()


async def test_tasks_that_several_postgres_replicas_find_lost_wait_again_once(place: Place) -> None:
    store = await place.start()
    for i in range(120):
        await store.turns.claim(a_task(f"r{i}", payer=LIMITED, reserve=5))
    assert len(await leased(store, most=120)) == 120
    await store.close()
    others = [await place.open() for _ in range(3)]
    assert sum(await asyncio.gather(*[other.start() for other in others])) == 120
    assert place.rows("SELECT reserved FROM purse") == [(600,)]
    assert place.rows("SELECT COUNT(*) FROM journal WHERE kind = 'discard'") == [(120,)]
    assert place.rows("SELECT DISTINCT state, attempt, fence FROM turn") == [("queued", 2, 2)]
    for other in others:
        await other.close()


async def test_a_rate_is_counted_over_all_postgres_replicas(store: Store, other: Store) -> None:
    claims = [a_claim(f"r{i}", rates=(TEN,)) for i in range(40)]
    stores = (store, other)
    verdicts = await asyncio.gather(
        *[stores[i % 2].turns.claim(claim) for i, claim in enumerate(claims)]
    )
    assert Counter(type(verdict) for verdict in verdicts) == {Claimed: 10, Denied: 30}


async def test_a_nonce_is_accepted_once_by_all_postgres_replicas(
    store: Store, other: Store, place: Place
) -> None:
    stores = (store, other)
    for i in range(10):
        claims = [a_claim(f"r{i}-{j}", nonce=a_nonce(f"n{i}")) for j in range(32)]  # A10
        verdicts = await asyncio.gather(
            *[stores[j % 2].turns.claim(claim) for j, claim in enumerate(claims)]
        )
        assert sum(isinstance(verdict, Claimed) for verdict in verdicts) == 1
        assert verdicts.count(Denied("replayed")) == 31
    assert place.counts()["run"] == place.counts()["turn"] == 10


async def test_a_nonce_of_a_refused_claim_goes_to_who_waits_at_another_postgres_replica(
    store: Store, other: Store
) -> None:
    """Each refused use is undone by its own commit, for which the other replica waits."""
    for i in range(20):
        poor = a_claim(f"poor{i}", most_run_calls=0, nonce=a_nonce(f"n{i}"))
        good = a_claim(f"good{i}", nonce=a_nonce(f"n{i}"))
        verdicts = await asyncio.gather(store.turns.claim(poor), other.turns.claim(good))
        assert verdicts[0] in {Denied("run_calls"), Denied("replayed")}
        claimed(verdicts[1])


async def test_a_limit_holds_over_all_postgres_replicas(
    store: Store, other: Store, place: Place
) -> None:
    claims = [a_claim(f"r{i}", payer=LIMITED, reserve=300) for i in range(20)]
    stores = (store, other)
    verdicts = await asyncio.gather(
        *[stores[i % 2].turns.claim(claim) for i, claim in enumerate(claims)]
    )
    assert Counter(type(verdict) for verdict in verdicts) == {Claimed: 3, Denied: 17}
    assert place.rows("SELECT spent, reserved FROM purse") == [(0, 900)]


async def test_the_calls_of_a_run_are_counted_over_all_postgres_replicas(
    store: Store, other: Store, place: Place
) -> None:
    claims = [a_claim("r1", turn=f"t{i}", most_run_calls=7) for i in range(20)]
    stores = (store, other)
    verdicts = await asyncio.gather(
        *[stores[i % 2].turns.claim(claim) for i, claim in enumerate(claims)]
    )
    assert Counter(type(verdict) for verdict in verdicts) == {Claimed: 7, Denied: 13}
    ours = [verdict.turn for verdict in verdicts if isinstance(verdict, Claimed)]
    by_worker = {store.worker: store, other.worker: other}
    ended = await asyncio.gather(
        *[by_worker[turn.worker or ""].turns.finish(a_finish(turn)) for turn in ours]
    )
    assert sorted(turn.run_cost or 0 for turn in ended) == [200 * i for i in range(1, 8)]
    assert place.rows("SELECT calls, cost FROM run") == [(7, 1400)]


def a_meeting_claim(store: Store, meet: str, i: int) -> TurnClaim:
    """A claim that meets those of other stores in its run, its rate, its quota or nonce alone."""
    kinds = ("run", "rate", "quota", "nonce")
    own = {kind: "" if kind == meet else store.worker for kind in kinds}
    quota = f"p{own['quota']}{i}"
    payer = Payer(account=Account("token", str(i % 7)), quota=quota, limit=10**9)
    rate = Rate(bucket=f"b{own['rate']}{i}", calls=10**6, seconds=1)
    name = f"r{own['run']}{i}"
    nonce = a_nonce(f"n{own['nonce']}{i}")
    turn = f"t{store.worker}{i}"
    return a_claim(name, turn=turn, payer=payer, rates=(rate,), reserve=10, nonce=nonce)


async def patiently(ask: Callable[[], Awaitable[T]]) -> T:
    """The answer, however often the store is busy: then nothing was written, and it says so.

    A batch waits for the locks of three others, all of them in this one process. On a machine that
    is busy with something else that is longer than a writer waits for a lock.
    """
    while True:
        try:
            return await ask()
        except Overloaded:
            await asyncio.sleep(0)  # the others' batches go on meanwhile


@pytest.mark.parametrize("meet", ["run", "rate", "quota", "nonce"])
async def test_overlapping_batches_of_four_postgres_writers_never_deadlock(
    place: Place, monkeypatch: pytest.MonkeyPatch, meet: str
) -> None:
    monkeypatch.setattr(writer, "Queue", partial(Queue, wait_seconds=BUSY_SECONDS))
    monkeypatch.setattr(writer, "BATCH_SECONDS", BUSY_SECONDS)
    stores = [await place.start() for _ in range(4)]
    dice = random.Random(1)  # noqa: S311  the same order on every run
    deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    before = place.rows(deadlocks)

    async def call(store: Store, claim: TurnClaim) -> None:
        verdict = await patiently(lambda: store.turns.claim(claim))
        if meet == "nonce" and verdict == Denied("replayed"):
            return
        turn = claimed(verdict)
        await patiently(lambda: store.turns.append(turn, 0, 0, b"[]"))
        end = a_finish(turn, payer=claim.admitted.payer, first=1)
        await patiently(lambda: store.turns.finish(end))

    async def caller(store: Store) -> None:
        claims = [a_meeting_claim(store, meet, i) for i in range(300)]
        dice.shuffle(claims)
        await asyncio.gather(*[call(store, claim) for claim in claims])

    await asyncio.gather(*[caller(store) for store in stores])
    for store in stores:
        await store.close()
    calls = 300 if meet == "nonce" else 1200
    assert place.rows("SELECT COUNT(*), SUM(amount) FROM ledger") == [(calls, calls * 200)]
    assert place.rows("SELECT SUM(spent), SUM(reserved) FROM purse") == [(calls * 200, 0)]
    assert place.rows("SELECT COUNT(*) FROM nonce") == [(calls,)]
    assert place.rows(deadlocks) == before


async def test_a_turn_of_postgres_that_is_claimed_while_it_is_to_be_forgotten_stays(
    store: Store, place: Place
) -> None:
    turn = claimed(await store.turns.claim(a_claim(now=0)))
    await store.turns.finish(a_finish(turn, state="failed", retryable=True, now=0))
    await finished(store, "newest")
    outside = await asyncpg.connect(place.postgres)
    async with outside.transaction():
        await outside.execute("SELECT n FROM run WHERE id = 'r1' FOR UPDATE")  # as a claim does
        pruning = asyncio.ensure_future(store.prune(turn_days=1, event_days=1))
        await asyncio.wait([pruning], timeout=0.3)
        assert await outside.execute("UPDATE turn SET state = 'running' WHERE n = 1") == "UPDATE 1"
    await outside.close()
    assert (await pruning).turns == 0
    assert (await store.turns.reload(turn)).state == "running"
    assert len(await store.turns.events(turn)) == 1


async def test_a_run_shows_nothing_while_an_older_postgres_transaction_is_open(
    store: Store, place: Place
) -> None:
    outside = await asyncpg.connect(place.postgres)
    async with outside.transaction():
        await outside.fetch("SELECT pg_current_xact_id()")  # it may still commit an earlier row
        ended = await finished(store)
        assert await store.records.entries("r1", reader=None, after=0, limit=9) == []
        assert len(await store.turns.events(ended)) == 1  # the answer itself does not wait
    await outside.close()
    entries = await store.records.entries("r1", reader=None, after=0, limit=9)
    assert [entry.kind for entry in entries] == ["accepted", "events"]


async def test_a_postgres_replica_that_slept_renews_its_lease_before_it_claims(
    store: Store, other: Store, place: Place
) -> None:
    place.end_leases()
    turn = claimed(await store.turns.claim(a_claim()))
    assert await other.turns.claim(a_claim()) == Known(turn)  # and it is not taken over
    assert place.rows("SELECT fence FROM worker WHERE id = ?", store.worker) == [(2,)]


async def test_a_reader_of_another_postgres_replica_counts_while_that_replica_lives(
    store: Store, other: Store, place: Place
) -> None:
    ours, theirs = store.cluster, other.cluster
    assert ours is not None
    assert theirs is not None
    turn = claimed(await store.turns.claim(a_claim()))
    assert not await ours.are_reading(turn)
    await theirs.attend(turn)
    assert await ours.are_reading(turn)
    assert await ours.count() == 2
    await theirs.leave(turn)
    assert not await ours.are_reading(turn)
    await theirs.attend(turn)
    place.rows("UPDATE worker SET until = 0 WHERE id = ?", other.worker)
    assert not await ours.are_reading(turn)
    assert await ours.count() == 1
    await ours.forget()
    assert place.rows("SELECT * FROM wish") == []


async def test_a_reader_that_left_while_postgres_was_down_is_told_later(
    store: Store, other: Store, place: Place
) -> None:
    ours, theirs = store.cluster, other.cluster
    assert ours is not None
    assert theirs is not None
    turn = claimed(await store.turns.claim(a_claim()))
    await theirs.attend(turn)
    outside = await asyncpg.connect(place.postgres)
    async with outside.transaction():
        await outside.execute("LOCK TABLE wish IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(Overloaded):
            await theirs.leave(turn)
    await outside.close()
    await theirs.look()
    assert not await ours.are_reading(turn)


async def test_a_turn_is_cancelled_by_the_postgres_replica_that_runs_it(
    store: Store, other: Store, place: Place
) -> None:
    ours, theirs = store.cluster, other.cluster
    assert ours is not None
    assert theirs is not None
    turn = claimed(await store.turns.claim(a_claim()))
    stopped: list[int] = []
    ours.listen(stopped.extend)
    cancelling = asyncio.ensure_future(theirs.cancel({turn.n, 99}, seconds=30))
    while not stopped:
        await ours.look()
        await asyncio.sleep(0.01)
    assert set(stopped) == {turn.n}
    await store.turns.finish(a_finish(turn, state="failed", code="cancelled"))
    assert await cancelling == 1
    assert await theirs.cancel({turn.n}, seconds=30) == 0  # it has ended
    again = claimed(await store.turns.claim(a_claim("r2")))
    assert await theirs.cancel({again.n}, seconds=0.1) == 0  # nobody has looked
    assert await ours.cancel({again.n}, seconds=30) == 0  # it is our own
    assert place.rows("SELECT * FROM wish") == []
