"""`carnet ledger verify`, as an operator types it."""

import io
import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from carnet.cli.progress import ProgressLine
from tests.stores.support.organisations import House


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path / "acme")
    yield house
    house.stop()


def test_the_ledger_is_verified_beside_a_gateway_and_a_change_is_named(house: House) -> None:
    house.start()
    for name in ("conv_a", "conv_b", "conv_c"):
        house.call(name)
    ran = house.carnet("ledger", "verify")
    assert ran.stdout.startswith("The ledger is as it was written.\n  3 postings in 1 shard\n")
    assert "debits 0.0006, credits 0.0006 credits" in ran.stdout
    assert ran.stderr == ""  # nobody looks at a terminal
    house.stop()
    seal = house.json("ledger", "verify")["seal"]
    house.carnet("ledger", "verify", "--expect", seal.upper())
    assert house.try_carnet("ledger", "verify", "--expect", "00" * 32).returncode == 4
    ran = house.try_carnet("ledger", "verify", "--expect", seal[:8])
    assert (ran.returncode, "64 hexadecimal digits" in ran.stderr) == (2, True)

    with closing(sqlite3.connect(house.folder / "var" / "carnet.db")) as connection:
        connection.execute("DROP TRIGGER ledger_unchanged")
        connection.execute("UPDATE ledger SET credit = 'agent:mine' WHERE n = 2")
        connection.commit()
    ran = house.try_carnet("ledger", "verify")
    assert ran.returncode == 4
    assert "row 2, shard " in ran.stdout
    assert "the posting is not as it was written" in ran.stdout
    assert "Keep a copy of the database" in ran.stdout
    assert house.carnet("ledger").stdout.splitlines()[2].split()[0] == "2"  # where it is found
    for copying in (("backup", "kept.db"), ("migrate", "--to", "sqlite:var/other.db")):
        ran = house.carnet(*copying)
        assert "Warning: The ledger does not verify (1 fault)" in ran.stderr
    ran = house.try_carnet("ledger", "verify", "--format", "json")
    assert ran.returncode == 4
    page = json.loads(ran.stdout)
    assert (page["ok"], page["fault_count"], page["postings"]) == (False, 1, 3)
    assert [fault["row"] for fault in page["faults"]] == [2]
    assert house.json("ledger", "--run", "conv_b")["entries"][0]["credit"] == "agent:mine"


def test_a_ledger_that_cannot_be_read_is_said_in_words(house: House) -> None:
    house.start()
    house.call("conv_a")
    house.stop()
    root = house.rows("SELECT rootpage FROM sqlite_schema WHERE name = 'ledger'")[0][0]
    with (house.folder / "var" / "carnet.db").open("r+b") as file:
        file.seek((root - 1) * 8192)
        file.write(b"\xff" * 8192)
    ran = house.try_carnet("ledger", "verify")
    assert ran.returncode == 2
    assert "[store] url" in ran.stderr
    assert "Traceback" not in ran.stderr


class Terminal(io.StringIO):
    """Where a person looks."""

    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream, shown in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        with ProgressLine("rows") as progress:
            progress.so_far(2000)
            progress.of_table("turn", 2000, 4000)
        assert ("2,000 rows" in stream.getvalue()) is shown
        assert ("turn: 2,000 of 4,000 rows" in stream.getvalue()) is shown
