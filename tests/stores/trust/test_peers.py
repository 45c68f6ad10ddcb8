"""Peers in a store."""

from carnet.ports.trust.trust import Peer
from carnet.stores.open import Store


async def test_by_what_a_peer_knows_us_is_kept_and_changed(store: Store) -> None:
    peer = Peer(domain="globex.example", url="https://globex.example", auth="federation")
    await store.peers.put(peer)
    assert await store.peers.list() == [peer]
    plain = Peer(domain="globex.example", url="https://globex.example")
    await store.peers.put(plain)
    found = store.peers.find("globex.example")
    assert found is not None
    assert found.auth == "auto"
