"""Group commit: what one row does to the others, and what is said when nothing can be written."""

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Sequence

import pytest
from msgspec.structs import replace

from carnet.core.people.identity import Payer
from carnet.errors import Internal, Overloaded, StorageUnavailable
from carnet.ports.calls.turns import Claimed, Known, TurnClaim, Verdict
from carnet.stores.open import Store
from carnet.stores.sqlite import driver as sqlite
from carnet.stores.sqlite import writer
from tests.stores.support.scenes import ALICE, Place, a_claim, a_finish, claimed, finished

LONE_SURROGATE = "\ud800"


async def test_a_row_that_cannot_be_written_is_alone_in_that(store: Store, place: Place) -> None:
    claims = [a_claim(f"r{i}") for i in range(8)]
    claims[3] = a_claim("r3", agent=LONE_SURROGATE)
    claims[5] = a_claim("r5", depth=2**70)
    verdicts = await asyncio.gather(
        *[store.turns.claim(claim) for claim in claims], return_exceptions=True
    )
    kinds = [type(verdict) for verdict in verdicts]
    assert kinds == [*[Claimed] * 3, Internal, Claimed, Internal, Claimed, Claimed]
    made = place.counts()
    assert (made["run"], made["turn"], made["journal"]) == (6, 6, 6)


async def test_a_broken_finish_leaves_the_others_their_end(store: Store) -> None:
    turns = [claimed(await store.turns.claim(a_claim(f"r{i}"))) for i in range(3)]
    finishes = [a_finish(turn) for turn in turns]
    finishes[1] = a_finish(turns[1], code=LONE_SURROGATE)
    ended = await asyncio.gather(
        *[store.turns.finish(finish) for finish in finishes], return_exceptions=True
    )
    assert isinstance(ended[1], Internal)
    assert [(await store.turns.reload(turn)).state for turn in turns] == ["done", "running", "done"]
    assert (await store.turns.finish(a_finish(turns[1]))).state == "done"


async def test_the_error_of_a_broken_row_does_not_repeat_its_values(store: Store) -> None:
    with pytest.raises(Internal) as caught:
        await store.turns.claim(a_claim(agent="sk-tan-secret" + LONE_SURROGATE))
    assert "sk-tan-secret" not in str(caught.value)


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many claims each batch held that was written."""
    found: list[int] = []
    claim = sqlite.SqliteDriver.claim

    def counted(self: sqlite.SqliteDriver, claims: Sequence[TurnClaim]) -> list[Verdict]:
        found.append(len(claims))
        return claim(self, claims)

    monkeypatch.setattr(sqlite.SqliteDriver, "claim", counted)
    return found


async def a_claim_a_turn(store: Store, number: int, payers: Sequence[Payer] = (ALICE,)) -> None:
    """Claim one in each turn of the event loop, and wait for all of them."""
    claims: list[Awaitable[Verdict]] = []
    for i in range(number):
        payer = payers[i % len(payers)]
        claims.append(asyncio.ensure_future(store.turns.claim(a_claim(f"t{i}", payer=payer))))
        await asyncio.sleep(0)
    await asyncio.gather(*claims)


async def test_a_batch_of_sqlite_waits_for_those_who_come_after_one_that_was_for_several(
    store: Store, batches: list[int]
) -> None:
    await asyncio.gather(*[store.turns.claim(a_claim(f"r{i}")) for i in range(3)])
    await a_claim_a_turn(store, 6)
    assert batches == [3, 6]


async def test_a_batch_of_sqlite_waits_for_nobody_after_one_that_was_for_one(
    store: Store, batches: list[int]
) -> None:
    await store.turns.claim(a_claim("r"))
    await a_claim_a_turn(store, 6)
    assert batches[1] <= 2  # who comes in the turn in which it is planned, and in the next


async def test_a_batch_of_sqlite_does_not_wait_for_ever_though_others_come(
    store: Store, batches: list[int]
) -> None:
    await asyncio.gather(*[store.turns.claim(a_claim(f"r{i}")) for i in range(3)])
    await a_claim_a_turn(store, 3 * writer.TURNS)
    assert writer.TURNS <= batches[1] <= writer.TURNS + 2


async def test_a_batch_of_sqlite_waits_a_few_turns_where_others_wait_too(
    store: Store, batches: list[int]
) -> None:
    both = (ALICE, replace(ALICE, quota="token:bob"))
    await asyncio.gather(*[store.turns.claim(a_claim(f"r{i}", payer=both[i])) for i in range(2)])
    await a_claim_a_turn(store, 3 * writer.TURNS, both)
    assert writer.TURNS_BESIDE <= batches[1] <= writer.TURNS_BESIDE + 2


async def test_a_claim_that_nobody_waits_for_is_not_left_running(
    store: Store, place: Place
) -> None:
    payer = Payer(account=ALICE.account, quota="p", limit=1000)
    claim = a_claim(payer=payer, reserve=100)
    waiting = asyncio.ensure_future(store.turns.claim(claim))
    await asyncio.sleep(0)  # it is queued
    await asyncio.sleep(0)  # it is with the writer
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    await finished(store, "after")  # the writer has served what came before
    await finished(store, "and after")
    assert place.rows("SELECT COUNT(*) FROM turn WHERE state = 'running'") == [(0,)]
    assert place.rows("SELECT SUM(reserved) FROM purse") == [(0,)]
    assert isinstance(await store.turns.claim(claim), Claimed)


async def test_a_full_disk_under_sqlite_refuses_and_recovers_by_itself(
    store: Store, place: Place
) -> None:
    database = store._database  # noqa: SLF001  the limit is a setting of the writing connection
    pages = place.rows("PRAGMA page_count")[0][0]
    ended = await finished(store)
    await database.execute(f"PRAGMA max_page_count = {pages}")
    large = b"x" * 1_000_000
    with pytest.raises(StorageUnavailable, match="full"):
        await store.turns.claim(a_claim("r2", request=large))
    assert not store.is_writable()
    assert not store.is_broken()
    assert await store.turns.claim(a_claim()) == Known(ended)  # nothing to write: still answered
    assert len(await store.turns.events(ended)) == 1
    await database.execute("PRAGMA max_page_count = 1000000")
    assert isinstance(await store.turns.claim(a_claim("r2", request=large)), Claimed)
    assert store.is_writable()


async def test_a_query_that_fails_is_told_to_the_one_who_asked(store: Store) -> None:
    database = store._database  # noqa: SLF001
    answers = await asyncio.gather(
        database.fetch("SELECT 1"), database.fetch("SELECT nothing"), return_exceptions=True
    )
    assert answers[0] == [(1,)]
    assert isinstance(answers[1], StorageUnavailable)


async def test_a_closed_store_takes_nothing(place: Place) -> None:
    store = await place.start()
    await store.close()
    with pytest.raises(StorageUnavailable):
        await store.turns.claim(a_claim())
    with pytest.raises(StorageUnavailable):
        await store.records.run("r1", reader=None)
    await store.close()


async def test_what_was_queued_before_the_close_is_written(place: Place) -> None:
    store = await place.start()
    waiting = asyncio.ensure_future(store.turns.claim(a_claim()))
    await asyncio.sleep(0)
    await store.close()
    assert isinstance(await waiting, Claimed)
    assert place.rows("SELECT COUNT(*) FROM turn") == [(1,)]


BROKEN_DISK = """
import asyncio, json, resource, sys
from pathlib import Path
from tests.stores.support.scenes import Place, a_claim, finished

