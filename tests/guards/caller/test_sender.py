"""Whose key is it: written down, learned from a card, or nobody's."""

import pytest

from carnet.core.people.identity import Trust
from carnet.errors import AddressInvalid, CarnetError, KeyRevoked, KeyUnknown
from carnet.guards.caller.sender import KnownSender
from carnet.guards.candidate import Candidate
from carnet.ports.trust.trust import Peer
from carnet.testing.keys import MemoryRing
from carnet.testing.trust import MemoryPeers
from tests.guards.scene import Directory, target
from tests.guards.signed_scene import ONE_LABEL, PEER, PUBLIC, STRANGER, candidate, signed_claim

PEERS = MemoryPeers(Peer(domain="b.example", url="http://127.0.0.1:1"))


async def judge(ring: MemoryRing, sender: str, keyid: str = "k1") -> Candidate:
    judged = candidate(signed_claim(sender=sender, keyid=keyid))
    waiting = KnownSender(ring, PEERS)(judged)
    if waiting is not None:
        await waiting
    return judged


async def refused(ring: MemoryRing, sender: str, keyid: str = "k1") -> CarnetError:
    with pytest.raises(CarnetError) as error:
        await judge(ring, sender, keyid)
    return error.value


async def test_a_key_that_was_written_down_needs_no_card() -> None:
    ring = MemoryRing()
    ring.pin(STRANGER, "k1", PUBLIC)
    judged = await judge(ring, STRANGER)
    assert (judged.key, judged.peer, ring.learns) == (PUBLIC, None, [])


async def test_a_card_is_looked_for_once_and_its_key_is_taken() -> None:
    ring = MemoryRing()
    ring.publish(STRANGER, "k1", PUBLIC)
    assert (await judge(ring, STRANGER)).key == PUBLIC
    assert (await judge(ring, STRANGER)).key == PUBLIC
    assert ring.learns == [STRANGER]


async def test_a_sender_without_a_key_is_told_the_command_that_admits_it() -> None:
    for keyid in ("k1", "k1"):  # before its card was looked for, and after
        error = await refused(MemoryRing(), STRANGER, keyid)
        assert isinstance(error, KeyUnknown)
        assert f"carnet peers add {STRANGER} --key" in error.next_step


async def test_a_listed_peer_is_told_to_wait_and_not_to_have_its_key_pinned() -> None:
    """What is pinned for any keyid would be the wrong key after the next rotation."""
    ring = MemoryRing()
    for sender in (PEER, "agent://critic.b.example"):
        ring.publish(sender, "k1", PUBLIC)
        error = await refused(ring, sender, "k2")
        assert isinstance(error, KeyUnknown)
        assert "does not show this key yet" in error.next_step
        assert "peers add" not in error.next_step
    ring.pin(PEER, "k1", PUBLIC)  # then its card does not count
    assert f"carnet peers add {PEER} --key" in (await refused(ring, PEER, "k2")).next_step


@pytest.mark.parametrize(
    ("trust", "learns"),
    [("authenticated", []), ("trusted-peers", []), ("public", [STRANGER])],
)
async def test_nothing_is_fetched_for_a_credential_where_no_agent_is_for_everybody(
    trust: Trust, learns: list[str]
) -> None:
    """R14: it says nothing of what is asked, and whoever sends one would have us fetch."""
    ring = MemoryRing()
    guard = KnownSender(ring, PEERS, Directory(target("desk", trust=trust)))

    async def judged() -> None:
        waiting = guard(candidate(signed_claim("desk", sender=STRANGER, profile="jwt")))
        assert waiting is not None
        await waiting

    with pytest.raises(KeyUnknown):
        await judged()
    assert ring.learns == learns


async def test_a_keyid_that_is_not_the_senders_is_unknown_and_nothing_is_fetched() -> None:
    ring = MemoryRing()
    ring.pin(STRANGER, "k1", PUBLIC)
    for keyid in ("https://evil.example/key", "../../etc/passwd", "' or 1=1", "k2"):
        assert isinstance(await refused(ring, STRANGER, keyid), KeyUnknown)
    assert ring.learns == []


async def test_a_revoked_key_is_refused_as_such() -> None:
    ring = MemoryRing()
    ring.pin(STRANGER, "k1", PUBLIC)
    ring.revoke(STRANGER, "k1")
    assert isinstance(await refused(ring, STRANGER), KeyRevoked)


async def test_nothing_is_fetched_for_a_name_of_one_label() -> None:
    ring = MemoryRing()
    assert isinstance(await refused(ring, ONE_LABEL), KeyUnknown)
    assert ring.learns == []
    ring.pin(ONE_LABEL, "k1", PUBLIC)
    assert (await judge(ring, ONE_LABEL)).key == PUBLIC


async def test_an_ip_address_names_nobody_but_a_sender_that_was_written_down() -> None:
    ring = MemoryRing()
    assert isinstance(await refused(ring, "agent://127.0.0.1"), AddressInvalid)
    assert ring.learns == []
    ring.pin("agent://127.0.0.1", "k1", PUBLIC)
    assert (await judge(ring, "agent://127.0.0.1")).key == PUBLIC


async def test_a_peer_answers_for_itself_and_for_its_agents() -> None:
    ring = MemoryRing()
    for sender in (PEER, "agent://critic.b.example"):
        ring.publish(sender, "k1", PUBLIC)
        for _ in ("learned", "known"):
            peer = (await judge(ring, sender)).peer
            assert peer is not None
            assert peer.domain == "b.example"


async def test_a_name_below_a_peers_that_has_a_key_of_its_own_is_not_the_peer() -> None:
    """Its key was written down for it alone: it has neither the peer's standing nor its credit."""
    ring = MemoryRing()
    ring.pin("agent://tenant.b.example", "k1", PUBLIC)
    assert (await judge(ring, "agent://tenant.b.example")).peer is None
