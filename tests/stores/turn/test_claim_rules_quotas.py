"""Quotas and delegations that are good for one call: decided in the claim, without a trace."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from carnet.core.people.identity import Payer
from carnet.ports.calls.turns import Claimed, Denied, Known, Nonce, Quota, Rate, TurnClaim, Use
from carnet.stores.commit.queue import given_back
from carnet.stores.open import Store
from tests.stores.support.scenes import (
    ALICE,
    NOW,
    SECOND,
    Place,
    a_claim,
    a_finish,
    a_nonce,
    a_task,
    claimed,
    finished,
)

TOKENS = Quota(name="tokens/2027-01-15/echo/b", limit=10, retry_after=3600)
ONE_A_MINUTE = Rate(bucket="b", calls=1, seconds=60)
POOR = Payer(account=ALICE.account, quota="poor", limit=10)
SPENT = Denied("spent")
TABLES = ("run", "turn", "journal", "purse", "rate", "nonce", "task", "outbox")


def everything(place: Place) -> list[list[tuple[object, ...]]]:
    return [place.rows(f"SELECT * FROM {table} ORDER BY 1") for table in TABLES]  # noqa: S608


def once(name: str = "jti-1", *, life: int = 900) -> Nonce:
    return Nonce("jti:agent://a.example", name, NOW + life * SECOND)


def of_tasks(limit: int) -> Quota:
    return Quota(name="tasks/echo/b", limit=limit, take=1, retry_after=5)


async def use(store: Store, name: str, amount: int) -> None:
    turn = claimed(await store.turns.claim(a_claim(name, quotas=(TOKENS,))))
    await store.turns.finish(a_finish(turn, uses=(Use(TOKENS.name, amount),)))


async def test_a_quota_that_is_used_up_refuses_until_then_it_is_added_to(
    store: Store, place: Place
) -> None:
    await use(store, "r1", 9)
    await use(store, "r2", 50)  # nobody knew before its end
    assert place.rows("SELECT spent, reserved FROM purse WHERE name LIKE 'tokens/%'") == [(59, 0)]
    before = everything(place)
    refused = a_claim("r3", quotas=(TOKENS,), rates=(ONE_A_MINUTE,), nonce=a_nonce())
    assert await store.turns.claim(refused) == Denied("quota", 3600, TOKENS.name)
    assert everything(place) == before
    ended = await finished(store, "r1x")
    known = a_claim("r1x", quotas=(TOKENS,))
    assert await store.turns.claim(known) == Known(ended)  # what is known costs nothing


async def test_nothing_is_kept_of_a_quota_that_is_only_looked_at(
    store: Store, place: Place
) -> None:
    await finished(store, quotas=(TOKENS,))
    assert place.rows("SELECT name FROM purse WHERE name LIKE 'tokens/%'") == []


async def test_what_is_taken_is_counted_within_one_batch(store: Store) -> None:
    claims = [a_claim(f"r{i}", quotas=(of_tasks(5),)) for i in range(9)]
    verdicts = await asyncio.gather(*map(store.turns.claim, claims))
    assert [type(verdict) for verdict in verdicts] == [Claimed] * 5 + [Denied] * 4
    assert verdicts[5] == Denied("quota", 5, "tasks/echo/b")


async def test_all_quotas_must_pass_and_the_longest_wait_is_told(store: Store) -> None:
    await use(store, "r1", 10)
    full = of_tasks(0)
    for quotas in ((full, TOKENS), (TOKENS, full)):
        refusal = await store.turns.claim(a_claim("r2", quotas=quotas))
        assert refusal == Denied("quota", 3600, TOKENS.name)
    assert await store.turns.claim(a_claim("r2", quotas=(full,))) == Denied("quota", 5, full.name)


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        (a_claim("r9", rates=(ONE_A_MINUTE,), payer=POOR, reserve=11), "rate"),
        (a_claim("r9", payer=POOR, reserve=11), "quota"),
    ],
    ids=["rate", "quota"],
)
async def test_quotas_come_after_rates_and_before_the_reservation(
    store: Store, refused: TurnClaim, reason: str
) -> None:
    await finished(store, rates=(ONE_A_MINUTE,))
    claim = a_claim(
        "r9", rates=refused.rates, payer=POOR, reserve=11, quotas=(of_tasks(0),), once=once()
    )
    verdict = await store.turns.claim(claim)
    assert isinstance(verdict, Denied)
    assert verdict.reason == reason


async def test_a_claim_that_is_refused_by_its_limit_takes_nothing_of_a_quota(
    store: Store, place: Place
) -> None:
    await finished(store)
    before = everything(place)
    for claim in (
        a_claim("r2", payer=POOR, reserve=11, quotas=(of_tasks(5),), once=once()),
        a_task("r3", payer=POOR, reserve=11, quotas=(of_tasks(5),), nonce=a_nonce()),
    ):
        assert await store.turns.claim(claim) == Denied("spending", amount=10)
    assert everything(place) == before


async def test_what_a_turn_took_is_given_back_with_it_when_its_caller_is_gone(
    store: Store, place: Place
) -> None:
    claim = a_claim(quotas=(of_tasks(5), TOKENS))
    turn = claimed(await store.turns.claim(claim))
    await store.turns.finish(given_back(claim, turn))
    assert place.rows("SELECT name, spent FROM purse") == [("tasks/echo/b", 0)]


async def test_a_delegation_for_one_call_is_used_up_by_it(store: Store, place: Place) -> None:
    turn = claimed(await store.turns.claim(a_claim("r1", once=once(), nonce=a_nonce("n1"))))
    before = everything(place)
    assert await store.turns.claim(a_claim("r2", once=once(), nonce=a_nonce("n2"))) == SPENT
    assert everything(place) == before  # and the nonce of the second is not used up
    # The same call once more is no second call.
    assert await store.turns.claim(a_claim("r1", once=once())) == Known(turn)
    claimed(await store.turns.claim(a_claim("r3", once=once("jti-2"), nonce=a_nonce("n2"))))
    late = a_claim("r4", once=once(life=2000), now=NOW + 901 * SECOND)
    claimed(await store.turns.claim(late))  # the first use of that name has expired


async def test_a_call_that_runs_again_does_so_with_the_delegation_it_had(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim("r1", once=once())))
    await store.turns.finish(a_finish(turn, state="failed", retryable=True, debits=()))
    other = claimed(await store.turns.claim(a_claim("r2", once=once("jti-2"))))
    assert await store.turns.claim(a_claim("r1", once=once("jti-2"))) == SPENT
    again = claimed(await store.turns.claim(a_claim("r1", once=once())))
    assert (again.n, again.attempt) == (turn.n, 2)
    await store.turns.finish(a_finish(other, state="unknown", debits=()))
    assert claimed(await store.turns.claim(a_claim("r2", once=once("jti-3")))).attempt == 2
    assert await store.turns.claim(a_claim("r3", once=once("jti-3"))) == SPENT


@pytest.mark.parametrize(
    ("refused", "reason"),
    [
        ({"most_run_calls": 0}, "run_calls"),
        ({"rates": (ONE_A_MINUTE,)}, "rate"),
        ({"quotas": (of_tasks(0),)}, "quota"),
        ({"payer": POOR, "reserve": 11}, "spending"),
        ({"nonce": a_nonce("used")}, "replayed"),
    ],
    ids=["run_calls", "rate", "quota", "spending", "replayed"],
)
async def test_a_refused_call_does_not_use_up_its_delegation(
    store: Store, place: Place, refused: dict[str, object], reason: str
) -> None:
    await finished(store, rates=(ONE_A_MINUTE,), nonce=a_nonce("used"))
    before = everything(place)
    verdict = await store.turns.claim(a_claim("r2", once=once(), **refused))
    assert isinstance(verdict, Denied)
    assert verdict.reason == reason
    assert everything(place) == before
    claimed(await store.turns.claim(a_claim("r3", once=once())))


async def test_of_many_calls_with_one_delegation_in_one_batch_one_runs(store: Store) -> None:
    claims = [a_claim(f"r{i}", once=once(), nonce=a_nonce(f"n{i}")) for i in range(32)]
    verdicts = await asyncio.gather(*map(store.turns.claim, claims))
    assert isinstance(verdicts[0], Claimed)
    assert verdicts[1:] == [SPENT] * 31


@pytest.fixture
async def other(place: Place) -> AsyncIterator[Store]:
    opened = await place.start()
    yield opened
    await opened.close()


async def test_a_delegation_is_used_up_for_all_postgres_replicas(
    store: Store, other: Store, place: Place
) -> None:
    stores = (store, other)
    for i in range(6):
        claims = [a_claim(f"r{i}-{j}", once=once(f"jti-{i}")) for j in range(16)]
        verdicts = await asyncio.gather(
            *[stores[j % 2].turns.claim(claim) for j, claim in enumerate(claims)]
        )
        assert sum(isinstance(verdict, Claimed) for verdict in verdicts) == 1
        assert verdicts.count(SPENT) == 15
    assert place.counts()["run"] == place.counts()["turn"] == 6


async def test_a_quota_holds_over_all_postgres_replicas(
    store: Store, other: Store, place: Place
) -> None:
    stores = (store, other)
    claims = [a_task(f"r{i}", quotas=(of_tasks(7),)) for i in range(40)]
    verdicts = await asyncio.gather(
        *[stores[i % 2].turns.claim(claim) for i, claim in enumerate(claims)]
    )
    assert sum(isinstance(verdict, Claimed) for verdict in verdicts) == 7
    assert place.rows("SELECT spent FROM purse WHERE name = 'tasks/echo/b'") == [(7,)]
    assert await store.tasks.waiting() == 7
