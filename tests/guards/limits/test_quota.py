"""The tokens of a day: counted for whoever signed, refused when they are used, new at midnight."""

from typing import Any

import pytest

from carnet.core.call import Ask, Call, Claim
from carnet.core.chain.turn import TurnState
from carnet.core.messages.events import Message
from carnet.core.people.proof import SECOND_US
from carnet.errors import TokenBudgetExceeded
from carnet.guards.quotas import DAY_SECONDS
from carnet.ports.calls.turns import Quota, TurnClaim, TurnFinish, Use, Verdict
from carnet.testing.turns import MemoryTurns
from tests.guards.signed_scene import (
    NOW,
    ONE_LABEL,
    PEER,
    PUBLIC,
    STRANGER,
    SignedScene,
    signed_claim,
)

BELOW_PEER = "agent://critic.b.example"
_numbers = iter(range(1_000_000))


def asking(agent: str = "counted", **fields: Any) -> Claim:
    n = next(_numbers)
    return signed_claim(agent, nonce=f"nonce-{n:08}", span=f"span-{n}", **fields)


async def spend(scene: SignedScene, call: Call, tokens: int, state: TurnState = "done") -> None:
    """End a call that has used so many tokens."""
    assert call.quota is not None
    finish = TurnFinish(
        turn=call.record,
        state=state,
        payer=call.payer,
        events=b"",
        first=0,
        last=0,
        debits=(),
        children_cost=0,
        reserve=0,
        now=scene.clock.wall_us(),
        uses=(Use(call.quota, tokens),),
    )
    await scene.turns.finish(finish)


async def admit(scene: SignedScene, claim: Claim) -> Call:
    call = await scene.gate.admit(claim)
    scene.concurrency.leave(call.caller.actor.name, stream=False)
    return call


async def test_a_sender_that_has_used_its_tokens_is_refused_until_midnight() -> None:
    scene = SignedScene()
    scene.clock.advance(DAY_SECONDS - NOW // SECOND_US % DAY_SECONDS - 90)  # a minute and a half
    at = scene.clock.wall_us()
    await spend(scene, await admit(scene, asking(at=at)), 999)
    await spend(scene, await admit(scene, asking(at=at)), 1)  # something was left: it is answered
    with pytest.raises(TokenBudgetExceeded) as refused:
        await scene.gate.admit(asking(at=at))
    assert refused.value.facts == {"limit": 1000, "retry_after": 90}
    scene.clock.advance(89)
    with pytest.raises(TokenBudgetExceeded) as refused:
        await scene.gate.admit(asking(at=scene.clock.wall_us()))
    assert refused.value.retry_after == 1
    scene.clock.advance(1)
    await admit(scene, asking(at=scene.clock.wall_us()))


async def test_tokens_are_each_senders_own_and_each_agents() -> None:
    scene = SignedScene()
    await spend(scene, await admit(scene, asking()), 1000)
    with pytest.raises(TokenBudgetExceeded):
        await scene.gate.admit(asking())
    await admit(scene, asking(sender=ONE_LABEL))
    unbounded = await admit(scene, asking("raw"))
    assert unbounded.quota is None


async def test_the_names_below_a_peer_share_one_quota() -> None:
    scene = SignedScene()
    scene.ring.publish(BELOW_PEER, "k1", PUBLIC)
    first = await admit(scene, asking(sender=PEER))
    second = await admit(scene, asking(sender=BELOW_PEER))
    assert first.quota == second.quota
    await spend(scene, first, 1000)
    with pytest.raises(TokenBudgetExceeded):
        await scene.gate.admit(asking(sender=BELOW_PEER))


async def test_what_a_call_that_failed_has_used_is_used() -> None:
    scene = SignedScene()
    await spend(scene, await admit(scene, asking()), 1000, state="failed")
    with pytest.raises(TokenBudgetExceeded):
        await scene.gate.admit(asking())


async def test_calls_made_in_process_use_the_quota_of_the_call_they_are_made_for() -> None:
    scene = SignedScene()
    parent = await admit(scene, asking())
    ask = Ask(messages=(Message("user", ("below",)),))
    child = await scene.gate.admit_child(parent, "raw", ask, index=0, auth="forward-user")
    assert child.quota == parent.quota is not None
    await spend(scene, child, 1000)
    with pytest.raises(TokenBudgetExceeded):
        await scene.gate.admit(asking())
    # What was admitted goes on: its own end is not known before it has come.
    await scene.gate.admit_child(parent, "counted", ask, index=1, auth="forward-user")


async def test_a_call_that_is_refused_burns_no_nonce_and_no_rate() -> None:
    scene = SignedScene()
    await spend(scene, await admit(scene, asking()), 1000)
    counts, nonces = dict(scene.turns.rates), dict(scene.turns.nonces)
    with pytest.raises(TokenBudgetExceeded):
        await scene.gate.admit(asking())
    assert (scene.turns.rates, scene.turns.nonces) == (counts, nonces)


class Watched(MemoryTurns):
    """Turns that remember what was claimed."""

    def __init__(self) -> None:
        super().__init__()
        self.claims: list[TurnClaim] = []

    async def claim(self, claim: TurnClaim) -> Verdict:
        self.claims.append(claim)
        return await super().claim(claim)


async def test_the_quota_names_day_agent_and_sender() -> None:
    turns = Watched()
    scene = SignedScene(turns=turns)
    await admit(scene, asking())
    await admit(scene, asking(sender=PEER))
    left = DAY_SECONDS - NOW // SECOND_US % DAY_SECONDS
    assert [claim.quotas for claim in turns.claims] == [
        (Quota(name=f"tokens/2027-01-15/counted/{who}", limit=1000, retry_after=left),)
        for who in (STRANGER, PEER)
    ]
