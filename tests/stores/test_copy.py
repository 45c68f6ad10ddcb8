"""Moving a store: nothing that was acknowledged is lost, and nothing is left half done."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from carnet.stores import snapshots, tables
from carnet.stores.migration import migrations
from carnet.stores.open import database_path
from carnet.wire.crypto.ed25519 import public_of, write_public_key
from tests.stores.support import servers
from tests.stores.support.organisations import House

KILLED = -9
TABLES_OF_SQLITE = "SELECT name FROM sqlite_schema WHERE type = 'table'"
TABLES_OF_POSTGRES = (
    "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
    " AND table_type = 'BASE TABLE' AND table_name <> 'migration_as_applied'"
)
COLUMNS_OF_POSTGRES = (
    "SELECT column_name FROM information_schema.columns WHERE table_name = ?"
    " AND table_schema = current_schema()"
)


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    house = House(tmp_path / "acme")
    yield house
    house.stop()


def test_a_store_that_is_moved_to_postgres_and_back_answers_as_before(
    house: House, empty: str
) -> None:
    house.start()
    alice = house.new_token("alice", "--scope", "call:*", "--scope", "pay")
    house.carnet("peers", "add", "globex.example", "--url", "https://gw.globex.example")
    first = house.call("conv_first", token=alice)
    assert house.stop() == 0
    for url in (empty, "sqlite:var/back.db"):
        ran = house.carnet("migrate", "--to", url)
        assert "Moved " in ran.stdout
        assert f'\n    url = "{url}"\n' in ran.stderr
        house.use(url)
        house.start()
        before = house.postings()
        again = house.call("conv_first", token=alice)
        assert again.body == first.body
        assert again.headers["x-tangle-turnid"] == first.headers["x-tangle-turnid"]
        assert house.postings() == before  # and nobody was billed again
        assert house.call(f"conv_{before}", token=alice).text == f"this is conv_{before}"
        assert house.postings() == before + 1
        (peer,) = house.json("peers", "list")["peers"]
        assert peer["domain"] == "globex.example"
        assert house.json("ledger", "verify")["ok"]
        assert house.stop() == 0
    page = house.json("ledger", "verify")
    assert (page["ok"], page["postings"], page["shards"]) == (True, 3, 3)


def test_keys_nonces_receipts_tasks_and_deliveries_are_moved_with_a_store(
    house: House, empty: str
) -> None:
    key = write_public_key(public_of(b"\x01" * 32))
    house.carnet("peers", "add", "agent://globex.example", "--key", key, "--kid", "k2")
    house.carnet("peers", "revoke-key", "agent://globex.example")
    house.carnet("keys", "rotate")
    house.rows(
        "INSERT INTO nonce (n, sender, nonce, expires) VALUES (7, 'agent://b', 'x', 1 << 60)"
    )
    house.rows("INSERT INTO receipt (turn, attempt, jws) VALUES (5, 2, 'a.b.c')")
    house.rows("INSERT INTO task (turn, id, sender) VALUES (5, 'x', 's')")
    house.rows("INSERT INTO kept_call (turn, sealed, key_id) VALUES (5, x'0102', 'k')")
    house.rows("INSERT INTO step (turn, place, name, data, crc) VALUES (5, 0, 'pay', x'31', 7)")
    house.rows(
        "INSERT INTO outbox (n, id, kind, receiver, url, body, secret_of, learned, state, attempts,"
        " due, fence, created) VALUES (4, 'msg_1', 'callback', 'r', 'u', x'7b7d', 's', 1,"
        " 'pending', 3, 1 << 60, 2, 1)"
    )
    house.rows("INSERT INTO receiver (name, paused_until, failures) VALUES ('r', 1 << 60, 3)")
    house.rows("INSERT INTO gone (owner, url, at) VALUES ('a', 'https://x', 5)")
    looks = (
        lambda: house.json("keys", "list", "--all"),
        lambda: house.json("peers", "list"),
        lambda: house.rows("SELECT n, sender, nonce, expires FROM nonce"),
        lambda: house.rows("SELECT turn, attempt, jws FROM receipt"),
        lambda: house.rows(
            "SELECT turn, id, sender, sealed, key_id FROM task NATURAL JOIN kept_call"
        ),
        lambda: house.rows("SELECT turn, place, name, data, crc FROM step"),
        lambda: house.rows("SELECT n, id, body, state, attempts, due, fence FROM outbox"),
        lambda: house.rows("SELECT name, paused_until, failures FROM receiver"),
        lambda: house.rows("SELECT owner, url, at FROM gone"),
    )
    before = [look() for look in looks]
    for url in (empty, "sqlite:var/back.db"):
        house.carnet("migrate", "--to", url)
        house.use(url)
        assert [look() for look in looks] == before
        house.start()  # the key can be opened: it would not start otherwise
        assert house.json("keys", "list", "--all") == before[0]
        house.stop()
        if url == empty:
            insert = "INSERT INTO nonce (sender, nonce, expires) VALUES ('agent://b', 'y', 1)"
            assert house.rows(f"{insert} RETURNING n") == [(8,)]
            house.rows("DELETE FROM nonce WHERE n = 8")


def test_a_store_that_a_gateway_uses_is_not_moved(house: House, empty: str) -> None:
    house.start()
    ran = house.try_carnet("migrate", "--to", empty)
    assert ran.returncode == 2
    assert "is using" in ran.stderr
    assert "Stop it, then move" in ran.stderr
    house.stop()
    house.carnet("migrate", "--to", empty)
    house.use(empty)
    house.start()
    ran = house.try_carnet("migrate", "--to", "sqlite:var/back.db")
    assert (ran.returncode, "Stop them first" in ran.stderr) == (2, True)
    assert not (house.folder / "var" / "back.db").exists()


def test_a_target_that_holds_something_is_refused(house: House, empty: str) -> None:
    house.carnet("migrate", "--to", empty)
    ran = house.try_carnet("migrate", "--to", empty)
    assert (ran.returncode, "The target is not empty" in ran.stderr) == (2, True)
    ran = house.try_carnet("migrate", "--to", "sqlite:var/carnet.db")
    assert (ran.returncode, "at that place already" in ran.stderr) == (2, True)
    (house.folder / "var" / "other.db").touch()
    ran = house.try_carnet("migrate", "--to", "sqlite:var/other.db")
    assert (ran.returncode, "exists already" in ran.stderr) == (2, True)
    (house.folder / "var" / "left.db-wal").write_bytes(b"of a database that was set aside")
    ran = house.try_carnet("migrate", "--to", "sqlite:var/left.db")
    assert (ran.returncode, "left.db-wal belongs to" in ran.stderr) == (2, True)


def test_a_target_that_cannot_be_used_is_named_with_a_next_step(house: House) -> None:
    for url, message in (
        ("postgresql://a:secret@h/x", "PGPASSWORD"),
        ("elsewhere", "should be"),
        ("postgresql://a@127.0.0.1:9/x", "nobody answers there"),
        ("sqlite:none/x.db", "mkdir -p"),
    ):
        ran = house.try_carnet("migrate", "--to", url)
        assert (ran.returncode, message in ran.stderr) == (2, True), ran.stderr
        assert "secret" not in ran.stderr


def test_a_move_that_is_killed_leaves_the_target_empty_and_the_source_as_it_was(
    house: House, empty: str
) -> None:
    house.start()
    first = house.call("conv_first")
    house.stop()
    database = house.folder / "var" / "carnet.db"
    before = database.read_bytes()
    layouts = len(migrations("postgres"))
    for nth in (1, layouts + 1, layouts + 4):  # the layout, the first table, the ledger
        ran = house.try_carnet("migrate", "--to", empty, env={"CRASH_AT": f"migrate.mid:{nth}"})
        assert ran.returncode == KILLED, ran.stderr
        assert servers.rows(empty, "SELECT to_regclass('run') IS NULL") == [(True,)]
        assert database.read_bytes() == before
    house.carnet("migrate", "--to", empty)
    house.use(empty)
    ran = house.try_carnet(
        "migrate", "--to", "sqlite:var/back.db", env={"CRASH_AT": "migrate.mid:5"}
    )
    assert ran.returncode == KILLED
    assert not (house.folder / "var" / "back.db").exists()
    house.start()
    assert house.call("conv_first").body == first.body


def test_every_table_is_copied_or_known_to_stay_behind(
    house: House, server: servers.Server
) -> None:
    house.carnet("tokens", "list")
    url = server.fresh()
    with closing(sqlite3.connect(database_path(house.store, house.folder))) as connection:
        ours = {name for (name,) in connection.execute(TABLES_OF_SQLITE)}
        theirs = {name for (name,) in servers.rows(url, TABLES_OF_POSTGRES)}
        assert set(tables.MOVED) <= ours & theirs
        assert ours | theirs == {*tables.MOVED, *tables.LEFT_BEHIND}
        for table in tables.MOVED:
            there = {name for (name,) in servers.rows(url, COLUMNS_OF_POSTGRES, (table,))}
            here = {row[1] for row in connection.execute(f"PRAGMA table_info({table})")}
            assert there - {"x"} == here, table


def test_large_tables_are_copied_piece_by_piece(house: House, empty: str) -> None:
    rows = ", ".join(f"('m{i}', 'x')" for i in range(snapshots.AT_A_TIME + 5))
    house.rows(f"INSERT INTO meta (name, value) VALUES {rows}, ('running', 'w')")  # noqa: S608
    house.carnet("migrate", "--to", empty)
    house.use(empty)
    assert house.rows("SELECT COUNT(*) FROM meta WHERE name LIKE 'm%'") == [
        (snapshots.AT_A_TIME + 5,)
    ]


def test_what_postgres_cannot_hold_is_refused_and_nothing_is_kept(house: House, empty: str) -> None:
    for text in ("CAST(x'61ff' AS TEXT)", "CAST(x'610062' AS TEXT)"):  # no UTF-8; a NUL
        house.rows(f"INSERT INTO meta (name, value) VALUES ('bad', {text})")  # noqa: S608
        ran = house.try_carnet("migrate", "--to", empty)
        assert (ran.returncode, "nothing was kept" in ran.stderr) == (2, True), ran.stderr
        assert servers.rows(empty, "SELECT to_regclass('run') IS NULL") == [(True,)]
        house.rows("DELETE FROM meta")


def test_prune_works_on_postgres_from_the_command_line(house: House, empty: str) -> None:
    house.start()
    for i in range(3):
        house.call(f"conv_{i}")
    house.kill()  # a store that was left in disorder can be moved too
    house.carnet("migrate", "--to", empty)
    house.use(empty)
    house.rows("UPDATE turn SET ended = 1")
    assert house.json("prune", "--dry-run")["turns"] == 2  # the newest stays
    assert house.json("prune")["turns"] == 2
    assert house.json("ledger", "verify")["postings"] == 3
