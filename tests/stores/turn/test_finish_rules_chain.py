"""The chain of the ledger: untouched it fits, and whatever is changed is found and named."""
# ruff: noqa: S608  the statements are put together from our own words

import asyncio
import sqlite3
from contextlib import closing
from typing import Any

import pytest

from carnet.errors import Internal, OutcomeUnknown
from carnet.ports.calls.turns import Debit, Use
from carnet.stores.ledger.verification import Verified
from carnet.stores.migration import migrate, migrations
from carnet.stores.open import Store
from carnet.stores.secrets import secrets_file
from carnet.stores.turn.finish_rules import START, Seals
from tests.crash.test_kill import KILLED, run_victim
from tests.stores.postgres.test_driver import kill_who_waits_for, outside, waiting_commits
from tests.stores.support import servers
from tests.stores.support.scenes import (
    ALICE,
    BOB,
    Place,
    a_claim,
    a_finish,
    claimed,
    end_upkeep,
    finished,
)

LEDGER = ("n", "at", "run", "turn", "issuer", "account", "credit", "amount", "lane", "seq", "hash")
PREDATING = (
    "INSERT INTO ledger (at, run, turn, issuer, account, credit, amount)"
    " VALUES (7, 'old', 't{0}', 'token:alice', 'alice', 'agent:echo', 100)"
)
SPENT = "UPDATE purse SET spent = spent + {}"
LONE_SURROGATE = "\ud800"


def forge(place: Place, *statements: str) -> None:
    """Change the database as somebody would who may do everything there."""
    if place.postgres:
        script = ["SET session_replication_role = replica", *statements]  # no trigger
        servers.run(place.postgres, "; ".join(script))
        return
    with closing(sqlite3.connect(place.database, timeout=5)) as connection:
        guards = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
        triggers = connection.execute(guards).fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)
        for _, text in triggers:
            connection.execute(text)
        connection.commit()


def literal(place: Place, value: Any) -> str:  # noqa: ANN401, RUF100
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"'\\x{value.hex()}'::bytea" if place.postgres else f"x'{value.hex()}'"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def flipped(value: Any) -> Any:  # noqa: ANN401, RUF100
    """The same with one bit changed."""
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:]
    if isinstance(value, int):
        return value ^ (1 << 40)
    return value[:-1] + chr(ord(value[-1]) ^ 1)


async def a_ledger(store: Store, postings: int = 4) -> None:
    """Some postings and a checkpoint over them."""
    for i in range(postings):
        await finished(store, f"r{i}", payer=BOB if i == 1 else ALICE)
    await checkpoint(store)


async def checkpoint(store: Store) -> None:
    store._clock.advance(61)  # type: ignore[attr-defined]  # noqa: SLF001
    await store.upkeep()


def named(found: Verified) -> set[int | None]:
    return {fault.row for fault in found.faults}


async def test_an_untouched_ledger_fits(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim("two")))
    await store.turns.finish(a_finish(turn, debits=(Debit("agent:echo", 5), Debit("peer:b", 7))))
    await a_ledger(store)
    found = await store.verify_ledger()
    assert (found.ok, found.faults) == (True, [])
    assert (found.postings, found.unchained, found.shards, found.checkpoints) == (6, 0, 1, 2)
    assert (found.debits, found.credits, found.spent) == (812, 812, 812)


async def test_what_is_counted_of_tokens_and_tasks_is_no_money(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim("counted")))
    uses = (Use("tokens/2027-01-15/echo/b", 1000), Use("tasks/echo/b", 3))
    await store.turns.finish(a_finish(turn, uses=uses))
    found = await store.verify_ledger()
    assert (found.ok, found.spent) == (True, 200)


async def test_an_empty_ledger_fits(store: Store) -> None:
    found = await store.verify_ledger()
    assert (found.ok, found.postings, found.checkpoints) == (True, 0, 1)


def test_a_posting_is_hashed_the_same_in_every_version() -> None:
    seals = Seals(bytes(range(32)))
    row = (1, 1_800_000_000_000_000, "r1", "r1.t0", "token:alice", "alice", "agent:echo", 200)
    assert seals.posting(START, (*row, "w.1", 1)).hex() == (
        "f2efbe2ccd7f93438dfd0f845a1361b87d995f4b7c435ac981e75ad7afe569b6"
    )


