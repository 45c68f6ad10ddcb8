"""`carnet restore`: a backup is put back whole, by whoever may, or nothing is changed."""

import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from carnet.testing.wait import until
from tests.stores.former.house import HERE
from tests.stores.support.organisations import House

USAGE = 2


@pytest.fixture
def house(driver: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[House]:
    """A gateway that runs, on either store."""
    url = request.getfixturevalue("empty") if driver == "postgres" else ""
    house = House(tmp_path / "acme", url)
    house.start()
    yield house
    house.stop()


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> House:
    """A store that no gateway uses, and a backup of it."""
    house = House(tmp_path_factory.mktemp("quiet") / "acme")
    house.start()
    house.call("conv_kept")
    house.stop()
    house.carnet("backup", "kept.db", "--with-secrets")
    return house


def refused(house: House, *words: str, says: str) -> None:
    """A restore is refused with a sentence, and nothing is changed."""
    before = house.rows("SELECT n, state FROM turn ORDER BY n")
    ran = house.try_carnet("restore", *words)
    assert (ran.returncode, says in ran.stderr) == (USAGE, True), ran.stderr
    assert house.rows("SELECT n, state FROM turn ORDER BY n") == before
    assert [path.name for path in house.folder.rglob(".restore-*")] == []


def test_what_was_kept_is_answered_again_and_what_came_later_is_gone(house: House) -> None:
    first = house.call("conv_first")
    token = house.new_token("alice", "--scope", "call:*")
    house.carnet("backup", "kept.db")
    house.call("conv_later")
    house.carnet("tokens", "revoke", "alice")
    refused(house, "kept.db", "--force", says="Stop")
    assert house.stop() == 0
    refused(house, "kept.db", says="--force")
    ran = house.carnet("restore", "kept.db", "--force")
    assert "Restored 1 turn, 1 posting, 2 tokens and 0 peers from kept.db" in ran.stdout
    assert "What came after that backup is not in it" in ran.stderr
    house.start()
    assert house.call("conv_first").body == first.body
    assert house.postings() == 1
    assert house.chat("hi", "echo", token=token).status == 200  # it was good when it was kept
    house.call("conv_later")
    page = house.json("ledger", "verify")
    assert (page["ok"], page["postings"]) == (True, 3)


def test_a_backup_of_one_store_is_restored_to_the_other_as_it_is_empty(
    tmp_path: Path, empty: str
) -> None:
    house = House(tmp_path / "acme")
    house.start()
    first = house.call("conv_first")
    house.stop()
    house.carnet("backup", "from-sqlite.db")
    house.use(empty)
    house.carnet("restore", "from-sqlite.db")  # which makes the layout
    house.start()
    assert house.call("conv_first").body == first.body
    house.stop()
    house.carnet("backup", "from-postgres.db")
    house.use("sqlite:var/new.db")
    page = house.json("restore", "from-postgres.db")
    assert (page["store"], page["rows"]["turn"], page["migrations"]) == ("sqlite:var/new.db", 1, 0)
    house.start()
    assert house.call("conv_first").body == first.body
    house.stop()


def test_a_sqlite_backup_of_the_former_release_is_brought_to_todays_layout(
    tmp_path: Path,
) -> None:
    house = House(tmp_path / "acme")
    former = tmp_path / "former.db"
    with closing(sqlite3.connect(former)) as database:
        database.executescript((HERE / "sqlite.sql").read_text())
        migrations = database.execute("SELECT MAX(n) FROM migration").fetchone()[0]
    data = former.read_bytes()
    shutil.copy(HERE / "secrets.key", house.folder / "var" / "secrets.key")
    (house.folder / "var" / "secrets.key").chmod(0o600)
    page = house.json("restore", str(former), "--force")
    assert page["migrations"] > 0
    assert page["rows"]["turn"] > 0
    assert former.read_bytes() == data  # it is only read
    ((now,),) = house.rows("SELECT MAX(n) FROM migration")
    assert now > migrations
    assert house.rows("SELECT 1 FROM run WHERE id = 'done'") == [(1,)]


def test_a_sqlite_backup_of_a_newer_release_says_so(quiet: House) -> None:
    newer = quiet.folder / "newer.db"
    shutil.copy(quiet.folder / "kept.db", newer)
    with closing(sqlite3.connect(newer)) as database:
        database.execute("INSERT INTO migration VALUES (9999, 'of_tomorrow', 'x', 1)")
        database.commit()
    refused(quiet, "newer.db", "--force", says="written by a newer Carnet")


def test_what_is_no_sqlite_backup_is_not_restored(quiet: House) -> None:
    (quiet.folder / "diary.db").write_text("dear diary, " * 1000)
    refused(quiet, "diary.db", "--force", says="not a SQLite database")
    with closing(sqlite3.connect(quiet.folder / "other.db")) as database:
        database.execute("CREATE TABLE dear (diary TEXT)")
    refused(quiet, "other.db", "--force", says="is no store of Carnet")
    refused(quiet, "none.db", "--force", says="There is no file none.db")
    refused(quiet, "var/carnet.db", "--force", says="is the store itself")


def test_a_damaged_sqlite_backup_is_not_restored(quiet: House) -> None:
    root = quiet.rows("SELECT rootpage FROM sqlite_schema WHERE name = 'journal_turn'")[0][0]
    data = bytearray((quiet.folder / "kept.db").read_bytes())
    data[(root - 1) * 8192 : root * 8192] = b"\xff" * 8192
    (quiet.folder / "damaged.db").write_bytes(data)
    refused(quiet, "damaged.db", "--force", says="damaged")


def test_a_sqlite_backup_that_was_made_with_other_secrets_is_not_restored(
    quiet: House, tmp_path: Path
) -> None:
    other = House(tmp_path / "other")
    refused(other, str(quiet.folder / "kept.db"), "--force", says="cp ")
    shutil.copy(quiet.folder / "kept.db.secrets", other.folder / "var" / "secrets.key")
    other.carnet("restore", str(quiet.folder / "kept.db"), "--force")
    assert other.json("ledger", "verify")["ok"]
    assert other.rows("SELECT id FROM run") == [("conv_kept",)]


@pytest.mark.parametrize("damage", ["a table", "its layout"])
def test_a_damaged_sqlite_store_is_replaced_by_its_backup_or_set_aside(
    quiet: House, tmp_path: Path, damage: str
) -> None:
    house = House(tmp_path / "acme")
    shutil.copy(quiet.folder / "var" / "secrets.key", house.folder / "var" / "secrets.key")
    store = house.folder / "var" / "carnet.db"
    named = "SELECT rootpage FROM sqlite_schema WHERE name = 'token'"
    page = house.rows(named)[0][0] - 1 if damage == "a table" else 1
    data = bytearray(store.read_bytes())
    end = (page + 1) * 8192 if damage == "a table" else len(data)
    data[page * 8192 : end] = b"\xff" * (end - page * 8192)
    store.write_bytes(data)
    kept = str(quiet.folder / "kept.db")
    assert house.try_carnet("restore", kept).returncode == USAGE
    ran = house.try_carnet("restore", kept, "--force")
    if damage == "its layout":
        assert (ran.returncode, "set it aside" in ran.stderr) == (USAGE, True), ran.stderr
        subprocess.run(ran.stderr.splitlines()[-1], shell=True, check=True)  # noqa: S602  as told
        ran = house.try_carnet("restore", kept)
    assert ran.returncode == 0, ran.stderr
    house.start()
    assert house.call("conv_kept", token=quiet.token).status == 200
    assert house.postings() == 1
    house.stop()


def test_a_command_that_has_the_sqlite_store_open_sees_what_was_restored(
    quiet: House, tmp_path: Path
) -> None:
    house = House(tmp_path / "acme")
    shutil.copy(quiet.folder / "var" / "secrets.key", house.folder / "var" / "secrets.key")
    with closing(sqlite3.connect(house.folder / "var" / "carnet.db")) as beside:
        assert beside.execute("SELECT COUNT(*) FROM run").fetchone() == (0,)
        house.carnet("restore", str(quiet.folder / "kept.db"), "--force")
        until(lambda: beside.execute("SELECT id FROM run").fetchall() == [("conv_kept",)])
