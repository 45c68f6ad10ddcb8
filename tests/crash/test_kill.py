"""kill -9 at every point of the store and at any moment: what was acknowledged is there, once."""

import os
import random
from collections import defaultdict

import pytest

from carnet.core.messages.events import Text, write_events
from carnet.ports.calls.steps import Step
from carnet.ports.calls.turns import Denied, Known
from tests.stores.support.scenes import (
    ANSWER,
    LIMITED,
    NOW,
    SECOND,
    Place,
    a_claim,
    a_finish,
    a_nonce,
    claimed,
    leased,
)
from tests.stores.support.victim import an_end
from tests.support.commands import speaking

KILLED = -9
CALLING = [
    "t1.begin",
    "t1.before_commit",
    "t1.after_commit",
    "event.before_t2",
    "event.after_t2",
    "t3.begin",
    "t3.before_commit",
    "t3.after_commit",
]

Acknowledged = dict[str, list[str]]  # what was acknowledged: "done" -> names


def run_victim(
    place: Place, *what: str, crash_at: str = "", kill_after: int = 0
) -> tuple[Acknowledged, int]:
    """Let a victim work until it dies: at a crash point, or after so many lines."""
    acknowledged: Acknowledged = defaultdict(list)
    environment = os.environ | {"CRASH_AT": crash_at}
    victims = speaking("tests.stores.support.victim", str(place.folder), *what, env=environment)
    with victims as (victim, out):
        for lines, line in enumerate(out, 1):
            word, _, name = line.strip().partition(" ")
            acknowledged[word].append(name)
            if kill_after and lines == kill_after:
                victim.kill()
    return acknowledged, victim.wait()


async def check(place: Place, acknowledged: Acknowledged) -> None:
    """Open what the victim left: everything it acknowledged is there, once, and adds up."""
    if place.postgres:
        place.end_leases()
    else:
        assert place.rows("PRAGMA integrity_check") == [("ok",)]
    store = await place.start()
    for name in acknowledged["claimed"]:
        (turn,) = await store.records.run(name, reader=None)
        assert turn.state in {"done", "unknown"}
    for name in acknowledged["appended"]:
        (turn,) = await store.records.run(name, reader=None)
        assert (await store.turns.events(turn))[0] == write_events([Text(name)])
    for name in acknowledged["done"]:
        (turn,) = await store.records.run(name, reader=None)
        assert (turn.state, turn.cost) == ("done", 200)
        assert await store.turns.events(turn) == [write_events([Text(name)]), write_events(ANSWER)]
        assert await store.turns.claim(a_claim(name, payer=LIMITED, reserve=500)) == Known(turn)
    add_up(place)
    for (name,) in place.rows(
        "SELECT r.id FROM turn t JOIN run r ON r.n = t.run WHERE t.state = 'unknown'"
    ):
        again = claimed(await store.turns.claim(a_claim(name, payer=LIMITED, reserve=500)))
        assert again.attempt == 2
        await store.turns.finish(a_finish(again, payer=LIMITED, reserve=500))
    add_up(place)
    assert place.rows("SELECT DISTINCT state FROM turn") in ([("done",)], [])
    await store.close()


def add_up(place: Place) -> None:
    """One ledger entry for each done turn, the same sum everywhere, nothing held."""
    done, cost = place.rows(
        "SELECT COUNT(*), COALESCE(SUM(cost), 0) FROM turn WHERE state = 'done'"
    )[0]
    assert place.rows("SELECT COUNT(*), COALESCE(SUM(amount), 0) FROM ledger") == [(done, cost)]
    assert place.rows("SELECT COUNT(DISTINCT run || turn) FROM ledger") == [(done,)]
    assert place.rows("SELECT COALESCE(SUM(cost), 0) FROM run") == [(cost,)]
    quota = place.rows("SELECT COALESCE(SUM(spent), 0), COALESCE(SUM(reserved), 0) FROM purse")
    assert quota == [(cost, 0)]


@pytest.mark.parametrize("point", CALLING)
async def test_killed_at_a_point_of_a_call(place: Place, point: str) -> None:
    acknowledged, code = run_victim(place, "work", "w", crash_at=f"{point}:7")
    assert code == KILLED
    assert acknowledged["claimed"]
    await check(place, acknowledged)


@pytest.mark.parametrize(
    "point",
    [
        *("t1.before_commit", "task.queued", "task.leased", "task.released"),
        *("t3.before_commit", "t3.after_commit"),
    ],
)
async def test_killed_while_tasks_are_accepted_and_run(place: Place, point: str) -> None:
    acknowledged, code = run_victim(place, "tasks", "w", crash_at=f"{point}:3")
    assert code == KILLED
    if place.postgres:
        place.end_leases()
    store = await place.start()
    for name in acknowledged["accepted"]:
        assert await store.tasks.find(f"task-{name}") is not None
    for name in acknowledged["done"]:
        found = await store.tasks.find(f"task-{name}")
        assert found is not None
        assert found.state == "done"
    for task in await leased(store, most=99):
        kept = await store.steps.of(task.turn)
        assert kept in ([], [Step(0, "only", b"1")])
        await store.turns.finish(an_end(task))
    assert await store.tasks.waiting() == 0
    assert place.rows("SELECT DISTINCT state FROM turn") == [("done",)]
    deliveries = {delivery for (delivery,) in place.rows("SELECT id FROM outbox")}
    assert deliveries == {f"msg_{name}" for (name,) in place.rows("SELECT id FROM run")}
    assert place.rows("SELECT COUNT(*) FROM kept_call") == [(0,)]
    assert place.rows("SELECT spent FROM purse WHERE name = 'tasks/echo/b'") == [(0,)]
    add_up(place)
    await store.close()


