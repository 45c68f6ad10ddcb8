"""What a call may cost where its payer has less left than it may cost at the most."""

import pytest

from carnet.core.call import Ask, Call
from carnet.core.messages.events import Message
from carnet.core.people.proof import Spending
from carnet.errors import SpendingLimitReached
from tests.guards.scene import claim
from tests.guards.signed_scene import SignedScene

LESS = Spending(money=200, currency="credits")  # of 1000 a first call holds 750, the price is 50


async def first(scene: SignedScene) -> Call:
    call = await scene.gate.admit(claim("told"))
    assert (call.reserve, call.onward is not None and call.onward.budget) == (750, None)
    return call


async def test_an_agent_elsewhere_is_told_to_spend_what_its_payer_has_left() -> None:
    """R53: less is reserved for it as well."""
    scene = SignedScene()
    await first(scene)
    call = await scene.gate.admit(claim("told"))
    assert call.onward is not None
    assert (call.reserve, call.onward.budget) == (250, LESS)
    with pytest.raises(SpendingLimitReached):
        await scene.gate.admit(claim("told"))


async def test_an_agent_elsewhere_that_ours_calls_is_told_in_the_document_of_that_call() -> None:
    scene = SignedScene()
    parent = await scene.gate.admit(claim("echo"))
    await first(scene)
    ask = Ask(messages=(Message("user", ("below",)),))
    child = await scene.gate.admit_child(parent, "told", ask, index=0, auth="forward-user")
    assert (child.reserve, child.carnet.budget, child.onward) == (250, LESS, None)


async def test_an_agent_elsewhere_that_cannot_be_told_is_not_called_with_less() -> None:
    scene = SignedScene()
    await first(scene)
    with pytest.raises(SpendingLimitReached):
        await scene.gate.admit(claim("dear"))
