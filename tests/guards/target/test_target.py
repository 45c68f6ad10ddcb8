"""Whom the call is for, whether this caller may reach it, and whether it may leave."""

import pytest

from carnet.core.chain.carnet import Carnet, DepthLimits, Mark
from carnet.core.people.identity import Secret
from carnet.errors import AgentNotFound, DepthExceeded, PeerNotListed, PermissionMissing
from carnet.guards.target.target import check_credential, onward_carnet, permitted
from tests.guards.scene import DOMAIN, claim, directory, proved


def tangle(depth: int) -> Mark:
    return Mark(stamp="tangle", depth=depth, last_depth=3, run="conv_1", turn="t")


def test_an_unknown_agent_is_refused() -> None:
    with pytest.raises(AgentNotFound):
        proved(claim("nobody"))


def test_a_caller_needs_the_permission_of_the_target() -> None:
    permitted(proved(claim("echo", token="ck_narrow")))
    with pytest.raises(PermissionMissing) as refused:
        permitted(proved(claim("paid", token="ck_narrow")))
    assert refused.value.public_facts() == {"permission": "call:paid"}
    with pytest.raises(PermissionMissing):
        permitted(proved(claim("@critic@b.example", token="ck_narrow")))


def test_an_agent_may_take_less_depth_than_the_gateway() -> None:
    assert proved(claim("shallow", marks=(tangle(1),))).position.last_depth == 1
    with pytest.raises(DepthExceeded) as refused:
        proved(claim("shallow", marks=(tangle(2),)))
    assert refused.value.public_facts() == {"observed": 2, "limit": 2, "stamp": "tangle"}
    assert proved(claim("shallow")).position.last_depth is None


def test_a_call_at_the_last_depth_may_not_leave() -> None:
    router = directory()
    final = Carnet(run="r", turn="t", depth=3, last_depth=3)
    assert (
        onward_carnet(final, router.find("echo"), DOMAIN, key=b"key", depths=DepthLimits()) is None
    )
    with pytest.raises(DepthExceeded):
        onward_carnet(
            final, router.find("@critic@b.example"), DOMAIN, key=b"key", depths=DepthLimits()
        )


def test_a_call_that_leaves_gets_the_carnet_of_the_next_hop() -> None:
    carnet = Carnet(run="conv_1", turn="turn_x", run_is_ours=True)
    onward = onward_carnet(
        carnet, directory().find("@critic@b.example"), DOMAIN, key=b"key", depths=DepthLimits()
    )
    assert onward is not None
    assert (onward.depth, onward.turn, onward.parent_turn) == (1, "conv_1.t0.critic", None)


def test_a_credential_leaves_to_listed_peers_alone() -> None:
    router, credential = directory(), Secret("Bearer x")
    check_credential(router.find("@critic@b.example"), credential)
    check_credential(router.find("@critic@c.example"), None)
    check_credential(router.find("echo"), credential)
    with pytest.raises(PeerNotListed):
        check_credential(router.find("@critic@c.example"), credential)
