"""What is asked for again and again reads no more when ten thousand tasks and deliveries wait."""

# ruff: noqa: S608  the statements are put together from our own words

from collections.abc import Sequence
from typing import Any

import pytest

from carnet.stores import outbox
from carnet.stores.calls import elsewhere, tasks
from carnet.stores.database import Row
from carnet.stores.open import Store
from carnet.stores.sqlite import waits
from carnet.stores.upkeep import expiry
from tests.stores.support.scenes import Place, a_task, end_upkeep

# How each is found by SQLite: the first table that is read, and by which index.
LOOKS = {
    "those to be ended": (tasks._TO_END, (200,), "task_cancelled"),  # noqa: SLF001
    "those that wait in vain": (expiry._UNWANTED, (100,), "task_cancelled"),  # noqa: SLF001
    "those to be stopped": (tasks._CANCELLED, (), "task_cancelled"),  # noqa: SLF001
    "the oldest of an agent": (tasks._WAITING_OF, ("echo", 4), "turn_queued (agent=?)"),  # noqa: SLF001
    "those of a tenant elsewhere": (elsewhere._OF.format(""), ("a", 4), "turn_elsewhere (purse=?)"),  # noqa: SLF001
    "those of a payer at an agent": (
        waits.QUEUED,
        ("echo", "a", 4),
        "turn_queued_payer (agent=? AND purse=?)",
    ),
    "webhooks that are due": (outbox._FIRST, ("a", 1, 2), "outbox_pending (receiver=? AND due<?)"),  # noqa: SLF001
}


@pytest.mark.parametrize("what", LOOKS)
async def test_sqlite_looks_up(what: str, place: Place) -> None:
    store = await place.start()
    await store.close()
    query, args, index = LOOKS[what]
    plan: list[Any] = [row[-1] for row in place.rows(f"EXPLAIN QUERY PLAN {query}", *args)]
    assert any(index in step for step in plan[:2])
    assert not any("SCAN turn" in line or "SCAN t " in line for line in plan)


FOREIGN = 10_000
# As many tasks of somebody else, older than all others.
_COUNT = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ?) "
_FILL = (
    f"""{_COUNT}INSERT INTO turn (n, run, key, digest, state, fence, attempt, turn, depth, agent,
    actor, created, ended, reserve, purse)
    SELECT 100 + n, 1, {{blob}}, {{blob}}, 'queued', 1, 1, 'old-' || n, 0, 'echo', 'token:other',
    n, NULL, 0, 'token:other' FROM c""",
    f"""{_COUNT}INSERT INTO task (turn, id, sender, lost)
    SELECT 100 + n, 'old-' || n, 'token:other', 0 FROM c""",
)


@pytest.mark.parametrize("state", [None, "pending", "running", "done"])
@pytest.mark.parametrize("agent", [None, "echo"])
async def test_a_list_of_tasks_looks_at_those_of_its_reader_alone(
    place: Place,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    state: Any,  # noqa: ANN401, RUF100
    agent: str | None,
) -> None:
    """A87: no query walks through the tasks of everybody, and none sorts what it found."""
    for name in ("r1", "r2"):
        await store.turns.claim(a_task(name, sender="token:alice"))
    blob = "'\\x00'::bytea || ('x' || n)::bytea" if place.postgres else "CAST('x' || n AS BLOB)"
    for statement in _FILL:
        place.rows(statement.format(blob=blob), FOREIGN)
    place.rows("ANALYZE")
    end_upkeep(store)
    asked: list[tuple[str, list[Any]]] = []
    fetch = store.tasks._database.fetch  # noqa: SLF001  the statements as they are

    async def noted(sql: str, args: Sequence[Any] = ()) -> list[Row]:
        if "ORDER BY k.turn DESC" in sql:
            asked.append((sql, list(args)))
        return await fetch(sql, args)

    monkeypatch.setattr(store.tasks._database, "fetch", noted)  # noqa: SLF001
    for before in (None, 50):
        found, following = await store.tasks.list(
            reader="token:alice", limit=9, before=before, state=state, agent=agent
        )
        shown = ["r2", "r1"] if state in {None, "pending"} else []
        assert ([task.turn.run for task in found], following) == (shown, None)
    explain = "EXPLAIN (COSTS OFF)" if place.postgres else "EXPLAIN QUERY PLAN"
    for sql, args in asked:
        plan = [str(row[-1]) for row in place.rows(f"{explain} {sql}", *args)]
        slow = ("Seq Scan on t", "SCAN", "turn_queued")
        assert not [step for step in plan if any(word in step for word in slow)], plan
        assert "k.sender = ?" not in sql or any("task_sender" in step for step in plan), plan
        assert "k.sender = ?" not in sql or not any("ort" in step for step in plan), plan
    assert len(asked) == 4


async def test_a_list_of_tasks_that_finds_little_ends_before_it_is_full_and_goes_on(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "SLICE", 2)
    monkeypatch.setattr(tasks, "MOST_SLICES", 2)
    for i in range(11):
        agent = "rare" if i == 1 else "echo"
        await store.turns.claim(a_task(f"r{i}", sender="token:alice", agent=agent))
    begun, pages = None, []
    for _ in range(9):
        found, begun = await store.tasks.list(
            reader="token:alice", limit=5, before=begun, agent="rare"
        )
        pages.append([task.turn.run for task in found])
        if begun is None:
            break
    assert pages == [[], [], ["r1"]]


_ANSWERED = f"""{_COUNT}INSERT INTO interrupt (id, turn, place, kind, message, state_hash,
    state_sealed, key_id, status, created, expires, owner)
    SELECT 'int_' || n, 100 + n, 0, 'approval', 'May I?', {{blob}}, {{blob}}, '',
    CASE WHEN n % 1000 = 0 THEN 'open' ELSE 'resolved' END, n, n, 'token:alice' FROM c"""


@pytest.mark.parametrize("owner", ["token:alice", None])
async def test_what_is_open_is_found_without_what_was_answered(
    place: Place, store: Store, monkeypatch: pytest.MonkeyPatch, owner: str | None
) -> None:
    """A87: ten of ten thousand, by who is asked and by who sees all."""
    await store.turns.claim(a_task("r1"))
    blob = "('x' || n)::bytea" if place.postgres else "CAST('x' || n AS BLOB)"
    for statement in (_FILL[0], _ANSWERED):
        place.rows(statement.format(blob=blob), FOREIGN)
    place.rows("ANALYZE")
    end_upkeep(store)
    asked: list[tuple[str, list[Any]]] = []
    fetch = store.inbox._database.fetch  # noqa: SLF001  the statements as they are

    async def noted(sql: str, args: Sequence[Any] = ()) -> list[Row]:
        if "FROM interrupt i" in sql:
            asked.append((sql, list(args)))
        return await fetch(sql, args)

    monkeypatch.setattr(store.inbox._database, "fetch", noted)  # noqa: SLF001
    for before, count in ((None, 10), (5000, 4)):
        found = await store.inbox.list(owner=owner, is_open=True, limit=50, before=before)
        assert [entry.n for entry in found] == sorted((entry.n for entry in found), reverse=True)
        assert len(found) == count
    explain = "EXPLAIN (COSTS OFF)" if place.postgres else "EXPLAIN QUERY PLAN"
    for sql, args in asked:
        plan = [str(row[-1]) for row in place.rows(f"{explain} {sql}", *args)]
        # Either holds what is open alone.
        assert any("interrupt_open" in step or "interrupt_state" in step for step in plan), plan
    assert len(asked) == 2
