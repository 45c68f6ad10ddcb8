"""`agent://x.peer` beside `agent://peer`: what the one may have of the other."""

from carnet.core.people.identity import Account
from carnet.errors import PaymentRequired, RateLimited, SkillForbidden
from tests.guards.admission.test_gate_signed import admit, refused
from tests.guards.signed_scene import PEER, PUBLIC, SignedScene, signed_claim

AGENT_OF_PEER, TENANT = "agent://critic.b.example", "agent://tenant.b.example"


def scene(sender_calls: int = 100) -> SignedScene:
    """The peer shows a key of its agent's; the tenant's was written down by the operator."""
    made = SignedScene(sender_calls=sender_calls)
    made.ring.publish(AGENT_OF_PEER, "k1", PUBLIC)
    made.ring.pin(TENANT, "k1", PUBLIC)
    return made


async def test_an_agent_that_the_peer_vouches_for_spends_the_peers_credit() -> None:
    call = await admit(scene(), signed_claim("paid", sender=AGENT_OF_PEER))
    assert (call.payer.account, call.payer.quota) == (
        Account("b.example", "b.example"),
        "peer:b.example",
    )


async def test_who_has_a_key_of_its_own_there_spends_nothing_of_the_peers() -> None:
    """Its key proves its own name and nothing of the organisation that the name belongs to."""
    asked = scene()
    assert await refused(asked, signed_claim("vault", sender=TENANT)) is SkillForbidden
    assert await refused(asked, signed_claim("paid", sender=TENANT)) is PaymentRequired
    call = await admit(asked, signed_claim(sender=TENANT))
    own = f"sender:{TENANT}"
    assert (call.caller.actor.name, call.payer.quota, call.payer.limit) == (own, own, 0)


async def test_the_names_of_one_peer_share_one_rate() -> None:
    asked = scene(sender_calls=1)
    await admit(asked, signed_claim(sender=PEER))
    again = signed_claim(sender=AGENT_OF_PEER, nonce="nonce-2", span="span-2")
    assert await refused(asked, again) is RateLimited
    await admit(asked, signed_claim(sender=TENANT, nonce="nonce-3", span="span-3"))
