"""A list of tasks by their context looks at a bounded part of what its sender has."""

# ruff: noqa: S608  the statements are put together from our own words

import re
from collections.abc import Sequence
from typing import Any

import pytest

from carnet.ports.calls.tasks import ChangedTasks
from carnet.stores.calls import contexts
from carnet.stores.database import Row
from carnet.stores.open import Store
from tests.stores.support.scenes import NOW, Place, a_task, end_upkeep

MANY = 5_000
_COUNT = "WITH RECURSIVE c (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < ?) "
_FILL = (
    f"""{_COUNT}INSERT INTO run (n, id, issuer, account, calls, cost, started)
    SELECT 100 + n, 'old-' || n, 'token:alice', 'alice', 1, 0, n FROM c""",
    f"""{_COUNT}INSERT INTO turn (n, run, key, digest, state, fence, attempt, turn, depth, agent,
    actor, created, ended, reserve, purse)
    SELECT 100 + n, 100 + n, {{blob}}, {{blob}}, 'done', 1, 1, 'old-' || n, 0, 'echo',
    'token:alice', n, NULL, 0, 'token:alice' FROM c""",
    f"""{_COUNT}INSERT INTO task (turn, id, sender, lost, context, updated)
    SELECT 100 + n, 'old-' || n, 'token:alice', 0, 'ctx-' || n, {NOW} + n / 2 FROM c""",
)
FEW: dict[str, Any] = {
    "another agent": {"agent": "other"},
    "a context": {"context": "ctx-1"},
    "a state": {"states": ("waiting",)},
    "a code": {"states": ("failed",), "codes": ("cancelled",)},
}
_WALKS = re.compile(r"Seq Scan on t|SCAN (?!l\b|k USING COVERING INDEX task_updated)")


async def fill(place: Place, store: Store, many: int) -> None:
    await store.turns.claim(a_task("r1", sender="token:alice"))
    blob = "'\\x00'::bytea || ('x' || n)::bytea" if place.postgres else "CAST('x' || n AS BLOB)"
    for statement in _FILL:
        place.rows(statement.format(blob=blob), many)
    place.rows("ANALYZE")


def wanted(**more: Any) -> ChangedTasks:  # noqa: ANN401, RUF100
    return ChangedTasks(**{"sender": "token:alice", "agent": "echo", "limit": 50, **more})


@pytest.mark.parametrize("few", FEW)
async def test_a_list_that_finds_few_looks_at_a_bounded_part(
    place: Place, store: Store, monkeypatch: pytest.MonkeyPatch, few: str
) -> None:
    """A87: neither the page nor the count walks through all that its sender has."""
    monkeypatch.setattr(contexts, "SLICE", 20)
    monkeypatch.setattr(contexts, "MOST_SLICES", 3)
    monkeypatch.setattr(contexts, "MOST_COUNTED", 100)
    await fill(place, store, MANY)
    end_upkeep(store)
    asked: list[tuple[str, list[Any]]] = []
    fetch = store.tasks._database.fetch  # noqa: SLF001  the statements as they are

    async def noted(sql: str, args: Sequence[Any] = ()) -> list[Row]:
        asked.append((sql, list(args)))
        return await fetch(sql, args)

    monkeypatch.setattr(store.tasks._database, "fetch", noted)  # noqa: SLF001
    found = await store.tasks.changed(wanted(**FEW[few]))
    assert (found.tasks, found.total) == ([], 0)
    assert found.following == (NOW + (MANY - 59) // 2, 100 + MANY - 59)
    assert len(asked) == 1 + 2 * 3
    explain = "EXPLAIN (COSTS OFF)" if place.postgres else "EXPLAIN QUERY PLAN"
    for sql, args in asked:
        plan = [str(row[-1]) for row in place.rows(f"{explain} {sql}", *args)]
        assert not [step for step in plan if _WALKS.search(step)], plan
        assert "ORDER BY" not in sql or "IN (" in sql or not any("ort" in s for s in plan), plan


@pytest.mark.parametrize("limit", [1, 7, 10])
async def test_the_pages_of_a_list_tell_every_task_once(
    place: Place, store: Store, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(contexts, "SLICE", 5)
    monkeypatch.setattr(contexts, "MOST_SLICES", 3)
    await fill(place, store, 40)
    before, pages = None, []
    for _ in range(100):
        found = await store.tasks.changed(wanted(limit=limit, before=before))
        assert (found.total, len(found.tasks) <= limit) == (40, True)
        pages += [task.id for task in found.tasks]
        before = found.following
        if before is None:
            break
    assert pages == [f"old-{n}" for n in range(40, 0, -1)]
    some = await store.tasks.changed(wanted(context="ctx-38", since=NOW))
    assert ([task.id for task in some.tasks], some.total) == (["old-38"], 1)
    late = await store.tasks.changed(wanted(since=NOW + 19))
    assert [task.id for task in late.tasks] == ["old-40", "old-39", "old-38"]
