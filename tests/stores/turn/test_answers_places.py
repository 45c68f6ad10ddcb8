"""How many turns of one caller may wait, and where those wait that were answered: on each store."""

import asyncio

import pytest

from carnet.core.chain.turn import Turn
from carnet.core.people.identity import Account, Payer
from carnet.errors import TooManyWaiting
from carnet.ports.calls.tasks import TaskClaim
from carnet.ports.calls.turns import Claimed, Quota, TurnFinish, Use
from carnet.stores.commit.queue import given_back
from carnet.stores.open import Store
from tests.stores.support.scenes import (
    ALICE,
    BOB,
    SECOND,
    Place,
    a_claim,
    a_finish,
    a_task,
    a_wait,
    an_answer,
    an_interrupt,
    claimed,
    leased,
)

PLACE = "waits/token:alice"
QUOTA = Payer(account=ALICE.account, quota="p", limit=10_000)
CAROL = Payer(account=Account("token:carol", "carol"), quota="token:carol")


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


async def test_a_turn_that_was_answered_keeps_its_place_until_it_has_ended(
    store: Store, place: Place
) -> None:
    """A88: who answers its calls has no more of them in the queue than may wait."""
    store.bound_waiting(1)
    await store.turns.finish(waits(await began(store, "r1")))
    claim = a_claim("r1", resolution=an_answer("int_r1"))
    resumed = await store.turns.claim(claim)
    assert isinstance(resumed, Claimed)
    assert counted(place) == [(1, 0)]
    await store._database.finish(given_back(claim, resumed.turn))  # noqa: SLF001  as the writer does
    assert counted(place) == [(1, 0)]
    again = claimed(await store.turns.claim(claim))
    other = await began(store, "r2")
    with pytest.raises(TooManyWaiting):
        await store.turns.finish(waits(other))
    assert (await store.turns.finish(waits(again))).state == "waiting"  # it asks again, in its own
    assert counted(place) == [(1, 0)]
    last = claimed(await store.turns.claim(claim))
    assert (await store.turns.finish(a_finish(last))).state == "done"
    assert counted(place) == [(0, 0)]
    assert (await store.turns.finish(waits(other))).state == "waiting"


@pytest.mark.parametrize("state", ["failed", "unknown"])
async def test_a_turn_that_was_answered_and_is_run_again_has_no_place(
    store: Store, place: Place, state: str
) -> None:
    await store.turns.finish(waits(await began(store, "r1")))
    claim = a_claim("r1", resolution=an_answer("int_r1"))
    resumed = claimed(await store.turns.claim(claim))
    if state == "failed":
        await store.turns.finish(a_finish(resumed, state="failed", debits=(), retryable=True))
    else:  # its worker is gone, and nobody has ended it
        place.rows("UPDATE turn SET worker = 'gone'")
    again = claimed(await store.turns.claim(a_claim("r1")))
    assert counted(place) == [(0, 0)]
    await store.turns.finish(a_finish(again))
    assert counted(place) == [(0, 0)]


async def test_an_end_of_the_same_moment_makes_room(store: Store, place: Place) -> None:
    store.bound_waiting(1)
    await store.turns.finish(waits(await began(store, "r1")))
    answered = claimed(await store.turns.claim(a_claim("r1", resolution=an_answer("int_r1"))))
    second = await began(store, "r2")
    ending = store.turns.finish(a_finish(answered))
    waiting = store.turns.finish(waits(second))  # both are taken by the writer together
    assert (await ending).state == "done"
    assert (await waiting).state == "waiting"
    assert counted(place) == [(1, 0)]


async def drive(store: Store, name: str, payer: Payer = ALICE) -> None:
    """Answer a turn as a person does: it is run on as a task."""
    who = {"payer": payer, "actor": payer.quota}
    place = f"waits/{payer.quota}"
    await store.turns.finish(waits(await began(store, name, **who), place, payer=payer))
    task = TaskClaim(id=f"task-{name}", sender="x", skill=None, callback=None, call_bytes=b"")
    answer = a_claim(name, task=task, resolution=an_answer(f"int_{name}"), **who)
    assert isinstance(await store.turns.claim(answer), Claimed)


async def test_an_answered_turn_waits_behind_those_of_its_payer_and_of_nobody_else(
    store: Store, place: Place
) -> None:
    """A88: by rank, whoever has many that were answered holds up nobody who has one."""
    for number in range(4):
        await drive(store, f"a{number}")
    await drive(store, "b0", BOB)
    await store.turns.claim(a_task("b1", payer=BOB, quotas=(Quota(name="t", limit=9, take=1),)))
    await drive(store, "a4")
    await drive(store, "b2", BOB)
    ranks = "SELECT r.id, t.rank FROM turn t JOIN run r ON r.n = t.run ORDER BY t.rank, t.n"
    assert place.rows(ranks) == [
        *(("a0", 0), ("b0", 0), ("b1", 0), ("a1", 1), ("a2", 2), ("b2", 2), ("a3", 3), ("a4", 4)),
    ]
    begun = [task.turn.run for task in await leased(store, most=3)]
    assert sorted(begun) == ["a0", "b0", "b1"]
    await drive(store, "c0", CAROL)  # behind nobody, though others have come before it
    assert place.rows(f"{ranks} LIMIT 4")[3] == ("a1", 1)
    assert ("c0", 1) in place.rows(ranks)


async def test_answers_of_one_moment_wait_behind_one_another(store: Store, place: Place) -> None:
    """A88: whichever are decided in one batch, and at whichever agent."""
    claims = []
    for number in range(6):
        agent = "echo" if number < 4 else "other"
        turn = await began(store, f"r{number}", agent=agent)
        await store.turns.finish(waits(turn))
        task = TaskClaim(id=f"t{number}", sender="x", skill=None, callback=None, call_bytes=b"")
        answer = an_answer(f"int_r{number}")
        claims.append(a_claim(f"r{number}", agent=agent, task=task, resolution=answer))
    await asyncio.gather(*(store.turns.claim(claim) for claim in claims))
    found = place.rows("SELECT agent, rank FROM turn ORDER BY agent, rank")
    assert found == [*(("echo", rank) for rank in range(4)), ("other", 0), ("other", 1)]


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
