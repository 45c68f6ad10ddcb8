"""The turns in memory, for tests of guards and agents, keep what a store keeps."""

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from carnet.core.people.identity import Payer
from carnet.ports.calls.turns import Denied, Quota, Rate, TurnClaim, Turns, Use, Verdict
from carnet.stores.open import Store
from carnet.testing.turns import MemoryTurns
from tests.stores.support.scenes import (
    ALICE,
    a_claim,
    a_finish,
    a_nonce,
    a_task,
    a_wait,
    an_answer,
    claimed,
)

TAKEN = Quota(name="tasks/echo/b", limit=1, take=1, retry_after=5)
LOOKED_AT = Quota(name="tokens/2027-01-15/echo/b", limit=10, retry_after=9)
LIMITED = Payer(account=ALICE.account, quota="p", limit=1000)
ONE = Rate(bucket="b", calls=1, seconds=60)


def seen_of(verdict: Verdict) -> tuple[object, ...]:
    """What a guard sees of it."""
    if isinstance(verdict, Denied):
        return verdict.reason, verdict.retry_after, verdict.bucket
    turn = verdict.turn
    return type(verdict).__name__, turn.run, turn.state, turn.attempt, turn.fence


async def scene(turns: Turns) -> list[tuple[object, ...]]:
    seen: list[tuple[object, ...]] = []

    async def claim(claim: TurnClaim) -> Verdict:
        verdict = await turns.claim(claim)
        seen.append(seen_of(verdict))
        return verdict

    once = a_nonce("jti", sender="jti:a")
    first = claimed(await claim(a_claim("r1", once=once, quotas=(TAKEN, LOOKED_AT))))
    await claim(a_claim("r2", once=once))
    await claim(a_claim("r2", quotas=(TAKEN,), nonce=a_nonce(), rates=(ONE,)))
    await claim(a_claim("r1", once=once, quotas=(TAKEN,)))
    uses = (Use(TAKEN.name, -1), Use(LOOKED_AT.name, 10))
    await turns.finish(a_finish(first, state="failed", retryable=True, uses=uses, debits=()))
    await claim(a_claim("r2", quotas=(LOOKED_AT,)))
    await claim(a_claim("r2", quotas=(TAKEN,), nonce=a_nonce(), rates=(ONE,)))
    await claim(a_claim("r1", once=once, quotas=(TAKEN,)))
    await claim(a_claim("r1", once=once, rates=(ONE,)))
    again = claimed(await claim(a_claim("r1", once=once)))
    await turns.finish(a_finish(again))
    await claim(a_claim("r1", once=once, quotas=(TAKEN,)))
    await claim(a_task("r3"))
    await claim(a_task("r3"))
    await waits(turns, claim)
    return seen


async def waits(turns: Turns, claim: Callable[[TurnClaim], Awaitable[Verdict]]) -> None:
    """A payer with a limit, and a turn that waits for an answer and holds what it reserved."""
    asked = a_claim("r4", payer=LIMITED, reserve=800, depth=1, wire_parent=True, parent_turn="p")
    turn = claimed(await claim(asked))
    await turns.finish(a_wait(turn, payer=LIMITED))
    await claim(a_claim("r5", payer=LIMITED, reserve=300))
    await claim(
        a_claim("r4", turn="deeper", payer=LIMITED, depth=3, wire_parent=True, parent_turn="p")
    )
    await claim(replace(asked, resolution=an_answer(state_hash=b"guessed")))
    resumed = claimed(await claim(replace(asked, resolution=an_answer())))
    await claim(replace(asked, resolution=an_answer()))
    await turns.finish(a_finish(resumed, payer=LIMITED))
    await claim(a_claim("r5", payer=LIMITED, reserve=300))


async def test_the_turns_in_memory_decide_as_a_store_does(store: Store) -> None:
    assert await scene(MemoryTurns()) == await scene(store.turns)