@pytest.mark.parametrize("point", ["t1.begin", "t1.nonce", "t1.before_commit", "t1.after_commit"])
async def test_f02_a_nonce_and_its_claim_are_both_there_after_a_kill_or_neither(
    place: Place, point: str
) -> None:
    acknowledged, code = run_victim(place, "sign", "w", crash_at=f"{point}:7")
    assert code == KILLED
    assert acknowledged["claimed"]
    nonces = {name for (name,) in place.rows("SELECT nonce FROM nonce")}
    assert nonces == {name for (name,) in place.rows("SELECT id FROM run")}
    assert set(acknowledged["claimed"]) <= nonces
    if place.postgres:
        place.end_leases()
    store = await place.start()
    for name in nonces:  # A11: it was durable before anything else happened
        late = a_claim(f"late-{name}", nonce=a_nonce(name), now=NOW + 304 * SECOND)
        assert await store.turns.claim(late) == Denied("replayed")
    claimed(await store.turns.claim(a_claim("new", nonce=a_nonce("new"))))
    await store.close()


@pytest.mark.parametrize(
    ("point", "keys"), [("rotate.before_switch", 1), ("rotate.after_switch", 2)]
)
async def test_f09_a_key_is_the_old_one_or_the_new_one_after_a_kill(
    place: Place, point: str, keys: int
) -> None:
    store = await place.start()
    before = store.keys.signer().kid
    await store.close()
    _, code = run_victim(place, "rotate", crash_at=point)
    assert code == KILLED
    place.end_leases()
    store = await place.start()
    known = await store.keys.list()
    assert len(known) == keys
    assert [key.state for key in known] == ["next", "active"][-keys:]
    assert store.keys.signer().kid == before
    place.clock.advance(60)  # then the new one signs, if there is one
    assert store.keys.signer().kid == known[0].kid
    assert before in [key.kid for key in store.keys.published(place.clock.wall_us())]
    again = await store.keys.rotate(place.clock.wall_us(), overlap_seconds=60)
    assert store.keys.signer().kid == again.kid
    await store.close()


async def test_killed_at_any_moment_again_and_again(place: Place) -> None:
    dice = random.Random(1)  # noqa: S311  the same moments on every run
    everything: Acknowledged = defaultdict(list)
    for life in range(5):
        acknowledged, code = run_victim(
            place, "work", f"w{life}", kill_after=dice.randrange(3, 400)
        )
        assert code == KILLED
        for word, names in acknowledged.items():
            everything[word] += names
    assert len(everything["done"]) > 50
    await check(place, everything)


async def test_killed_while_recovering_again_and_again(place: Place) -> None:
    acknowledged, _ = run_victim(place, "work", "w", crash_at="t1.after_commit:2")
    place.end_leases()
    for point in ("recover.begin", "recover.each_turn:3", "recover.each_turn", "recover.end"):
        _, code = run_victim(place, "start", crash_at=point)
        assert code == KILLED
    await check(place, acknowledged)


async def test_killed_while_migrating_sqlite(place: Place) -> None:
    acknowledged, code = run_victim(place, "start", crash_at="migrate.mid")
    assert (acknowledged, code) == ({}, KILLED)
    assert place.rows("SELECT name FROM sqlite_schema") == []  # the old layout: none
    await check(place, acknowledged)


async def test_killed_while_pruning(place: Place) -> None:
    store = await place.start()
    for i in range(450):
        turn = claimed(
            await store.turns.claim(a_claim("old", turn=f"t{i}", now=0, most_run_calls=500))
        )
        await store.turns.finish(a_finish(turn, now=0))
    await store.close()
    _, code = run_victim(place, "prune", crash_at="purge.mid")
    assert code == KILLED
    assert place.rows("SELECT COUNT(*) FROM turn") == [(250,)]
    assert place.rows("SELECT COUNT(*) FROM journal WHERE turn NOT IN (SELECT n FROM turn)") == [
        (0,)
    ]
    acknowledged, code = run_victim(place, "prune")
    assert (code, acknowledged["started"]) == (0, [""])
    assert place.rows("SELECT COUNT(*) FROM turn") == [(1,)]  # the newest stays
    assert place.rows("SELECT COUNT(*), SUM(amount) FROM ledger") == [(450, 90_000)]


@pytest.mark.parametrize("damage", ["cut", "flipped", "garbage"])
async def test_a_damaged_tail_of_the_sqlite_log_costs_the_tail_alone(
    place: Place, damage: str
) -> None:
    run_victim(place, "work", "w", crash_at="t3.after_commit:30")
    log = place.folder / "carnet.db-wal"
    data = log.read_bytes()
    tail = len(data) - 20_000
    if damage == "cut":
        log.write_bytes(data[:tail])
    elif damage == "flipped":
        log.write_bytes(data[:tail] + bytes(byte ^ 1 for byte in data[tail:]))
    else:
        log.write_bytes(data + b"\xa5" * 30_000)
    await check(place, defaultdict(list))
    assert place.counts()["turn"] > 100
