"""Tasks: accepted with their turn, run by one worker at a time, ended once."""

import asyncio
import logging

import pytest
from msgspec.structs import replace

from carnet.core.people.identity import Payer
from carnet.errors import OutcomeUnknown
from carnet.ports.calls.tasks import StoredTask, TaskClaim
from carnet.ports.calls.turns import Claimed, Denied, Fenced, Known, Quota, Use
from carnet.stores.database import Database, Statement
from carnet.stores.open import Store
from carnet.stores.secrets import secrets_file
from carnet.stores.upkeep.recovery import recover
from tests.stores.support import servers
from tests.stores.support.scenes import (
    ALICE,
    NOW,
    Place,
    a_claim,
    a_delivery,
    a_finish,
    a_task,
    claimed,
    finished,
    leased,
)

RESERVED = Payer(account=ALICE.account, quota="p", limit=1000)


async def test_a_task_waits_with_its_turn_and_is_found_by_its_id(
    store: Store, place: Place
) -> None:
    turn = claimed(await store.turns.claim(a_task()))
    assert (turn.state, turn.worker, turn.attempt, turn.fence) == ("queued", None, 1, 1)
    task = await store.tasks.find("task-r1")
    assert task == StoredTask(
        id="task-r1",
        turn=turn,
        sender="agent://b.example",
        skill="echo",
        callback="https://b.example/hook",
        updated=turn.created,
    )
    assert task.state == "pending"
    assert await store.tasks.of_turn(turn.n) == task
    assert await store.tasks.find("task-r2") is None
    assert await store.tasks.of_turn(turn.n + 1) is None
    assert await store.tasks.waiting() == 1
    ((sealed,),) = place.rows("SELECT sealed FROM kept_call")
    assert b"call of" not in bytes(sealed)


async def test_a_repeat_of_a_task_that_waits_is_attached_to(store: Store, place: Place) -> None:
    turn = claimed(await store.turns.claim(a_task()))
    other = TaskClaim(id="another", sender="s", skill=None, callback=None, call_bytes=b"")
    assert await store.turns.claim(a_task(task=other)) == Known(turn)
    assert await store.turns.claim(a_task(digest=b"other")) == Denied("mismatch")
    assert place.rows("SELECT id FROM task") == [("task-r1",)]


async def test_a_leased_task_is_ours_with_its_sealed_call_and_ends_once(
    store: Store, place: Place
) -> None:
    waiting = claimed(await store.turns.claim(a_task()))
    (task,) = await leased(store)
    assert task.turn == replace(waiting, state="running", worker=store.worker)
    assert (task.state, task.call_bytes) == ("running", b"the call of r1")
    assert await leased(store) == []
    assert await store.turns.claim(a_task()) == Known(task.turn)
    await store.turns.append(task.turn, 0, 0, b'[["text","a"]]')
    end = a_finish(task.turn, is_task=True, first=1, last=2, deliveries=(a_delivery(),))
    done = await store.turns.finish(end)
    found = await store.tasks.find("task-r1")
    assert found is not None
    assert (found.state, found.turn, found.call_bytes) == ("done", done, b"")
    assert place.rows("SELECT ended FROM task") == [(end.now,)]
    assert place.rows("SELECT sealed FROM kept_call") == []
    with pytest.raises(Fenced):
        await store.turns.finish(end)
    assert place.rows("SELECT id, state FROM outbox") == [("msg_1", "pending")]
    assert await store.turns.claim(a_task()) == Known(done)


async def test_the_oldest_are_leased_first_and_of_each_agent_as_many_as_it_may(
    store: Store,
) -> None:
    for i in range(6):
        await store.turns.claim(a_task(f"r{i}", agent="a" if i % 2 else "b"))
    taken = await store.tasks.lease([("a", 2), ("b", 1), ("c", 5), ("d", 0)])
    assert [task.turn.run for task in taken] == ["r0", "r1", "r3"]
    assert [task.turn.run for task in await store.tasks.lease([("b", 9)])] == ["r2", "r4"]
    assert await store.tasks.waiting() == 1
    assert await store.tasks.lease([]) == []


async def test_many_agents_are_asked_for_in_pieces(store: Store) -> None:
    await store.turns.claim(a_task(agent="a240"))
    (task,) = await store.tasks.lease([(f"a{i}", 1) for i in range(250)])
    assert task.turn.agent == "a240"


