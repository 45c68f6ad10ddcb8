"""Which tasks are begun whose agent is elsewhere: by who pays, whatever the agents are called."""

from collections.abc import Mapping

from carnet.ports.calls.tasks import AwayRoom
from carnet.stores.calls.elsewhere import SPARE, waiting_elsewhere
from carnet.stores.open import Store
from tests.stores.support.scenes import ALICE, BOB, a_task

NONE: Mapping[str, int] = {}


async def begun(
    store: Store, *, most: int = 9, each: int = 2, running: Mapping[str, int] = NONE
) -> list[str]:
    """The runs whose tasks are taken; agents of `gone.example` cannot be called."""
    elsewhere = AwayRoom(
        most=most,
        each=each,
        running=running,
        without=["@listed@gone.example"],
        is_known=lambda name: not name.endswith("gone.example"),
    )
    taken = await store.tasks.lease([], most=0, running=NONE, elsewhere=elsewhere)
    return [task.turn.run for task in taken]


async def test_of_one_tenant_only_so_many_begin_and_another_is_not_behind_them(
    store: Store,
) -> None:
    for i in range(20):
        await store.turns.claim(a_task(f"m{i}", agent=f"@a{i}@b.example", payer=BOB))
    await store.turns.claim(a_task("here"))
    await store.turns.claim(a_task("far", agent="agent://b.example", payer=ALICE))
    assert await begun(store, most=0) == []
    assert await begun(store) == ["m0", "m1", "far"]
    assert await begun(store, running={BOB.quota: 2}) == []
    assert await begun(store, running={BOB.quota: 1}) == ["m2"]
    assert await begun(store, most=1, each=9) == ["m3"]


async def test_tasks_that_cannot_be_called_at_present_hold_up_none_that_can(store: Store) -> None:
    for i in range(SPARE + 9):
        await store.turns.claim(a_task(f"w{i}", agent="@listed@gone.example"))
    for i in range(SPARE - 9):
        await store.turns.claim(a_task(f"n{i}", agent=f"@new{i}@gone.example"))
    await store.turns.claim(a_task("near", agent="@a@b.example"))
    assert await begun(store) == ["near"]
    assert await begun(store) == []


async def test_a_tenant_behind_many_others_is_found(store: Store) -> None:
    agent = "@a@b.example"
    nothing = AwayRoom(most=1, each=1, running={}, without=(), is_known=lambda _: True)
    database = store.tasks._database  # noqa: SLF001  no task of it is taken
    assert await waiting_elsewhere(database, nothing) == []
    await store.turns.claim(a_task("a", agent=agent, payer=ALICE))
    await store.turns.claim(a_task("b", agent=agent, payer=BOB))
    assert await begun(store, each=1, running={ALICE.quota: 1}) == ["b"]
