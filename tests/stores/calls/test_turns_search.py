"""Runs are found by what their turns are like, within a second, also after a crash."""

from collections.abc import Sequence
from typing import Any

import pytest

from carnet.ports.world.records import RunFilter
from carnet.stores.calls import records
from carnet.stores.database import Row
from carnet.stores.open import Store
from tests.stores.support.scenes import (
    ALICE,
    BOB,
    Place,
    a_claim,
    a_finish,
    a_task,
    claimed,
    end_upkeep,
    finished,
    leased,
)

NOW = 1_800_000_000_000_000
UNNAMED = "SCAN run USING INDEX run_unnamed"  # a bounded number of them: `sqlite.run_names`
LATER = ((1, "r2"), (2, "r3"), (3, "r4"))


async def found(store: Store, reader: str | None = None, **like: Any) -> list[str]:
    matching = RunFilter(**like)
    lines, _ = await store.records.runs(reader=reader, limit=9, before=None, matching=matching)
    return [line.run for line in lines]


async def test_runs_are_found_by_what_their_turns_are_like(store: Store) -> None:
    await finished(store, "r1", correlation="req-1")
    await finished(store, "r2", agent="critic", actor="token:bob")
    turn = claimed(await store.turns.claim(a_claim("r3")))
    assert await found(store, correlation="req-1") == ["r1"]
    assert await found(store, agent="critic") == ["r2"]
    assert await found(store, agent="echo") == ["r3", "r1"]
    assert await found(store, agent="echo", state="running") == ["r3"]
    assert await found(store, actor="token:bob") == ["r2"]
    assert await found(store, "token:bob", correlation="req-1") == []
    await store.turns.finish(a_finish(turn, state="failed", code="internal"))
    await store.upkeep()
    assert await found(store, state="running") == []
    assert await found(store, code="internal") == ["r3"]


async def test_runs_are_found_by_who_pays_and_by_when_they_began(store: Store) -> None:
    await finished(store, "r1")
    await finished(store, "r2", now=NOW + 5, payer=BOB, actor="token:bob")
    await finished(store, "r3", now=NOW + 9, agent="critic")
    assert await found(store, payer=str(ALICE.account)) == ["r3", "r1"]
    assert await found(store, payer=str(BOB.account)) == ["r2"]
    assert await found(store, payer="nobody@token:bob") == []
    assert await found(store, since=NOW + 5) == ["r3", "r2"]
    assert await found(store, since=NOW + 10) == []
    assert await found(store, payer=str(ALICE.account), since=NOW + 1) == ["r3"]
    assert await found(store, payer=str(ALICE.account), agent="echo") == ["r1"]
    assert await found(store, "token:bob", payer=str(ALICE.account)) == []


async def test_a_list_since_a_moment_ends_where_all_runs_are_older(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "SLICE", 2)
    for i in range(9):
        await finished(store, f"r{i}", now=NOW + i)
    monkeypatch.setattr(records, "MOST_SLICES", 3)  # fewer than there are
    late = RunFilter(since=NOW + 7)
    lines, begun = await store.records.runs(reader=None, limit=9, before=None, matching=late)
    assert ([line.run for line in lines], begun) == (["r8", "r7"], None)


async def test_runs_that_are_like_something_else_by_now_do_not_end_the_list(store: Store) -> None:
    await store.turns.claim(a_claim("r1"))
    later = [claimed(await store.turns.claim(a_claim(run, now=NOW + n))) for n, run in LATER]
    await store.upkeep()
    for turn in later:
        await store.turns.finish(a_finish(turn))
    running, begun = RunFilter(state="running"), None
    listed: list[str] = []
    for _ in range(9):
        lines, begun = await store.records.runs(
            reader=None, limit=2, before=begun, matching=running
        )
        listed += [line.run for line in lines]
        if begun is None:
            break
    assert (listed, begun) == (["r1"], None)


async def test_a_turn_that_was_not_written_down_before_a_crash_is_found(place: Place) -> None:
    store = await place.start()
    await finished(store, "r1")
    await store.turns.claim(a_claim("r2"))
    await store.upkeep()
    place.rows("DELETE FROM turn_seen WHERE turn = 1")  # as if we had died just before
    await store.close()
    place.rows("UPDATE turn SET state = 'done' WHERE n = 2")
    again = await place.start()
    await again.upkeep()
    assert sorted(place.rows("SELECT turn, state FROM turn_seen")) == [(1, "done"), (2, "done")]
    await again.close()