async def test_a_released_task_waits_again_and_goes_on_to_hold_what_it_held(
    store: Store, place: Place
) -> None:
    await store.turns.claim(a_task(payer=RESERVED, reserve=100))
    (task,) = await leased(store)
    await store.turns.append(task.turn, 0, 0, b'[["text","old"]]')
    await store.tasks.progress(task.turn, 500, "half")
    assert await store.tasks.release(task.turn, NOW + 5)
    assert not await store.tasks.release(task.turn, NOW + 6)
    with pytest.raises(Fenced):
        await store.turns.finish(a_finish(task.turn, is_task=True))
    (again,) = await leased(store)
    assert (again.turn.attempt, again.turn.fence, again.progress, again.lost) == (2, 2, None, 0)
    assert again.call_bytes == b"the call of r1"
    assert await store.turns.events(again.turn) == []
    assert place.rows("SELECT reserved FROM purse WHERE name = 'p'") == [(100,)]
    entries = await store.records.entries("r1", reader=None, after=0, limit=9)
    assert [(entry.kind, entry.data) for entry in entries][2:] == [("discard", b'{"attempt":1}')]
    await store.turns.finish(a_finish(again.turn, is_task=True, payer=RESERVED))
    assert place.rows("SELECT spent, reserved FROM purse WHERE name = 'p'") == [(200, 0)]


@pytest.mark.parametrize("state", ["failed", "unknown"])
async def test_a_task_that_may_be_repeated_waits_again_under_its_old_id_with_a_new_call(
    store: Store, place: Place, state: str
) -> None:
    await store.turns.claim(a_task())
    (task,) = await leased(store)
    await store.tasks.cancel(task.id, NOW)
    end = a_finish(task.turn, state=state, retryable=True, debits=(), is_task=True)
    await store.turns.finish(end)
    new = TaskClaim(id="new", sender="s", skill=None, callback=None, call_bytes=b"new call")
    again = claimed(await store.turns.claim(a_task(task=new)))
    assert (again.n, again.state, again.attempt, again.fence) == (task.turn.n, "queued", 2, 2)
    found = await store.tasks.find("task-r1")
    assert found is not None
    assert (found.turn, found.callback, found.cancelled) == (again, None, None)
    assert await store.tasks.find("new") is None
    (second,) = await leased(store)
    assert (second.id, second.call_bytes) == ("task-r1", b"new call")
    assert place.counts()["run"] == 1


async def test_a_task_may_be_sent_again_as_a_call_and_a_call_as_a_task(store: Store) -> None:
    await store.turns.claim(a_task())
    (task,) = await leased(store)
    await store.turns.finish(a_finish(task.turn, state="unknown", is_task=True))
    turn = claimed(await store.turns.claim(a_claim()))
    assert (turn.state, turn.worker) == ("running", store.worker)
    assert await leased(store) == []
    await store.turns.finish(a_finish(turn, state="unknown"))
    assert claimed(await store.turns.claim(a_task())).state == "queued"
    (task,) = await leased(store)
    assert (task.turn.attempt, task.call_bytes) == (3, b"the call of r1")


async def test_progress_is_told_by_the_owner_alone(store: Store) -> None:
    await store.turns.claim(a_task())
    (task,) = await leased(store)
    await store.tasks.progress(task.turn, 250, "a quarter")
    found = await store.tasks.find(task.id)
    assert found is not None
    assert (found.progress, found.note) == (250, "a quarter")
    await store.tasks.release(task.turn, NOW)
    await store.tasks.progress(task.turn, 500, "too late")
    found = await store.tasks.find(task.id)
    assert found is not None
    assert (found.progress, found.note) == (None, None)


async def test_the_end_of_a_task_can_be_asked_for_until_it_has_ended(store: Store) -> None:
    first, second = [claimed(await store.turns.claim(a_task(name))) for name in ("r1", "r2")]
    assert await store.tasks.cancelled() == set()
    assert await store.tasks.cancel("task-r1", NOW + 1)
    assert await store.tasks.cancel("task-r1", NOW + 2)
    assert await store.tasks.cancelled() == {first.n}
    found = await store.tasks.find("task-r1")
    assert found is not None
    assert found.cancelled == NOW + 1
    for task in await leased(store):
        await store.turns.finish(a_finish(task.turn, state="failed", is_task=True))
    assert await store.tasks.cancelled() == set()
    assert not await store.tasks.cancel("task-r1", NOW)
    assert not await store.tasks.cancel("task-r2", NOW)
    assert not await store.tasks.cancel("none", NOW)
    assert second.n != first.n


async def test_a_waiting_task_whose_end_was_asked_for_is_taken_although_there_is_no_room(
    store: Store,
) -> None:
    await store.turns.claim(a_task("r1"))
    await store.turns.claim(a_task("r2"))
    await store.tasks.cancel("task-r2", NOW)
    assert [task.turn.run for task in await store.tasks.lease([])] == ["r2"]
    assert [task.turn.run for task in await leased(store)] == ["r1"]