async def main():
    place = Place(Path(sys.argv[1]))
    store = await place.start()
    await finished(store)
    said = []
    size = (place.folder / "carnet.db-wal").stat().st_size // int(sys.argv[2])
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    waiting = [store.turns.claim(a_claim(f"r{i}")) for i in range(2, 5)]
    for answer in await asyncio.gather(*waiting, return_exceptions=True):
        said.append(answer.code)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    for answer in await asyncio.gather(store.turns.claim(a_claim("r9")), return_exceptions=True):
        said.append(getattr(answer, "code", "claimed"))
    said.append(store.is_broken())
    said.append(len(await store.records.run("r1", reader=None)))
    await store.close()
    print(json.dumps(said))

asyncio.run(main())
"""


def on_a_broken_disk(place: Place, part: int) -> list[object]:
    """What is said where no file may be larger than that part of the log is already."""
    done = subprocess.run(  # noqa: S603  a process of its own: its file size is limited
        [sys.executable, "-c", BROKEN_DISK, str(place.folder), str(part)],
        capture_output=True,
        check=True,
        timeout=60,
    )
    answers: list[object] = json.loads(done.stdout)
    return answers


def test_an_sqlite_file_at_its_largest_is_a_full_disk_and_passes(place: Place) -> None:
    refused = ["storage_unavailable"] * 3
    assert on_a_broken_disk(place, 1) == [*refused, "claimed", False, 1]


async def test_a_failed_sqlite_commit_is_unknown_and_ends_all_writing(place: Place) -> None:
    unknown = ["outcome_unknown"] * 3
    assert on_a_broken_disk(place, 2) == [*unknown, "storage_unavailable", True, 1]
    store = await place.start()  # opened anew, it is as it was before the commit
    assert isinstance(await store.turns.claim(a_claim("r2")), Claimed)
    await store.close()


async def test_the_end_of_a_turn_waits_for_a_lock_that_others_hold_on_sqlite(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.05)
    monkeypatch.setattr(writer, "BUSY_SECONDS", 0.2)
    store = await place.start()
    turn = claimed(await store.turns.claim(a_claim()))
    other = sqlite3.connect(place.database, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    ending = asyncio.ensure_future(store.turns.finish(a_finish(turn)))
    with pytest.raises(Overloaded):
        await store.turns.claim(a_claim("r2"))
    assert not ending.done()
    other.execute("ROLLBACK")
    other.close()
    assert (await asyncio.wait_for(ending, 30)).state == "done"
    await store.close()
