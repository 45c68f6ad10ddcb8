"""One gateway whose store fails: full, locked, broken, damaged."""

import json
import os
import resource
import shutil
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import pytest

from carnet.testing.history import History
from carnet.testing.wait import PATIENCE_SECONDS, until
from tests.faults.scene import HELD, HELD_CONFIG, ids, open_calls, turns
from tests.faults.stores import rows
from tests.support.federation import organisation
from tests.support.http import Reply
from tests.support.organisation import Organisation
from tests.support.served import AGENTS

BEHIND = 11  # calls that come behind one that waits for a lock


@contextmanager
def no_room(gateway: Organisation) -> Iterator[None]:
    """No file of the gateway may grow beyond the largest of its store: a disk that is full."""
    limit(gateway, max(path.stat().st_size for path in database(gateway).parent.iterdir()))
    try:
        yield
    finally:
        limit(gateway, resource.RLIM_INFINITY)


def limit(gateway: Organisation, most: int) -> None:
    """The process may write no further than that in any file."""
    assert gateway.process is not None
    resource.prlimit(gateway.process.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Organisation:
    gateway = organisation(tmp_path_factory.mktemp("storage") / "acme", "acme.example")
    gateway.configure(HELD_CONFIG, agents=AGENTS + HELD)
    return gateway


@pytest.fixture(scope="module")
def scraper(shared: Organisation) -> str:
    return shared.new_token("scraper", "--scope", "metrics")


@pytest.fixture
def acme(shared: Organisation) -> Iterator[Organisation]:
    shared.start()
    yield shared
    assert shared.stop() == 0


def ask(gateway: Organisation, run: str, text: str = "hi", agent: str = "paid") -> Reply:
    return gateway.chat(text, agent, headers=ids(run))


def database(gateway: Organisation) -> Path:
    return gateway.folder / "var" / "carnet.db"


@contextmanager
def lock_held(gateway: Organisation) -> Iterator[None]:
    """Another process (ours) is in the middle of a write."""
    with closing(sqlite3.connect(database(gateway), timeout=5)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        yield
        holder.rollback()


def test_f11_a_full_disk_is_503_and_passes_without_a_restart(acme: Organisation) -> None:
    history = History()
    first = ask(acme, "conv_before")
    history.ok("conv_before", first.text)
    with no_room(acme):
        numbers = count()

        def is_unready() -> bool:
            """A small write of upkeep may still fit, and says that there is room."""
            run, refused = _fail_soon(acme, f"conv_full_{next(numbers)}", history)
            history.refused(run)
            assert (refused.status, refused.code) == (503, "storage_unavailable")
            return acme.get("/readyz").status == 503

        until(is_unready)
        assert ask(acme, "conv_before").body == first.body  # what is there can be read
        assert acme.get("/runs/conv_before").status == 200
    assert ask(acme, "conv_after").status == 200
    history.ok("conv_after", "hi")
    assert acme.get("/readyz").status == 200
    ours = "SELECT run FROM ledger WHERE run IN ('conv_before', 'conv_after') OR run LIKE ?"
    found = {run: ["hi"] for (run,) in rows(acme, ours, "conv_full%")}
    assert history.faults(found) == []
    assert rows(acme, "PRAGMA integrity_check") == [("ok",)]


def test_f11_a_replay_does_not_make_a_full_store_ready(acme: Organisation) -> None:
    ask(acme, "conv_replayed")
    with no_room(acme):
        numbers = count()

        def is_unready() -> bool:
            _fail_soon(acme, f"conv_together_{next(numbers)}", History())
            ask(acme, "conv_replayed")
            return acme.get("/readyz").status == 503

        until(is_unready)


def _fail_soon(gateway: Organisation, prefix: str, history: History) -> tuple[str, Reply]:
    """Ask until the rest of the room is used up; the first call that was not answered."""
    for number in range(2000):
        run = f"{prefix}_{number}"
        reply = ask(gateway, run)
        if reply.status != 200:
            return run, reply
        history.ok(run, reply.text)
    raise AssertionError("there was always room")


def test_f11_a_turn_that_finds_the_disk_full_at_its_end_is_not_told_as_done(
    acme: Organisation,
) -> None:
    replies: list[Reply] = []
    asking = threading.Thread(target=lambda: replies.append(ask(acme, "conv_end", "go", "held")))
    asking.start()
    until(lambda: turns(acme, "conv_end") == [("running", None)])
    with no_room(acme):
        _fail_soon(acme, "conv_crammed", History())
        (acme.folder / "go").touch()
        asking.join(PATIENCE_SECONDS)
        assert (replies[0].status, replies[0].code) == (503, "storage_unavailable")
    until(lambda: turns(acme, "conv_end") == [("unknown", "outcome_unknown")])
    assert ask(acme, "conv_end", "go", "held").text == "half whole "


def test_f12_a_write_that_fails_is_never_acknowledged_and_a_restart_recovers(
    acme: Organisation,
) -> None:
    history = History()
    assert acme.process is not None
    limit(acme, database(acme).with_name("carnet.db-wal").stat().st_size // 2)
    run, reply = _fail_soon(acme, "conv_eio", history)
    assert (reply.status, reply.code) == (503, "outcome_unknown")
    history.unknown(run)
    assert acme.process.wait(30) == 5
    acme.start()
    assert ask(acme, run).status == 200
    history.ok(run, "hi")
    found: dict[str, list[str]] = {}
    for (name,) in rows(acme, "SELECT run FROM ledger WHERE run LIKE 'conv_eio%'"):
        found.setdefault(name, []).append("hi")
    assert history.faults(found) == []


@contextmanager
def flipped(gateway: Organisation, run: str) -> Iterator[None]:
    """The gateway runs on a database in which one bit of that run's answer is another."""
    assert gateway.stop() == 0
    path = database(gateway)
    shutil.copy(path, path.with_suffix(".good"))
    ((data,),) = rows(
        gateway,
        "SELECT j.data FROM journal j JOIN turn t ON t.n = j.turn JOIN run r ON r.n = t.run"
        " WHERE r.id = ? AND j.kind = 'events'",
        run,
    )
    raw = path.read_bytes()
    assert raw.count(data) == 1
    at = raw.index(data) + data.index(b"canary")
    path.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])
    gateway.start()
    yield
    assert gateway.stop() == 0
    path.with_suffix(".good").replace(path)
    gateway.start()


def reports(gateway: Organisation) -> list[dict[str, str]]:
    """The log lines that tell of damage."""
    return [json.loads(line) for line in gateway.log_lines() if "is damaged: its checksum" in line]


def test_f13_a_flipped_bit_is_reported_and_not_served(acme: Organisation) -> None:
    kept = {run: ask(acme, run, f"canary {run}").body for run in ("conv_flip", "conv_well")}
    with flipped(acme, "conv_flip"):
        reply = ask(acme, "conv_flip", "canary conv_flip")
        assert (reply.status, reply.code) == (500, "internal")
        assert b"anary" not in reply.body
        assert ask(acme, "conv_well", "canary conv_well").body == kept["conv_well"]
        until(lambda: len(reports(acme)) > 0)
    assert ask(acme, "conv_flip", "canary conv_flip").body == kept["conv_flip"]


def test_f13_damage_is_an_error_in_the_log_with_its_run_and_incident(acme: Organisation) -> None:
    ask(acme, "conv_told", "canary conv_told")
    before = len(reports(acme))
    with flipped(acme, "conv_told"):
        reply = ask(acme, "conv_told", "canary conv_told")
        until(lambda: len(reports(acme)) > before)
    assert "unrecorded" not in reply.json["message"]
    logged = [(line["level"], line["run"]) for line in reports(acme)[before:]]
    assert logged[0] == ("error", "conv_told")
    assert {run for _, run in logged} == {"conv_told"}


@pytest.mark.parametrize("torn", [b"\xff" * 5000, None], ids=["garbage", "cut off"])
def test_f13_a_torn_tail_of_the_log_costs_nothing_that_was_whole(
    torn: bytes | None, acme: Organisation
) -> None:
    name = "conv_tail_" + ("cut" if torn is None else "garbage")
    body = ask(acme, name).body
    wal = database(acme).with_name("carnet.db-wal")
    whole = wal.stat().st_size
    ask(acme, f"{name}_last")
    acme.kill()
    with wal.open("r+b") as file:
        if torn is None:
            file.truncate(max(whole, wal.stat().st_size - 100))
        else:
            file.seek(0, os.SEEK_END)
            file.write(torn)
    acme.start()
    assert ask(acme, name).body == body
    assert ask(acme, f"{name}_last").status == 200
    assert rows(acme, "PRAGMA integrity_check") == [("ok",)]
    ledger = "SELECT COUNT(*) FROM ledger WHERE run = ?"
    assert rows(acme, ledger, f"{name}_last") == [(1,)]


def test_f15_a_lock_held_by_another_is_503_in_bounded_time_and_passes(
    acme: Organisation, scraper: str
) -> None:
    body = ask(acme, "conv_unlocked").body
    with lock_held(acme):
        replies: list[Reply] = []
        asking = threading.Thread(target=lambda: replies.append(ask(acme, "conv_locked")))
        asking.start()
        meanwhile = 0

        def has_ended() -> bool:
            nonlocal meanwhile
            assert acme.get("/healthz").status == 200
            meanwhile += open_calls(acme, scraper)
            return not asking.is_alive()

        until(has_ended)
        assert (replies[0].status, replies[0].code) == (503, "overloaded")
        assert replies[0].headers["retry-after"] == "1"
        assert meanwhile > 4  # the loop goes on meanwhile
        assert acme.get("/readyz").status == 503
    assert ask(acme, "conv_locked").status == 200
    assert ask(acme, "conv_unlocked").body == body
    assert acme.get("/readyz").status == 200
    assert rows(acme, "SELECT COUNT(*) FROM ledger WHERE run = 'conv_locked'") == [(1,)]


def test_f15_nobody_waits_longer_for_having_come_behind_others(
    acme: Organisation, scraper: str
) -> None:
    """They are refused with the one that came first: the lock is let go of as soon as that is."""
    replies: list[Reply] = []

    def ask_as(number: int) -> None:
        replies.append(ask(acme, f"conv_behind_{number}"))

    asking = [threading.Thread(target=ask_as, args=[number]) for number in range(1 + BEHIND)]
    first, *others = asking
    with lock_held(acme):
        first.start()
        until(lambda: open_calls(acme, scraper) == 1)
        for thread in others:
            thread.start()
        until(lambda: open_calls(acme, scraper) == 1 + BEHIND)
        until(lambda: replies)
    for thread in asking:
        thread.join(PATIENCE_SECONDS)
    assert [reply.status for reply in replies] == [503] * len(asking)
    assert {reply.code for reply in replies} == {"overloaded"}
    assert rows(acme, "SELECT COUNT(*) FROM ledger WHERE run LIKE 'conv_behind_%'") == [(0,)]
    assert ask(acme, "conv_behind_0").status == 200


def test_f15_a_lock_held_for_a_moment_is_waited_for(acme: Organisation) -> None:
    replies: list[Reply] = []
    with lock_held(acme):
        asking = threading.Thread(target=lambda: replies.append(ask(acme, "conv_moment")))
        asking.start()
        asking.join(0.3)
        assert asking.is_alive()
    asking.join(30)
    assert replies[0].status == 200
    assert json.loads(replies[0].body)["usage"]["cost"] == "0.0002"