async def test_a_caller_that_went_away_leaves_its_task_to_be_run(store: Store) -> None:
    claiming = asyncio.create_task(store.turns.claim(a_task()))
    await asyncio.sleep(0)
    claiming.cancel()
    await asyncio.wait([claiming])
    verdict = await store.turns.claim(a_task())
    assert isinstance(verdict, Claimed | Known)
    assert verdict.turn.state == "queued"
    (task,) = await leased(store)
    assert task.turn.attempt == 1


async def test_tasks_are_listed_the_newest_first(store: Store) -> None:
    for i in range(4):
        agent = "a" if i % 2 else "echo"
        await store.turns.claim(a_task(f"r{i}", agent=agent, sender="token:alice"))
    await store.turns.claim(a_task("r4", actor="token:bob", sender="token:bob"))
    await finished(store, "no task")
    (task, *_) = await leased(store)
    await store.turns.finish(a_finish(task.turn, is_task=True))

    async def names(**asked: object) -> list[str]:
        page = {"reader": None, "limit": 9} | asked
        found, _ = await store.tasks.list(**page)  # type: ignore[arg-type]
        return [task.turn.run for task in found]

    assert await names() == ["r4", "r3", "r2", "r1", "r0"]
    assert await names(limit=2) == ["r4", "r3"]
    assert await names(reader="token:bob") == ["r4"]
    assert await names(agent="a") == ["r3", "r1"]
    assert await names(state="done") == ["r0"]
    assert await names(state="running") == ["r4", "r2"]
    assert await names(state="pending", reader="token:alice") == ["r3", "r1"]
    (last,), _ = await store.tasks.list(reader=None, limit=1, before=task.turn.n + 1)
    assert last.turn.run == "r0"


async def test_an_ended_task_is_forgotten_in_its_time_and_its_turn_is_not(store: Store) -> None:
    await store.turns.claim(a_task("old"))
    await store.turns.claim(a_task("new"))
    tasks = await leased(store)
    await store.turns.claim(a_task("waiting", now=NOW - 10**15))
    times = {"old": NOW + 100, "new": NOW + 300}
    for task in tasks:
        await store.turns.finish(a_finish(task.turn, is_task=True, now=times[task.turn.run]))
    assert await store.tasks.find("task-old", kept_since=NOW + 101) is None
    assert await store.tasks.find("task-old", kept_since=NOW + 100) is not None
    assert await store.tasks.find("task-waiting", kept_since=NOW + 500) is not None
    assert await store.tasks.forget(NOW + 200) == 1
    assert await store.tasks.find("task-old") is None
    kept, _ = await store.tasks.list(reader=None, limit=9)
    assert [task.turn.run for task in kept] == ["waiting", "new"]
    assert len(await store.records.run("old", reader=None)) == 1


async def test_tasks_of_a_worker_that_is_gone_wait_again(place: Place) -> None:
    store = await place.start()
    for i in range(3):
        await store.turns.claim(a_task(f"r{i}", payer=RESERVED, reserve=100))
    running = await leased(store, most=2)
    lost = claimed(await store.turns.claim(a_claim("call", payer=RESERVED, reserve=50)))
    await store.close()
    store = await place.open()
    assert await store.start() == 3
    assert (await store.turns.reload(lost)).state == "unknown"
    tasks = await leased(store)
    assert [task.turn.run for task in tasks] == ["r0", "r1", "r2"]
    assert [(task.turn.attempt, task.lost) for task in tasks] == [(2, 1), (2, 1), (1, 0)]
    assert [task.turn.fence for task in tasks] == [2, 2, 1]
    assert [task.call_bytes for task in tasks] == [f"the call of r{i}".encode() for i in range(3)]
    assert place.rows("SELECT reserved FROM purse WHERE name = 'p'") == [(300,)]
    with pytest.raises(Fenced):
        await store.turns.finish(a_finish(running[0].turn))
    await store.close()


async def test_recovering_tasks_twice_changes_nothing(place: Place) -> None:
    store = await place.start()
    await store.turns.claim(a_task())
    await leased(store)
    await store.close()
    store = await place.start()
    rows = place.rows("SELECT * FROM turn"), place.rows("SELECT * FROM task"), place.counts()
    database: Database = store._database  # noqa: SLF001
    assert await recover(database, now=1) == 0
    await store.close()
    again = place.rows("SELECT * FROM turn"), place.rows("SELECT * FROM task"), place.counts()
    assert rows == again


async def test_a_task_without_a_sealed_call_any_more_is_given_up_like_a_call(place: Place) -> None:
    store = await place.start()
    await store.turns.claim(a_task())
    (task,) = await leased(store)
    await store.turns.finish(a_finish(task.turn, state="unknown", is_task=True))
    turn = claimed(await store.turns.claim(a_claim()))  # as a call
    await store.close()
    store = await place.open()
    assert await store.start() == 1
    assert (await store.turns.reload(turn)).state == "unknown"
    await store.close()


