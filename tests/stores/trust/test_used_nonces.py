"""What is used once beside the claims of turns: on all replicas, and for the claims as well."""

from carnet.ports.calls.turns import Nonce
from carnet.stores.open import Store
from tests.stores.support.scenes import NOW

LATER = NOW + 300_000_000


async def test_it_is_used_once_and_again_by_the_same_user(store: Store) -> None:
    nonce = Nonce("evidence:globex.example", "number-1", LATER)
    assert await store.used_nonces.use(nonce, "alice", NOW)
    assert await store.used_nonces.use(nonce, "alice", NOW)
    assert not await store.used_nonces.use(nonce, "bob", NOW)
    assert not await store.used_nonces.use(nonce, "", NOW)


async def test_nobody_repeats_what_names_no_user(store: Store) -> None:
    nonce = Nonce("agent://globex.example", "number-2", LATER)
    assert await store.used_nonces.use(nonce, "", NOW)
    assert not await store.used_nonces.use(nonce, "", NOW)
    assert await store.used_nonces.use(Nonce("agent://b.example", "number-2", LATER), "", NOW)


async def test_a_use_that_has_ended_may_be_made_again(store: Store) -> None:
    nonce = Nonce("agent://globex.example", "number-3", NOW + 1)
    assert await store.used_nonces.use(nonce, "alice", NOW)
    assert await store.used_nonces.use(nonce, "bob", NOW + 2)
