"""What is remembered of rates is the sender's own rate, nobody else's."""

import pytest

from carnet.core.people.identity import Secret
from carnet.errors import RateLimited
from tests.guards.admission.test_gate_signed import admit, refused
from tests.guards.signed_scene import ONE_LABEL, SignedScene, signed_claim


async def test_an_agent_that_all_have_used_up_keeps_no_sender_from_another_agent() -> None:
    scene = SignedScene(agent_calls=1)
    await admit(scene, signed_claim(sender=ONE_LABEL))
    assert await refused(scene, signed_claim()) is RateLimited  # the agent's
    await admit(scene, signed_claim("raw"))


async def test_a_token_that_is_used_up_keeps_its_sender_from_nothing_else() -> None:
    """One sender may act for many, each with a token and a rate of its own."""
    scene = SignedScene()
    await admit(scene, signed_claim(auth=Secret("ck_fast")))
    late = signed_claim(auth=Secret("ck_fast"), nonce="nonce-2", span="span-2")
    with pytest.raises(RateLimited):
        await scene.gate.admit(late)
    await admit(scene, signed_claim(auth=Secret("ck_alice"), nonce="nonce-3", span="span-3"))
    await admit(scene, signed_claim(nonce="nonce-4", span="span-4"))