async def test_a_task_is_seen_in_the_state_it_has(store: Store) -> None:
    await store.turns.claim(a_task())
    await store.upkeep()
    assert await found(store, state="queued") == ["r1"]
    (task,) = await leased(store)
    await store.upkeep()
    assert await found(store, state="running") == ["r1"]
    await store.tasks.release(task.turn, task.turn.created + 1)
    await store.upkeep()
    assert await found(store, state="queued") == ["r1"]


@pytest.mark.parametrize("name", [None, *RunFilter.__struct_fields__])
@pytest.mark.parametrize("reader", [None, "token:alice"])
async def test_sqlite_lists_runs_by_keys_and_indexes_alone(
    place: Place,
    store: Store,
    monkeypatch: pytest.MonkeyPatch,
    name: str | None,
    reader: str | None,
) -> None:
    """A87: no query walks through the runs of everybody, and none sorts what it found."""
    await finished(store, correlation="x")
    await store.upkeep()
    end_upkeep(store)
    asked: list[tuple[str, list[Any]]] = []
    fetch = store.records._database.fetch  # noqa: SLF001  the statements as they are

    async def noted(sql: str, args: Sequence[Any] = ()) -> list[Row]:
        asked.append((sql, list(args)))
        return await fetch(sql, args)

    monkeypatch.setattr(store.records._database, "fetch", noted)  # noqa: SLF001
    words: dict[str, Any] = {"agent": "echo", "speaker": "echo", "since": 1}
    like = {} if name is None else {name: words.get(name, "x")}
    for before in (None, 99):
        asked.clear()
        matching = RunFilter(**like)
        await store.records.runs(reader=reader, limit=9, before=before, matching=matching)
        (first, args), *rest = asked
        plan = [row[3] for row in place.rows(f"EXPLAIN QUERY PLAN {first}", *args)]
        assert not [step for step in plan if "TEMP B-TREE" in step], plan
        assert reader is None or "turn_seen_reader" in plan[0], plan
        for sql, given in rest:
            plan = [row[3] for row in place.rows(f"EXPLAIN QUERY PLAN {sql}", *given)]
            scans = [step for step in plan if step.startswith("SCAN")]
            assert set(scans) <= {UNNAMED}, plan


@pytest.mark.parametrize("reader", [None, "token:alice"])
async def test_a_list_that_finds_little_ends_before_it_is_full_and_goes_on(
    store: Store, monkeypatch: pytest.MonkeyPatch, reader: str | None
) -> None:
    monkeypatch.setattr(records, "SLICE", 2)
    monkeypatch.setattr(records, "MOST_SLICES", 2)
    for i in range(11):
        await finished(store, f"r{i}", speaker="rare" if i == 1 else "echo")
    rare, begun, pages = RunFilter(speaker="rare"), None, []
    for _ in range(9):
        lines, begun = await store.records.runs(reader=reader, limit=5, before=begun, matching=rare)
        pages.append([line.run for line in lines])
        if begun is None:
            break
    assert pages == [[], [], ["r1"]]


async def test_a_reader_finds_its_run_as_soon_as_it_has_its_answer(store: Store) -> None:
    for i in range(3):
        await finished(store, f"r{i}")
        assert len(await found(store, "token:alice")) == i + 1


async def test_a_turn_that_fails_again_is_found_by_its_new_code(store: Store) -> None:
    for code in ("overloaded", "agent_failed"):
        turn = claimed(await store.turns.claim(a_claim()))
        end = a_finish(turn, state="failed", code=code, retryable=True, debits=())
        await store.turns.finish(end)
        await store.upkeep()
    assert await found(store, code="overloaded") == []
    assert await found(store, code="agent_failed") == ["r1"]


async def test_a_code_that_was_not_written_down_before_a_crash_is_found(place: Place) -> None:
    store = await place.start()
    turn = claimed(await store.turns.claim(a_claim()))
    await store.turns.finish(a_finish(turn, state="failed", code="overloaded", debits=()))
    await store.close()
    place.rows("UPDATE turn SET code = 'agent_failed'")
    again = await place.start()
    await again.upkeep()
    assert await found(again, code="agent_failed") == ["r1"]
    await again.close()