async def test_a_change_of_any_column_of_any_posting_is_found_and_named(
    store: Store, place: Place
) -> None:
    await a_ledger(store)
    for row in place.rows(f"SELECT {', '.join(LEDGER)} FROM ledger ORDER BY n"):
        for column, value in zip(LEDGER, row, strict=True):
            for other in (flipped(value), None if column in {"lane", "seq", "hash"} else value):
                if other == value:
                    continue
                n = other if column == "n" else row[0]
                old, new = literal(place, value), literal(place, other)
                forge(place, f"UPDATE ledger SET {column} = {new} WHERE n = {row[0]}")
                found = await store.verify_ledger()
                assert not found.ok, (row[0], column, other)
                assert n in named(found), (row[0], column, found.faults)
                forge(place, f"UPDATE ledger SET {column} = {old} WHERE n = {n}")
    assert (await store.verify_ledger()).ok


async def test_a_changed_amount_is_the_only_posting_named(store: Store, place: Place) -> None:
    await a_ledger(store)
    forge(place, "UPDATE ledger SET amount = 1 WHERE n = 2")
    found = await store.verify_ledger()
    assert named(found) == {2, None}
    assert [fault.what for fault in found.faults] == [
        "the posting is not as it was written",
        "the sums differ: debits 601, credits 601, and the quotas have spent 800 (millionths)",
    ]


@pytest.mark.parametrize("table", ["lane", "checkpoint", "sealed"])
async def test_a_change_of_what_seals_the_postings_is_found(
    store: Store, place: Place, table: str
) -> None:
    await a_ledger(store)
    columns = {
        "lane": ("id", "postings", "head", "seal"),
        "checkpoint": ("n", "at", "lanes", "seal"),
        "sealed": ("lane", "postings"),
    }[table]
    for row in place.rows(f"SELECT {', '.join(columns)} FROM {table}"):
        this = f"{columns[0]} = {literal(place, row[0])}"
        for column, value in zip(columns, row, strict=True):
            if value == "":
                continue
            old, new = literal(place, value), literal(place, flipped(value))
            forge(place, f"UPDATE {table} SET {column} = {new} WHERE {this}")
            assert not (await store.verify_ledger()).ok, (row[0], column)
            changed = f"{column} = {new}" if column == columns[0] else this
            forge(place, f"UPDATE {table} SET {column} = {old} WHERE {changed}")
        forge(place, f"DELETE FROM {table} WHERE {this}")
        assert not (await store.verify_ledger()).ok, row
        values = ", ".join(literal(place, value) for value in row)
        forge(place, f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})")
    assert (await store.verify_ledger()).ok


@pytest.mark.parametrize(("gone", "number"), [(1, 2), (2, 3), (3, 4), (4, 3)])
async def test_a_missing_posting_is_found_where_it_was(
    store: Store, place: Place, gone: int, number: int
) -> None:
    await a_ledger(store)
    forge(place, f"DELETE FROM ledger WHERE n = {gone}", SPENT.format(0))
    found = await store.verify_ledger()
    assert number in named(found)
    assert any("missing" in fault.what for fault in found.faults)


async def test_a_swapped_pair_is_found(store: Store, place: Place) -> None:
    await a_ledger(store)
    forge(
        place,
        *("UPDATE ledger SET n = 99 WHERE n = 2", "UPDATE ledger SET n = 2 WHERE n = 3"),
        "UPDATE ledger SET n = 3 WHERE n = 99",
    )
    found = await store.verify_ledger()
    assert {2, 3} <= named(found)


@pytest.mark.parametrize("shard", ["lane", "NULL", "'another.1'"])
async def test_an_invented_posting_is_found(store: Store, place: Place, shard: str) -> None:
    await a_ledger(store)
    seq, hashed = ("NULL", "NULL") if shard == "NULL" else ("5 - 4 * (n / 4)", "hash")
    forge(
        place,
        "INSERT INTO ledger (n, at, run, turn, issuer, account, credit, amount, lane, seq, hash)"
        f" SELECT 77, at, run, 'again', issuer, account, credit, amount, {shard}, {seq}, {hashed}"
        " FROM ledger WHERE n = 4",
        SPENT.format("200 WHERE name = 'token:alice'"),
    )
    found = await store.verify_ledger()
    assert 77 in named(found)


async def test_an_end_that_was_cut_off_is_found_also_if_its_shard_was_set_back(
    store: Store, place: Place
) -> None:
    await a_ledger(store)
    ((head, seal),) = place.rows("SELECT head, seal FROM lane")
    await finished(store, "r8")
    await checkpoint(store)
    forge(
        place,
        *("DELETE FROM ledger WHERE n = 5", SPENT.format("-200 WHERE name = 'token:alice'")),
        f"UPDATE lane SET postings = 4, head = {literal(place, head)},"
        f" seal = {literal(place, seal)}",
    )
    found = await store.verify_ledger()
    assert [(fault.row, fault.what) for fault in found.faults] == [
        (4, "a checkpoint sealed 5 postings, and 4 are there: its end is missing after row 4")
    ]


