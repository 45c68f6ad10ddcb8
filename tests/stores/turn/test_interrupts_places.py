"""How many turns of one caller may wait: counted where they begin to, exactly, on each store."""

import asyncio

import pytest

from carnet.core.chain.turn import Turn
from carnet.core.people.identity import Payer
from carnet.errors import TooManyWaiting
from carnet.ports.calls.turns import Claimed, TurnFinish, Use
from carnet.stores.commit.queue import given_back
from carnet.stores.open import Store
from tests.stores.support.scenes import (
    ALICE,
    SECOND,
    Place,
    a_claim,
    a_finish,
    a_wait,
    an_answer,
    an_interrupt,
    claimed,
)

PLACE = "waits/token:alice"
QUOTA = Payer(account=ALICE.account, quota="p", limit=10_000)


def waits(turn: Turn, place: str = PLACE, **changes: object) -> TurnFinish:
    asked = (an_interrupt(f"int_{turn.run}"),)
    return a_wait(turn, holding=(Use(place, 1),), interrupts=asked, **changes)


async def began(store: Store, name: str, **changes: object) -> Turn:
    return claimed(await store.turns.claim(a_claim(name, **changes)))


def counted(place: Place) -> list[tuple[int, int]]:
    return place.rows("SELECT spent, reserved FROM purse WHERE name = ?", PLACE)


async def test_as_many_turns_of_one_caller_wait_as_may_and_no_more(
    store: Store, place: Place
) -> None:
    store.bound_waiting(2)
    turns = [await began(store, f"r{n}", payer=QUOTA, reserve=100) for n in range(5)]
    ends = [store.turns.finish(waits(turn, payer=QUOTA)) for turn in turns]
    verdicts = await asyncio.gather(*ends, return_exceptions=True)  # in one batch, perhaps
    refused = [n for n, verdict in enumerate(verdicts) if isinstance(verdict, TooManyWaiting)]
    assert len(refused) == 3
    assert counted(place) == [(2, 0)]
    for n in refused:  # nothing of its wait was written: it ends otherwise
        end = a_finish(turns[n], state="failed", payer=QUOTA, debits=(), code="too_many_waiting")
        assert (await store.turns.finish(end)).state == "failed"
    assert place.rows("SELECT reserved FROM purse WHERE name = 'p'") == [(200,)]
    assert place.rows("SELECT COUNT(*) FROM interrupt") == [(2,)]
    assert place.rows("SELECT COUNT(*) FROM kept_call") == [(2,)]


async def test_nobody_takes_the_places_of_another(store: Store) -> None:
    store.bound_waiting(1)
    await store.turns.finish(waits(await began(store, "r1")))
    with pytest.raises(TooManyWaiting):
        await store.turns.finish(waits(await began(store, "r2")))
    other = waits(await began(store, "r3", actor="token:bob"), "waits/token:bob")
    assert (await store.turns.finish(other)).state == "waiting"


async def test_an_answer_makes_room_and_one_that_is_given_back_takes_it_again(
    store: Store, place: Place
) -> None:
    store.bound_waiting(1)
    await store.turns.finish(waits(await began(store, "r1")))
    claim = a_claim("r1", resolution=an_answer("int_r1"))
    resumed = await store.turns.claim(claim)
    assert isinstance(resumed, Claimed)
    assert counted(place) == [(0, 0)]
    await store._database.finish(given_back(claim, resumed.turn))  # noqa: SLF001  as the writer does
    assert counted(place) == [(1, 0)]
    with pytest.raises(TooManyWaiting):
        await store.turns.finish(waits(await began(store, "r2")))
    again = claimed(await store.turns.claim(claim))
    assert (await store.turns.finish(waits(again))).state == "waiting"
    assert counted(place) == [(1, 0)]


async def test_an_answer_of_the_same_moment_makes_room(store: Store, place: Place) -> None:
    store.bound_waiting(1)
    await store.turns.finish(waits(await began(store, "r1")))
    second = await began(store, "r2")
    answering = asyncio.ensure_future(
        store.turns.claim(a_claim("r1", resolution=an_answer("int_r1")))
    )
    await asyncio.sleep(0)
    waiting = store.turns.finish(waits(second))  # both are taken by the writer together
    assert isinstance(await answering, Claimed)
    assert (await waiting).state == "waiting"
    assert counted(place) == [(1, 0)]


async def test_a_turn_whose_time_is_over_makes_room(store: Store, place: Place) -> None:
    store.bound_waiting(1)
    first = await store.turns.finish(waits(await began(store, "r1")))
    assert first.waits_until is not None
    await store.expiry.end(first.waits_until)
    assert counted(place) == [(0, 0)]
    assert (await store.turns.finish(waits(await began(store, "r2")))).state == "waiting"


async def test_what_waits_below_a_turn_ends_with_it(store: Store, place: Place) -> None:
    parent = await began(store, "r1")
    more = {"turn": "r1.t1.shop", "parent_turn": parent.turn, "depth": 1, "agent": "shop"}
    child = await began(store, "r1", payer=QUOTA, reserve=100, made_in=parent, **more)
    inner = {**more, "turn": "r1.t2.bank", "parent_turn": child.turn, "depth": 2}
    below = await began(store, "r1", payer=QUOTA, reserve=100, made_in=child, **inner)
    for turn in (below, child):
        await store.turns.finish(a_wait(turn, payer=QUOTA))
    parent = await store.turns.finish(waits(parent))
    await store.expiry.cancel([parent.n], parent.created + SECOND)
    states = place.rows("SELECT turn, state, code FROM turn ORDER BY n")
    assert {state[1:] for state in states} == {("failed", "cancelled")}
    assert place.rows("SELECT SUM(reserved) FROM purse") == [(0,)]
    assert place.rows("SELECT COUNT(*) FROM kept_call") == [(0,)]
    assert place.rows("SELECT DISTINCT status FROM interrupt") == [("expired",)]
