"""Turn ids of others may collide (R6); what is at a true depth is admitted all the same (A40)."""

import pytest

from carnet.ports.calls.turns import Denied
from carnet.stores.open import Store
from tests.stores.calls.test_turns_places import below
from tests.stores.support.scenes import claimed

OUTER, INNER = "r1.t0.critic", "r1.t0.swarm"  # a nested run names its turns as the outer one does


async def nested(store: Store) -> None:
    """A critic calls a swarm, and the swarm calls the critic: two turns with one id."""
    claimed(await store.turns.claim(below(None, 1, OUTER)))
    claimed(await store.turns.claim(below(OUTER, 2, INNER)))
    claimed(await store.turns.claim(below(INNER, 3, OUTER, key=b"inner")))


@pytest.mark.parametrize("depth", [2, 4])
async def test_a_call_below_either_of_two_turns_of_one_id_is_admitted(
    store: Store, depth: int
) -> None:
    await nested(store)
    claimed(await store.turns.claim(below(OUTER, depth)))
    claimed(await store.turns.claim(below(OUTER, depth, "t10")))


@pytest.mark.parametrize("depth", [0, 1, 3, 5])
async def test_a_call_below_neither_of_them_is_refused(store: Store, depth: int) -> None:
    await nested(store)
    assert await store.turns.claim(below(OUTER, depth)) == Denied("chain")
