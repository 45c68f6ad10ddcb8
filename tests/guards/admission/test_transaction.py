"""What a call may cost where its payer has less left than it may cost at the most."""

from typing import Any

import pytest

from carnet.core.call import Ask, Call, Free
from carnet.core.messages.events import Message
from carnet.core.people.proof import Spending
from carnet.errors import SpendingLimitReached
from tests.guards.scene import claim, target
from tests.guards.signed_scene import SignedScene, document, signed_claim, travelled

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


class Page:
    """What an agent elsewhere says of itself, and how often it was asked."""

    def __init__(self, free: Free | None, *, known: bool = False) -> None:
        self._free = free
        self._known = known
        self.asked: list[str] = []

    def is_free(self) -> bool:
        return self._known and self._free == "all"

    async def find(self, payer: str, /) -> Free | None:
        self.asked.append(payer)
        self._known = True
        return self._free


NOTHING = Spending(money=0, currency="credits")


def far(page: Page, **more: Any) -> SignedScene:
    """A gate before an agent elsewhere that may charge 700; its caller has 1000 to spend."""
    elsewhere = {"is_remote": True, "most_cost": 700, "takes_budget": True, "offer": page}
    return SignedScene(agents=(target("far", **{**elsewhere, **more}),))


async def spend_all(scene: SignedScene) -> None:
    for left in (1000, 250):
        call = await scene.gate.admit(claim("told"))
        assert call.reserve == min(left, 750)


@pytest.mark.parametrize("free", ["all", "own"])
async def test_for_a_free_agent_nothing_is_reserved_where_nothing_is_left(free: Free) -> None:
    """R53: it is told to spend nothing, and whoever owes may call it too."""
    page = Page(free)
    scene = far(page)
    await spend_all(scene)
    call = await scene.gate.admit(claim("far"))
    assert call.onward is not None
    assert (call.reserve, call.onward.budget, call.target.most_cost) == (0, NOTHING, 0)
    assert page.asked == ["token:alice"]


async def test_nobody_is_asked_whether_an_agent_is_free_while_there_is_money() -> None:
    page = Page("all")
    call = await far(page).gate.admit(claim("far"))
    assert (call.reserve, call.onward and call.onward.budget, page.asked) == (700, None, [])


async def test_for_an_agent_that_is_known_to_be_free_nothing_is_reserved() -> None:
    page = Page("all", known=True)
    call = await far(page).gate.admit(claim("far"))
    assert (call.reserve, call.onward and call.onward.budget, page.asked) == (0, NOTHING, [])


async def test_as_much_is_reserved_for_what_may_call_others_as_is_left() -> None:
    scene = far(Page("own", known=True))
    assert [(await scene.gate.admit(claim("far"))).reserve for _ in range(3)] == [700, 300, 0]


async def test_an_agent_that_has_a_price_is_refused_with_its_numbers() -> None:
    scene = far(Page(None))
    await spend_all(scene)
    with pytest.raises(SpendingLimitReached) as refused:
        await scene.gate.admit(claim("far"))
    assert refused.value.facts == {"needed": "0.0007", "left": "0"}


async def test_who_is_not_told_what_it_may_spend_is_free_only_if_it_calls_nobody() -> None:
    scene = far(Page("all"), takes_budget=False)
    await spend_all(scene)
    call = await scene.gate.admit(claim("far"))
    assert (call.reserve, call.onward and call.onward.budget) == (0, NOTHING)
    scene = far(Page("own"), takes_budget=False)
    await spend_all(scene)
    with pytest.raises(SpendingLimitReached):
        await scene.gate.admit(claim("far"))


async def test_our_own_price_is_asked_for_though_the_agent_elsewhere_is_free() -> None:
    scene = far(Page("all"), price=50)
    await spend_all(scene)
    with pytest.raises(SpendingLimitReached) as refused:
        await scene.gate.admit(claim("far"))
    assert refused.value.facts == {"needed": "0.00005", "left": "0"}


async def test_a_child_is_told_to_spend_nothing_where_nothing_is_left_of_the_budget() -> None:
    page = Page("own")
    scene = far(page)
    carried = travelled(document=document(run="trace-1", turn="span-1", budget=NOTHING))
    parent = await scene.gate.admit(signed_claim("echo", proof=carried))
    ask = Ask(messages=(Message("user", ("below",)),))
    child = await scene.gate.admit_child(parent, "far", ask, index=0, auth="forward-user")
    assert (child.reserve, child.set_aside, child.carnet.budget) == (0, 0, NOTHING)
    assert page.asked == ["peer:b.example"]