async def test_a_shard_that_is_gone_with_all_its_postings_is_found(
    store: Store, place: Place
) -> None:
    await a_ledger(store)
    forge(place, "DELETE FROM ledger", "DELETE FROM lane", "UPDATE purse SET spent = 0")
    found = await store.verify_ledger()
    assert any("a checkpoint sealed 4 postings" in fault.what for fault in found.faults)


async def test_a_ledger_that_was_set_back_as_a_whole_lacks_the_seal_that_was_kept(
    store: Store, place: Place
) -> None:
    await a_ledger(store)
    kept = (await store.verify_ledger()).seal
    assert (await store.verify_ledger(expected=kept)).ok
    forge(
        place,
        *("DELETE FROM ledger", "DELETE FROM lane", "UPDATE purse SET spent = 0"),
        *("DELETE FROM checkpoint WHERE n > 1", "DELETE FROM sealed WHERE lane <> ''"),
    )
    assert (await store.verify_ledger()).ok
    found = await store.verify_ledger(expected=kept)
    assert "set back" in found.faults[0].what


async def test_with_another_secrets_file_nothing_fits_and_it_is_said(
    store: Store, place: Place
) -> None:
    await a_ledger(store)
    await store.close()
    place.secrets.unlink()
    secrets_file.create(place.secrets)
    other = await place.open(exclusive=False)
    found = await other.verify_ledger()
    await other.close()
    assert any("another secrets file" in fault.what for fault in found.faults)


async def test_text_that_is_no_text_any_more_is_found_in_sqlite(store: Store, place: Place) -> None:
    await a_ledger(store)
    forge(place, "UPDATE ledger SET run = CAST(x'72ff' AS TEXT) WHERE n = 3")
    assert named(await store.verify_ledger()) == {3}


async def test_a_ledger_that_grows_meanwhile_fits(store: Store) -> None:
    is_over = asyncio.Event()

    async def calls(name: str) -> None:
        i = 0
        while not is_over.is_set():
            i += 1
            await finished(store, f"{name}-{i}")

    async with asyncio.TaskGroup() as group:
        for name in "abcdefgh":
            group.create_task(calls(name))
        for _ in range(8):
            await checkpoint(store)
            found = await store.verify_ledger()
            assert found.faults == []
        is_over.set()
    assert (await store.verify_ledger()).postings > 8


async def test_a_posting_that_cannot_be_written_leaves_no_gap(store: Store) -> None:
    turns = [claimed(await store.turns.claim(a_claim(f"r{i}"))) for i in range(5)]
    finishes = [a_finish(turn) for turn in turns]
    finishes[1] = a_finish(turns[1], debits=(Debit(LONE_SURROGATE, 1),))
    finishes[3] = a_finish(turns[3], code=LONE_SURROGATE)
    ended = await asyncio.gather(
        *[store.turns.finish(finish) for finish in finishes], return_exceptions=True
    )
    assert [isinstance(end, Internal) for end in ended] == [False, True, False, True, False]
    await finished(store, "after")
    found = await store.verify_ledger()
    assert (found.faults, found.postings) == ([], 4)


async def test_a_full_disk_under_sqlite_leaves_no_gap(store: Store, place: Place) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    pages = place.rows("PRAGMA page_count")[0][0]
    await store._database.execute(f"PRAGMA max_page_count = {pages}")  # noqa: SLF001
    with pytest.raises(Exception, match="full"):
        await store.turns.finish(a_finish(turn, events=b"x" * 1_000_000))
    await store._database.execute("PRAGMA max_page_count = 1000000")  # noqa: SLF001
    await store.turns.finish(a_finish(turn))
    await finished(store, "r2")
    found = await store.verify_ledger()
    assert (found.faults, found.postings) == ([], 2)


@pytest.mark.parametrize("point", ["t3.begin:4", "t3.before_commit:4", "t3.after_commit:4"])
async def test_after_a_kill_the_ledger_fits_before_and_after_the_next_start(
    place: Place, point: str
) -> None:
    _, code = run_victim(place, "work", "w", crash_at=point)
    assert code == KILLED
    beside = await place.open(exclusive=False)
    assert (await beside.verify_ledger()).faults == []
    await beside.close()
    if place.postgres:
        place.end_leases()
    store = await place.start()
    await finished(store, "after")
    found = await store.verify_ledger()
    assert found.faults == []
    assert found.shards == 2
    # What the killed one left unsealed was sealed by the start.
    assert place.rows("SELECT COUNT(*) FROM sealed WHERE lane <> ''") == [(1,)]
    await store.close()
    assert place.rows("SELECT COUNT(*) FROM sealed WHERE lane <> ''") == [(2,)]


