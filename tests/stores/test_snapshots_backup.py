"""Backups: taken while the gateway runs, complete, and good to serve from."""

import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.stores.support.organisations import House


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
    """A store that no gateway uses."""
    house = House(tmp_path_factory.mktemp("quiet") / "acme")
    house.start()
    for i in range(5):
        house.call(f"conv_{i}")
    house.stop()
    return house


def leftovers(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.endswith((".part", "-wal", "-shm"))]


def test_what_was_acknowledged_before_a_backup_is_served_from_it(house: House) -> None:
    first = house.call("conv_first")
    is_over = threading.Event()

    def call_on() -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            house.call(f"conv_more{number}")

    beside = threading.Thread(target=call_on)
    beside.start()
    try:
        ran = house.carnet("backup", "kept.db")
    finally:
        is_over.set()
        beside.join()
    assert "kept.db holds the whole store" in ran.stdout
    assert "Not inside: the secrets" in ran.stderr
    kept = house.folder / "kept.db"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    house.kill()
    house.use("sqlite:kept.db")  # the old store is gone; this is what was kept
    house.start()
    before = house.postings()
    again = house.call("conv_first")
    assert (again.body, house.postings()) == (first.body, before)
    assert house.call("conv_after").status == 200
    page = house.json("ledger", "verify")
    assert (page["ok"], page["postings"]) == (True, before + 1)


def test_a_backup_of_sqlite_replaces_nothing_unless_told_and_leaves_nothing_behind(
    quiet: House,
) -> None:
    kept = quiet.folder / "kept.db"
    kept.write_text("dear diary")
    ran = quiet.try_carnet("backup", "kept.db")
    assert (ran.returncode, "--force" in ran.stderr) == (2, True)
    assert kept.read_text() == "dear diary"
    page = quiet.json("backup", "kept.db", "--force", "--with-secrets")
    assert (page["file"], page["secrets"]) == ("kept.db", "kept.db.secrets")
    assert page["bytes"] == kept.stat().st_size
    secrets = quiet.folder / "kept.db.secrets"
    assert secrets.read_bytes() == (quiet.folder / "var" / "secrets.key").read_bytes()
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o600
    assert [path for path in leftovers(quiet.folder) if "kept" in path.name] == []


def test_a_place_where_no_backup_of_sqlite_can_be_is_named_with_a_next_step(quiet: House) -> None:
    for file, message in (("none/kept.db", "mkdir -p"), ("var", "is a folder")):
        ran = quiet.try_carnet("backup", file)
        assert (ran.returncode, message in ran.stderr) == (2, True), ran.stderr


def test_a_backup_never_replaces_the_sqlite_store_itself(quiet: House) -> None:
    ran = quiet.try_carnet("backup", "var/carnet.db", "--force")
    assert (ran.returncode, "is the store itself" in ran.stderr) == (2, True)


def test_without_a_sqlite_store_there_is_nothing_to_back_up(quiet: House) -> None:
    env = {"CARNET__STORE__URL": "sqlite:var/none.db"}
    ran = quiet.try_carnet("backup", "none.db", env=env)
    assert (ran.returncode, "There is no store at" in ran.stderr) == (2, True)
    assert not (quiet.folder / "var" / "none.db").exists()


def test_a_damaged_sqlite_store_is_not_taken_for_a_backup(quiet: House) -> None:
    root = quiet.rows("SELECT rootpage FROM sqlite_schema WHERE name = 'journal_turn'")[0][0]
    data = bytearray((quiet.folder / "var" / "carnet.db").read_bytes())
    data[(root - 1) * 8192 : root * 8192] = b"\xff" * 8192
    (quiet.folder / "var" / "damaged.db").write_bytes(data)
    env = {"CARNET__STORE__URL": "sqlite:var/damaged.db"}
    ran = quiet.try_carnet("backup", "bad.db", env=env)
    assert (ran.returncode, "damaged" in ran.stderr) == (2, True), ran.stderr
    assert [path.name for path in quiet.folder.iterdir() if "bad" in path.name] == []