async def test_a_task_sealed_with_another_secrets_file_comes_without_its_call(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    store = await place.start()
    await store.turns.claim(a_task())
    await store.close()
    place.secrets.unlink()
    secrets_file.create(place.secrets)
    place.rows("DELETE FROM own_key")  # which cannot be opened either
    store = await place.start()
    with caplog.at_level(logging.WARNING):
        (task,) = await leased(store)
    assert (task.id, task.call_bytes) == ("task-r1", b"")
    assert "another secrets file" in caplog.text
    assert "call of" not in caplog.text
    await store.close()


async def test_what_was_leased_although_nobody_was_told_is_run(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.turns.claim(a_task("r1"))
    database: Database = store._database  # noqa: SLF001
    transact = database.transact

    async def lost_answer(statements: list[Statement]) -> list[int]:
        await transact(statements)
        raise OutcomeUnknown

    monkeypatch.setattr(database, "transact", lost_answer)
    with pytest.raises(OutcomeUnknown):
        await leased(store)
    monkeypatch.undo()
    await store.turns.claim(a_task("r2"))
    tasks = await leased(store)
    assert [(task.turn.run, task.call_bytes) for task in tasks] == [
        ("r1", b"the call of r1"),
        ("r2", b"the call of r2"),
    ]
    assert await leased(store) == []


async def test_what_was_not_leased_although_nobody_was_told_waits(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.turns.claim(a_task("r1"))

    async def lost(_: list[Statement]) -> list[int]:
        raise OutcomeUnknown

    monkeypatch.setattr(store._database, "transact", lost)  # noqa: SLF001
    with pytest.raises(OutcomeUnknown):
        await leased(store)
    monkeypatch.undo()
    assert [task.turn.attempt for task in await leased(store)] == [1]
    assert await leased(store) == []


async def test_a_task_takes_of_its_quota_until_it_ends(store: Store, place: Place) -> None:
    quota = Quota(name="tasks/echo/b", limit=2, take=1)
    for i in range(2):
        claimed(await store.turns.claim(a_task(f"r{i}", quotas=(quota,))))
    before = place.counts(), place.rows("SELECT * FROM task ORDER BY turn")
    denied = Denied("quota", 1, "tasks/echo/b")
    assert await store.turns.claim(a_task("r2", quotas=(quota,))) == denied
    assert before == (place.counts(), place.rows("SELECT * FROM task ORDER BY turn"))
    (task, _) = await leased(store)
    assert await store.tasks.release(task.turn, NOW)  # it still is unfinished
    assert await store.turns.claim(a_task("r2", quotas=(quota,))) == denied
    (task,) = await leased(store)
    given_back = (Use("tasks/echo/b", -1),)
    await store.turns.finish(a_finish(task.turn, is_task=True, uses=given_back))
    claimed(await store.turns.claim(a_task("r2", quotas=(quota,))))


async def test_waiting_tasks_are_found_by_their_sqlite_index(store: Store, place: Place) -> None:
    await finished(store)
    plan = "EXPLAIN QUERY PLAN SELECT n FROM turn WHERE state = 'queued'"
    assert "turn_queued" in place.rows(f"{plan} AND agent = 'a' ORDER BY n LIMIT 5")[0][3]
    for query, index in (
        ("SELECT turn FROM task WHERE cancelled IS NOT NULL AND ended IS NULL", "task_cancelled"),
        ("SELECT turn FROM task WHERE ended IS NOT NULL AND ended < 5", "task_ended"),
    ):
        assert index in place.rows(f"EXPLAIN QUERY PLAN {query}")[0][3]


async def test_waiting_tasks_are_found_by_their_postgres_index(store: Store, place: Place) -> None:
    await store.turns.claim(a_task())
    servers.run(
        place.postgres,
        "INSERT INTO turn (run, key, digest, state, fence, attempt, turn, depth, agent, actor,"
        " created, reserve, purse) SELECT r.n, decode(md5(g::text), 'hex'), '', 'done', 1, 1, 't',"
        " 0, 'echo', 'a', 1, 0, '' FROM run r, generate_series(1, 20000) AS g; ANALYZE turn",
    )
    found = "SELECT n FROM turn WHERE state = 'queued' AND agent = 'echo' ORDER BY n LIMIT 5"
    for query in (found, "SELECT COUNT(*) FROM turn WHERE state = 'queued'"):
        plan = "".join(line for (line,) in place.rows(f"EXPLAIN {query}"))
        assert "turn_queued" in plan
    assert len(await leased(store)) == 1
