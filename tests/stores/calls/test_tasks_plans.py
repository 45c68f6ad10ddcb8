"""What a worker asks every second reads no more when ten thousand tasks and deliveries wait."""

from typing import Any

import pytest

from carnet.stores import outbox
from carnet.stores.calls import tasks
from carnet.stores.upkeep import expiry
from tests.stores.support.scenes import Place

# How each is found by SQLite: the first table that is read, and by which index.
LOOKS = {
    "those to be ended": (tasks._TO_END, (200,), "task_cancelled"),  # noqa: SLF001
    "those that wait in vain": (expiry._UNWANTED, (100,), "task_cancelled"),  # noqa: SLF001
    "those to be stopped": (tasks._CANCELLED, (), "task_cancelled"),  # noqa: SLF001
    "the oldest of an agent": (tasks._WAITING_OF, ("echo", 4), "turn_queued (agent=?)"),  # noqa: SLF001
    "webhooks that are due": (outbox._FIRST, ("a", 1, 2), "outbox_pending (receiver=? AND due<?)"),  # noqa: SLF001
}


@pytest.mark.parametrize("what", LOOKS)
async def test_sqlite_looks_up(what: str, place: Place) -> None:
    store = await place.start()
    await store.close()
    query, args, index = LOOKS[what]
    plan: list[Any] = [row[-1] for row in place.rows(f"EXPLAIN QUERY PLAN {query}", *args)]
    assert index in plan[0]
    assert not any("SCAN turn" in line or "SCAN t " in line for line in plan)
