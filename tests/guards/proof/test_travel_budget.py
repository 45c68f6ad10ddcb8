"""What a travel document leaves to be spent, by everything that is called for one call together."""

import pytest
from msgspec.structs import replace

from carnet.core.call import Ask, Call
from carnet.core.chain.allowance import Aside
from carnet.core.messages.events import Message
from carnet.core.people.proof import Spending
from carnet.errors import BudgetExceeded, PaymentRequired
from carnet.ports.calls.turns import Denied, TurnClaim, TurnFinish, Verdict
from carnet.testing.turns import MemoryTurns
from tests.guards.signed_scene import SignedScene, document, signed_claim, travelled


async def parent_with(scene: SignedScene, budget: Spending) -> Call:
    proof = travelled(document=document(budget=budget))
    return await scene.gate.admit(replace(signed_claim(proof=proof), marks=()))


def failed(call: Call) -> TurnFinish:
    """The end of a call that has cost nothing."""
    return TurnFinish(
        turn=call.record,
        state="failed",
        payer=call.payer,
        events=b"",
        first=0,
        last=0,
        debits=(),
        children_cost=0,
        reserve=0,
        now=call.record.created,
        used=(1, 0),
    )


async def below(
    scene: SignedScene, parent: Call, name: str, index: int = 0, auth: str = "forward-user"
) -> Call:
    ask = Ask(messages=(Message("user", ("below",)),))
    return await scene.gate.admit_child(parent, name, ask, index=index, auth=auth)


async def test_two_calls_together_spend_no_more_than_is_left() -> None:
    scene = SignedScene(turns=MemoryTurns(keeps_limits=False))
    parent = await parent_with(scene, Spending(money=300, currency="credits"))
    first = await below(scene, parent, "paid", 0)  # its price is 200
    with pytest.raises(BudgetExceeded):
        await below(scene, parent, "paid", 1)
    assert first.allowance is not None
    first.allowance.give_back(Aside(first.set_aside))  # it has cost nothing
    await scene.turns.finish(failed(first))
    assert (await below(scene, parent, "paid", 2)).set_aside == 200


async def test_an_agent_elsewhere_may_cost_what_is_left_and_no_more() -> None:
    scene = SignedScene(turns=MemoryTurns(keeps_limits=False))
    parent = await parent_with(scene, Spending(money=100, currency="credits", calls=5))
    child = await below(scene, parent, "dear")
    assert child.set_aside == 100
    assert child.carnet.budget == Spending(money=100, currency="credits", calls=1)


async def test_what_an_agent_pays_itself_is_not_bounded_by_its_callers_money() -> None:
    scene = SignedScene()
    parent = await parent_with(scene, Spending(money=100, currency="credits", calls=5))
    child = await below(scene, parent, "dear", auth="agent-owned")
    assert (child.set_aside, child.carnet.budget) == (0, Spending(calls=1))


async def test_no_more_calls_are_made_than_are_left() -> None:
    scene = SignedScene()
    parent = await parent_with(scene, Spending(calls=2))
    await below(scene, parent, "echo")
    with pytest.raises(BudgetExceeded):
        await below(scene, parent, "echo", 1)


async def test_a_call_is_made_while_tokens_are_left_and_then_none_is() -> None:
    scene = SignedScene(turns=MemoryTurns(keeps_limits=False))
    parent = await parent_with(scene, Spending(tokens=100))
    assert parent.allowance is not None
    parent.allowance.use(99)
    child = await below(scene, parent, "dear")
    assert child.carnet.budget == Spending(tokens=1)
    parent.allowance.use(50)  # it took more than there was
    with pytest.raises(BudgetExceeded):
        await below(scene, parent, "echo", 1)
    with pytest.raises(BudgetExceeded):
        await parent_with(SignedScene(), Spending(tokens=0))


async def test_a_call_that_is_passed_on_takes_what_is_left_with_it() -> None:
    scene = SignedScene(turns=MemoryTurns(keeps_limits=False))
    proof = travelled(document=document(budget=Spending(money=100, currency="credits")))
    call = await scene.gate.admit(replace(signed_claim("dear", proof=proof, skill=None), marks=()))
    assert call.onward is not None
    assert call.onward.budget == Spending(money=100, currency="credits")


class Broke(MemoryTurns):
    """Turns of a payer that has nothing left for the dear one."""

    async def claim(self, claim: TurnClaim) -> Verdict:
        return Denied("spending") if claim.admitted.agent == "dear" else await super().claim(claim)


async def test_what_was_set_aside_for_a_call_that_is_refused_is_given_back() -> None:
    scene = SignedScene(turns=Broke())
    parent = await parent_with(scene, Spending(money=900, currency="credits"))
    with pytest.raises(PaymentRequired):
        await below(scene, parent, "dear")
    assert parent.allowance is not None
    assert parent.allowance.left().money == 900
