"""The turns in memory, for tests of guards, decide about quotas and delegations as a store does."""

from carnet.ports.turns import Denied, Quota, Rate, TurnClaim, Turns, Use, Verdict
from carnet.stores.opening import Store
from carnet.testing.turns import MemoryTurns
from tests.stores.scenes import a_claim, a_finish, a_nonce, a_task, claimed

TAKEN = Quota(purse="tasks/echo/b", limit=1, take=1, retry_after=5)
LOOKED_AT = Quota(purse="tokens/2027-01-15/echo/b", limit=10, retry_after=9)
ONE = Rate(bucket="b", calls=1, seconds=60)


def told(verdict: Verdict) -> tuple[object, ...]:
    """What a guard sees of it; the time to wait of a rate is not kept by the one in memory."""
    if isinstance(verdict, Denied):
        wait = verdict.retry_after if verdict.reason == "quota" else None
        return verdict.reason, wait, verdict.bucket
    turn = verdict.turn
    return type(verdict).__name__, turn.run, turn.state, turn.attempt, turn.fence


async def scene(turns: Turns) -> list[tuple[object, ...]]:
    seen: list[tuple[object, ...]] = []

    async def claim(claim: TurnClaim) -> Verdict:
        verdict = await turns.claim(claim)
        seen.append(told(verdict))
        return verdict

    once = a_nonce("jti", sender="jti:a")
    first = claimed(await claim(a_claim("r1", once=once, quotas=(TAKEN, LOOKED_AT))))
    await claim(a_claim("r2", once=once))
    await claim(a_claim("r2", quotas=(TAKEN,), nonce=a_nonce(), rates=(ONE,)))
    await claim(a_claim("r1", once=once, quotas=(TAKEN,)))
    uses = (Use(TAKEN.purse, -1), Use(LOOKED_AT.purse, 10))
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
    return seen


async def test_the_turns_in_memory_decide_as_a_store_does(store: Store) -> None:
    assert await scene(MemoryTurns()) == await scene(store.turns)
