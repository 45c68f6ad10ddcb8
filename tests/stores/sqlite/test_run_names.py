"""Names that others chose wait for the index, and are found all the same."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing

import pytest

from carnet.ports.calls.turns import Known
from carnet.ports.trust.trust import NewToken
from carnet.stores.conversations import deletion, statements
from carnet.stores.open import Store
from carnet.stores.sqlite import run_names
from carnet.stores.sqlite.run_names import INSERT_RUN, RunNames
from carnet.stores.trust import people
from carnet.stores.turn.claim_rules import Run
from tests.stores.support.scenes import (
    BOB,
    NOW,
    Place,
    a_claim,
    a_finish,
    claimed,
    end_upkeep,
    finished,
)

OF_INDEX = "SELECT id FROM run INDEXED BY run_named WHERE named = 1"
OF_VIEW = "SELECT n FROM run_by_name WHERE id = ?"


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_names, "MOST_WAITING", 4)
    monkeypatch.setattr(run_names, "MOST_AT_A_TIME", 2)


@pytest.fixture
async def connection(place: Place) -> AsyncIterator[sqlite3.Connection]:
    await (await place.start()).close()
    with closing(sqlite3.connect(place.database, isolation_level=None)) as connection:
        yield connection


def indexed(place: Place) -> list[str]:
    return sorted(name for (name,) in place.rows(OF_INDEX))


async def test_sqlite_takes_names_into_the_index_when_many_wait(store: Store, place: Place) -> None:
    end_upkeep(store)
    for i in range(4):
        await store.turns.claim(a_claim(f"r{3 - i}"))
    assert indexed(place) == []
    seen = []
    for name in ("r4", "r5", "r6"):
        await store.turns.claim(a_claim(name))
        seen.append(indexed(place))
    assert seen == [["r0", "r1"], ["r0", "r1", "r2", "r3"], ["r0", "r1", "r2", "r3"]]
    assert [place.rows(OF_VIEW, f"r{i}") for i in range(7)] == [
        [(n,)] for n in (4, 3, 2, 1, 5, 6, 7)
    ]


async def test_sqlite_indexes_a_name_of_our_own_at_once(store: Store, place: Place) -> None:
    await store.turns.claim(a_claim("ours", is_first=True))
    await store.turns.claim(a_claim("theirs"))
    await store.turns.claim(a_claim("conv_kept-with-a-message"))
    assert indexed(place) == ["conv_kept-with-a-message", "ours"]


async def test_sqlite_looks_for_the_turns_of_conversations_in_the_index_alone(place: Place) -> None:
    """A87: they are looked for again and again, however many names wait."""
    await (await place.start()).close()
    looked_for = (
        *(statements.GIVEN, statements.WAITING, statements.TURN.format("1 = 1")),
        deletion._RUNS.format("?", "1 = 1"),  # noqa: SLF001  the statements as they are
        people._ADOPT_TURNS,  # noqa: SLF001
    )
    for statement in looked_for:
        given = ["x"] * statement.count("?")
        steps = [row[3] for row in place.rows(f"EXPLAIN QUERY PLAN {statement}", *given)]
        assert any("run_named" in step for step in steps), steps
        assert not any("run_unnamed" in step or "AUTOMATIC" in step for step in steps), steps


async def test_sqlite_knows_a_run_before_and_after_its_name_is_indexed(
    store: Store, place: Place
) -> None:
    begun = {}
    for i in range(9):
        begun[i] = claimed(await store.turns.claim(a_claim(f"r{i}")))
        for j in range(i + 1):
            assert await store.turns.claim(a_claim(f"r{j}")) == Known(begun[j])
            assert await store.records.run(f"r{j}", reader=None) == [begun[j]]
    assert 0 < len(indexed(place)) < len(begun)
    assert place.rows("SELECT COUNT(*), MAX(calls) FROM run") == [(9, 1)]
    again = [a_claim(f"r{i}", turn=f"r{i}.t1.echo") for i in begun]
    await asyncio.gather(*map(store.turns.claim, again))
    assert place.rows("SELECT COUNT(*), MIN(calls) FROM run") == [(9, 2)]


async def test_sqlite_tells_the_runs_of_two_payers_with_one_name_apart(
    store: Store, place: Place
) -> None:
    end_upkeep(store)
    hers = claimed(await store.turns.claim(a_claim()))
    his = claimed(await store.turns.claim(a_claim(payer=BOB, actor="token:bob")))
    for i in range(6):
        await store.turns.claim(a_claim(f"other{i}"))
    assert len(indexed(place)) == 4
    assert await store.turns.claim(a_claim()) == Known(hers)
    assert await store.turns.claim(a_claim(payer=BOB, actor="token:bob")) == Known(his)
    assert hers.n != his.n


async def test_sqlite_knows_what_waits_after_a_start(place: Place) -> None:
    store = await place.start()
    begun = [await finished(store, f"r{i}") for i in range(7)]
    await store.close()
    waiting = {name for (name,) in place.rows("SELECT id FROM run WHERE named = 0")}
    assert waiting
    again = await place.start()
    for turn in begun:
        assert await again.turns.claim(a_claim(turn.run)) == Known(turn)
    assert place.rows("SELECT COUNT(*) FROM run") == [(7,)]
    await again.close()


async def test_sqlite_leaves_names_to_the_process_that_writes_turns(
    store: Store, place: Place
) -> None:
    end_upkeep(store)
    for i in range(4):
        await store.turns.claim(a_claim(f"r{i}"))
    beside = await place.open(exclusive=False)
    assert len(await beside.records.run("r1", reader=None)) == 1
    await beside.tokens.create(NewToken(name="ci", scopes=frozenset({"call:*"})), NOW)
    await beside.close()
    assert indexed(place) == []


async def test_sqlite_begins_a_run_anew_whose_row_was_pruned(store: Store, place: Place) -> None:
    for name in ("r1", "r2"):
        await finished(store, name)
    for table in ("turn", "run"):
        place.rows(f"DELETE FROM {table} WHERE n = 1")  # noqa: S608  our own words
    anew = claimed(await store.turns.claim(a_claim()))
    await store.turns.finish(a_finish(anew))
    for i in range(6):
        await store.turns.claim(a_claim(f"other{i}"))
    assert place.rows(OF_VIEW, "r1") == [(3,)]
    assert await store.turns.claim(a_claim()) == Known(await store.turns.reload(anew))


# Against a connection alone: what a transaction may come to.


def waits(names: RunNames, connection: sqlite3.Connection) -> list[int]:
    """The numbers of the runs that wait, as the names know them and as the table does."""
    found = connection.execute("SELECT id, issuer, account FROM run ORDER BY n").fetchall()
    known = {n for *_, n, _ in names.read(connection, found)}
    rows = connection.execute("SELECT n FROM run WHERE named = 0 ORDER BY n").fetchall()
    for known_here in (names, RunNames(connection)):  # law 1
        waiting = known_here._waiting  # noqa: SLF001  what is in memory is what the law is about
        assert sorted(waiting.values()) == [n for (n,) in rows]
    assert sorted(known) == list(range(1, len(known) + 1))
    return [n for (n,) in rows]


def insert(names: RunNames, connection: sqlite3.Connection, *numbers: int) -> None:
    runs = [Run((f"r{n}", "b", "b"), n, 0, 1, 1, is_ours=False) for n in numbers]
    connection.executemany(INSERT_RUN, [(run.n, *run.key, 1, 1, run.is_ours) for run in runs])
    names.add(runs)


async def test_sqlite_forgets_the_names_of_a_transaction_that_is_undone(
    connection: sqlite3.Connection,
) -> None:
    names = RunNames(connection)
    connection.execute("BEGIN")
    insert(names, connection, 1)
    connection.execute("SAVEPOINT one")
    names.mark()
    insert(names, connection, 2)
    names.undo()
    connection.execute("ROLLBACK TO one")
    assert waits(names, connection) == [1]
    names.keep()
    connection.execute("COMMIT")
    connection.execute("BEGIN")
    insert(names, connection, 2, 3)
    names.back()
    connection.execute("ROLLBACK")
    assert waits(names, connection) == [1]


async def test_sqlite_takes_the_same_names_again_where_a_transaction_was_undone(
    connection: sqlite3.Connection,
) -> None:
    names = RunNames(connection)
    connection.execute("BEGIN")
    insert(names, connection, 1, 2, 3, 4)
    connection.execute("COMMIT")
    names.keep()
    assert names.are_many
    for is_kept, left in ((False, [1, 2, 3, 4]), (True, [3, 4]), (False, [3, 4]), (True, [])):
        connection.execute("BEGIN")
        names.begin(connection)
        if is_kept:
            connection.execute("COMMIT")
            names.keep()
        else:
            names.back()
            connection.execute("ROLLBACK")
            assert not names.are_many  # the next transaction goes without: the disk may be full
            assert names.have_changed
            names.keep()
        assert names.are_many == bool(left)
        assert waits(names, connection) == left


async def test_sqlite_holds_up_no_transaction_for_long(
    connection: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_names, "MOST_SECONDS", -1)
    monkeypatch.setattr(run_names, "STEP", 1)
    names = RunNames(connection)
    insert(names, connection, 1, 2, 3, 4)
    names.keep()
    seen = []
    for _ in range(4):
        names.begin(connection)
        names.keep()
        seen.append(waits(names, connection))
    assert seen == [[2, 3, 4], [3, 4], [4], []]


async def test_sqlite_leaves_a_name_that_stands_in_the_index_and_takes_the_others(
    connection: sqlite3.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    names = RunNames(connection)
    connection.execute(INSERT_RUN, (9, "r2", "b", "b", 1, 1, 1))  # by somebody else
    insert(names, connection, 1, 2, 3, 4)
    names.keep()
    for _ in range(2):
        names.begin(connection)
        names.keep()
    assert [row.message for row in caplog.records] == ["the name of a run stands twice"]
    assert connection.execute("SELECT n FROM run WHERE named = 0").fetchall() == [(2,)]
    assert names.read(connection, [("r2", "b", "b")])[0][3] == 2
    insert(names, connection, 5, 6, 7)
    names.keep()
    assert not names.are_many  # of those that can go there are three
