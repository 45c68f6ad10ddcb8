"""Opening: whatever is wrong is said in words, with a next step, and never as a traceback."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from carnet.errors import CarnetError, ConfigInvalid, StorageUnavailable, UsageInvalid
from carnet.ports.calls.turns import Known
from carnet.ports.trust.trust import NewToken
from carnet.stores.migration import Migration, migrate, migrations, missing
from tests.stores.support.scenes import Place, a_claim, claimed, finished

TOKEN = NewToken(name="cli", scopes=frozenset())

MARK = "SELECT value FROM meta WHERE name = 'running'"


async def test_a_second_gateway_is_refused_and_told_who_has_the_sqlite_store(place: Place) -> None:
    store = await place.start()
    with pytest.raises(UsageInvalid) as caught:
        await place.open()
    assert "Another gateway (process " in caught.value.safe_text
    assert "Stop it first" in caught.value.next_step
    await store.close()
    await (await place.open()).close()


async def test_beside_a_gateway_everything_but_turns_can_be_written(place: Place) -> None:
    store = await place.start()
    beside = await place.open(exclusive=False)
    await beside.start()
    ended = await finished(store)
    assert await beside.records.run("r1", reader=None) == [ended]
    await beside.tokens.create(TOKEN, 7)
    with pytest.raises(StorageUnavailable, match="turns are run by"):
        await beside.turns.claim(a_claim())
    await beside.close()
    assert await store.turns.claim(a_claim()) == Known(ended)
    await store.close()


async def test_a_store_beside_a_gateway_takes_over_none_of_its_turns(place: Place) -> None:
    store = await place.start()
    turn = claimed(await store.turns.claim(a_claim()))
    beside = await place.open(exclusive=False)
    assert await beside.start() == 0
    await beside.close()
    assert (await store.turns.reload(turn)).state == "running"
    await store.close()


async def test_the_command_line_may_be_the_first_to_open_a_sqlite_store(place: Place) -> None:
    beside = await place.open(exclusive=False)
    _, secret = await beside.tokens.create(TOKEN, 7)
    await beside.close()
    store = await place.start()
    assert store.tokens.find(secret) is not None
    await store.close()


def a_text_file(place: Place) -> str:
    place.database.write_text("dear diary, " * 1000)
    return "it is not a SQLite database; move it away"


def a_folder(place: Place) -> str:
    place.database.mkdir()
    return "it cannot be written"


def no_folder(place: Place) -> str:
    place.folder = place.folder / "none"
    return "mkdir -p"


def a_file_as_folder(place: Place) -> str:
    place.database.write_text("")
    place.folder = place.database
    return "mkdir -p"


def other_tables(place: Place) -> str:
    with closing(sqlite3.connect(place.database)) as connection:
        connection.execute("CREATE TABLE run (x)")
    return "table run already exists"


def no_secrets(place: Place) -> str:
    place.secrets.unlink()
    return "put back the copy that was kept with the store"


@pytest.mark.parametrize(
    "spoil", [a_text_file, a_folder, no_folder, a_file_as_folder, other_tables, no_secrets]
)
async def test_what_sqlite_cannot_open_is_named_with_a_next_step(
    place: Place, spoil: Callable[[Place], str]
) -> None:
    expected = spoil(place)
    for exclusive in (True, False):
        with pytest.raises(ConfigInvalid) as caught:
            await place.open(exclusive=exclusive)
        assert caught.value.safe_text.startswith("[store] ")
        assert expected in caught.value.safe_text


@pytest.mark.parametrize("exclusive", [True, False])
async def test_a_folder_that_sqlite_cannot_write_is_named(place: Place, exclusive: bool) -> None:  # noqa: FBT001
    with pytest.raises(CarnetError) as caught:
        await place.open(url="sqlite:/proc/carnet.db", exclusive=exclusive)
    assert isinstance(caught.value, ConfigInvalid)
    assert "cannot be written" in caught.value.safe_text


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite::memory:", "must name a file"),
        ("sqlite:", "must name a file"),
        ("carnet.db", "must name a file"),
    ],
)
async def test_a_url_that_names_no_store_of_ours_is_refused(
    place: Place, url: str, message: str
) -> None:
    with pytest.raises(ConfigInvalid, match=message):
        await place.open(url=url)


@pytest.mark.parametrize(
    "url", ["sqlite:carnet.db", "sqlite:{}/carnet.db", "sqlite://{}/carnet.db"]
)
async def test_a_sqlite_path_is_relative_to_the_base_or_absolute(place: Place, url: str) -> None:
    await (await place.open(url=url.format(place.folder))).close()
    assert place.database.exists()


async def test_a_clean_stop_leaves_no_mark_in_sqlite(place: Place) -> None:
    store = await place.start()
    assert place.rows(MARK) == [(store.worker,)]
    await store.close()
    assert place.rows(MARK) == []


async def test_after_an_unclean_stop_the_sqlite_files_are_checked(place: Place) -> None:
    store = await place.start()
    for i in range(50):
        await finished(store, f"r{i}")
    await store.close()
    place.rows("INSERT INTO meta VALUES ('running', 'a worker that was killed')")
    await (await place.start()).close()
    place.rows("INSERT INTO meta VALUES ('running', 'a worker that was killed')")
    place.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    root = place.rows("SELECT rootpage FROM sqlite_schema WHERE name = 'journal_turn'")[0][0]
    with place.database.open("r+b") as file:
        file.seek((root - 1) * 8192 + 100)
        file.write(b"\xff" * 4000)
    damaged = await place.open()
    with pytest.raises(ConfigInvalid, match="damaged; restore a backup"):
        await damaged.start()
    await damaged.close()
    assert place.rows(MARK) == [("a worker that was killed",)]


async def test_the_layout_is_noted_with_its_checksum(place: Place, driver: str) -> None:
    await (await place.open()).close()
    known = migrations(driver)
    noted = place.rows("SELECT n, name, checksum, applied FROM migration ORDER BY n")
    now = place.clock.wall_us()
    assert noted == [(each.n, each.name, each.checksum, now) for each in known]
    assert len(known[0].statements) > 10


async def test_a_migration_that_was_edited_is_refused(place: Place) -> None:
    await (await place.open()).close()
    place.rows("UPDATE migration SET checksum = 'other'")
    with pytest.raises(ConfigInvalid, match="0001_first was edited after it was applied"):
        await place.open()


async def test_a_database_of_a_newer_version_is_refused(place: Place) -> None:
    await (await place.open()).close()
    place.rows("INSERT INTO migration VALUES (9999, 'future', 'x', 0)")
    with pytest.raises(ConfigInvalid, match="written by a newer Carnet"):
        await place.open()


def test_only_what_is_missing_is_applied_and_all_of_it_or_nothing(tmp_path: Path) -> None:
    known = [
        Migration(1, "a", "CREATE TABLE a (x);\n\nCREATE TABLE b (x);\n"),
        Migration(2, "b", "CREATE TABLE c (x);\n"),
        Migration(3, "c", "CREATE TABLE d (x);\n\nCREATE TABLE a (x);\n"),
    ]
    with closing(sqlite3.connect(tmp_path / "x.db", isolation_level=None)) as connection:
        assert migrate(connection, known[:1], now=1) == 1
        assert migrate(connection, known[:1], now=2) == 0
        with pytest.raises(sqlite3.OperationalError, match="table a already exists"):
            migrate(connection, known, now=3)
        tables = "SELECT name FROM sqlite_schema ORDER BY name"
        assert connection.execute(tables).fetchall() == [("a",), ("b",), ("migration",)]
        assert migrate(connection, known[:2], now=4) == 1
        applied = connection.execute("SELECT n, name, checksum FROM migration").fetchall()
        assert missing(known, applied) == [known[2]]