async def test_several_postgres_writers_have_a_shard_each(store: Store, place: Place) -> None:
    others = [await place.start() for _ in range(2)]
    stores = [store, *others]

    async def calls(number: int) -> None:
        for i in range(12):
            await finished(stores[number], f"s{number}-{i}")
            if i % 4 == 0:
                await stores[number]._seal()  # noqa: SLF001  all of them at once

    await asyncio.gather(*[calls(number) for number in range(3)])
    for other in others:
        await other.close()
    found = await store.verify_ledger()
    assert (found.faults, found.postings, found.shards) == ([], 36, 3)


async def test_after_a_postgres_commit_that_nobody_knows_of_a_new_shard_begins(
    store: Store, place: Place
) -> None:
    await finished(store, "before")
    turn = claimed(await store.turns.claim(a_claim("unknown")))
    end_upkeep(store)
    async with waiting_commits(place), outside(place) as killer:
        waiting = asyncio.ensure_future(store.turns.finish(a_finish(turn)))
        await kill_who_waits_for(killer, "SyncRep")
        with pytest.raises(OutcomeUnknown):
            await waiting
    await finished(store, "after")
    found = await store.verify_ledger()
    assert (found.faults, found.postings, found.shards) == ([], 3, 2)


async def test_postings_from_before_the_chain_are_counted_and_sealed(place: Place) -> None:
    early = await place.open(exclusive=False)
    for i in range(3):
        place.rows(PREDATING.format(i))
    place.rows("INSERT INTO purse (name, spent, reserved) VALUES ('token:alice', 300, 0)")
    found = await early.verify_ledger()  # nothing has sealed them yet
    assert (found.faults, found.postings, found.unchained, found.shards) == ([], 3, 3, 0)
    await early.close()
    store = await place.start()
    await finished(store)
    found = await store.verify_ledger()
    assert (found.faults, found.postings, found.unchained, found.shards) == ([], 4, 3, 1)
    forge(place, "UPDATE ledger SET credit = 'agent:mine' WHERE turn = 't1'")
    (fault,) = (await store.verify_ledger()).faults
    assert "3 postings from before the chain are not the ones" in fault.what
    await store.close()


async def test_a_sqlite_ledger_of_the_first_layout_is_taken_over(place: Place) -> None:
    with closing(sqlite3.connect(place.database, isolation_level=None)) as connection:
        migrate(connection, migrations("sqlite")[:1], now=1)
        for i in range(2):
            connection.execute(PREDATING.format(i))
        connection.execute("INSERT INTO purse VALUES ('token:alice', 200, 0)")
    store = await place.start()
    await finished(store)
    found = await store.verify_ledger()
    assert (found.faults, found.postings, found.unchained) == ([], 3, 2)
    await store.close()


async def test_what_is_pruned_leaves_the_ledger_whole(store: Store) -> None:
    for i in range(5):
        turn = claimed(await store.turns.claim(a_claim(f"r{i}", now=0)))
        await store.turns.finish(a_finish(turn, now=0))
    await checkpoint(store)
    assert (await store.prune(turn_days=1, event_days=1)).turns == 4
    found = await store.verify_ledger()
    assert (found.faults, found.postings) == ([], 5)


async def test_a_checkpoint_is_written_each_minute_in_which_something_was_posted(
    store: Store, place: Place
) -> None:
    def count() -> int:
        return int(place.rows("SELECT COUNT(*) FROM checkpoint")[0][0])

    assert count() == 1  # with the first start
    await checkpoint(store)
    assert count() == 1
    await finished(store)
    await store.upkeep()
    assert count() == 1
    await checkpoint(store)
    assert count() == 2


@pytest.mark.parametrize("change", ["UPDATE checkpoint SET at = 1", "DELETE FROM checkpoint"])
async def test_the_database_itself_refuses_to_change_a_checkpoint(
    store: Store, place: Place, change: str
) -> None:
    await a_ledger(store)
    with pytest.raises(Exception, match="append-only"):
        place.rows(change)


async def test_progress_is_told(store: Store) -> None:
    await a_ledger(store)
    counts: list[int] = []
    await store.verify_ledger(progress=counts.append)
    assert counts == [4]
