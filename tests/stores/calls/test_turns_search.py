"""Runs are found by what their turns are like, within a second, also after a crash."""

import pytest

from carnet.ports.world.records import RunFilter
from carnet.stores.open import Store
from tests.stores.support.scenes import Place, a_claim, a_finish, a_task, claimed, finished, leased

NOW = 1_800_000_000_000_000
LATER = ((1, "r2"), (2, "r3"), (3, "r4"))


async def found(store: Store, reader: str | None = None, **like: str) -> list[str]:
    matching = RunFilter(**like)
    lines, _ = await store.records.runs(reader=reader, limit=9, before=None, matching=matching)
    return [line.run for line in lines]


async def test_runs_are_found_by_what_their_turns_are_like(store: Store) -> None:
    await finished(store, "r1", correlation="req-1")
    await finished(store, "r2", agent="critic", actor="token:bob")
    turn = claimed(await store.turns.claim(a_claim("r3")))
    assert await found(store, correlation="req-1") == []
    await store.upkeep()
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


@pytest.mark.parametrize("name", RunFilter.__struct_fields__)
async def test_sqlite_finds_search_rows_by_an_index(place: Place, store: Store, name: str) -> None:
    await finished(store)
    plan = place.rows(f"EXPLAIN QUERY PLAN SELECT run FROM turn_seen WHERE {name} = 'x'")  # noqa: S608
    assert all("USING INDEX" in row[3] or name == "speaker" for row in plan), plan


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
