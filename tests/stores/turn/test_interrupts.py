"""A turn that waits for an answer: what it holds, who may answer, and when its time is over."""

import asyncio
from typing import Any

import pytest

from carnet.core.messages.events import Failed
from carnet.core.messages.interrupt import hash_state
from carnet.core.people.identity import Payer
from carnet.errors import Internal
from carnet.ports.calls.tasks import Callback, StoredTask
from carnet.ports.calls.turns import Claimed, Debit, Denied, Fenced, Known, Quota, Tell, Use
from carnet.stores.open import Store
from tests.stores.support.scenes import (
    ALICE,
    NOW,
    SECOND,
    Place,
    a_claim,
    a_delivery,
    a_finish,
    a_task,
    a_wait,
    an_answer,
    an_interrupt,
    claimed,
    leased,
)

QUOTA = Payer(account=ALICE.account, quota="p", limit=1000)
HOUR = 3600 * SECOND


async def test_a_turn_that_waits_is_repeated_as_waiting_with_the_same_interrupt(
    store: Store, place: Place
) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    waiting = await store.turns.finish(a_wait(turn))
    assert (waiting.state, waiting.ended, waiting.waits_until) == ("waiting", None, NOW + HOUR)
    assert await store.turns.claim(a_claim()) == Known(waiting)
    (asked,) = await store.turns.interrupts(waiting)
    assert (asked.interrupt, asked.status) == (an_interrupt(), "open")
    assert await store.turns.events(waiting) != []
    for table in ("interrupt", "journal", "kept_call"):
        assert b"secret of" not in repr(place.rows(f"SELECT * FROM {table}")).encode()  # noqa: S608


async def test_a_turn_that_waits_holds_what_it_reserved_less_what_it_spent(
    store: Store, place: Place
) -> None:
    asked = a_claim(payer=QUOTA, reserve=800)
    turn = claimed(await store.turns.claim(asked))
    spent = (Debit("agent:echo", 300),)
    waiting = await store.turns.finish(a_wait(turn, payer=QUOTA, debits=spent))
    assert waiting.cost == 300
    assert place.rows("SELECT spent, reserved FROM purse WHERE name = 'p'") == [(300, 500)]
    too_much = a_claim("r2", payer=QUOTA, reserve=300)
    assert await store.turns.claim(too_much) == Denied("spending", amount=200)
    resumed = claimed(await store.turns.claim(a_claim(payer=QUOTA, resolution=an_answer())))
    assert place.rows("SELECT spent, reserved FROM purse WHERE name = 'p'") == [(300, 500)]
    ended = await store.turns.finish(a_finish(resumed, payer=QUOTA))
    assert ended.cost == 500  # what it cost before it waited, too
    assert place.rows("SELECT spent, reserved FROM purse WHERE name = 'p'") == [(500, 0)]
    assert place.rows("SELECT COUNT(*) FROM kept_call") == [(0,)]


async def test_an_answer_runs_the_turn_on_under_the_next_fence(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    waiting = await store.turns.finish(a_wait(turn))
    answer = an_answer(resolver="alice", value=b'{"amount":4}')
    resumed = claimed(await store.turns.claim(a_claim(resolution=answer)))
    assert (resumed.state, resumed.attempt, resumed.fence) == ("running", 1, turn.fence + 1)
    assert resumed.waits_until is None
    assert await store.turns.reload(turn) == resumed
    assert await store.turns.events(resumed) == []  # what was said is said again
    (asked,) = await store.turns.interrupts(resumed)
    assert (asked.status, asked.outcome, asked.resolver) == ("resolved", "accepted", "alice")
    assert asked.value == b'{"amount":4}'
    with pytest.raises(Fenced):
        await store.turns.finish(a_finish(waiting))
    ended = await store.turns.finish(a_finish(resumed))
    assert await store.turns.claim(a_claim()) == Known(ended)


async def test_an_answer_is_used_once(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    await store.turns.finish(a_wait(turn))
    wrong = an_answer(state_hash=hash_state("guessed"))
    assert await store.turns.claim(a_claim(resolution=wrong)) == Denied("resolution")
    both = [store.turns.claim(a_claim(resolution=an_answer())) for _ in range(2)]
    verdicts = await asyncio.gather(*both)
    assert [type(verdict) for verdict in verdicts] == [Claimed, Denied]
    assert verdicts[1] == Denied("resolution")


async def test_an_answer_that_nobody_waits_for_is_denied(store: Store) -> None:
    assert await store.turns.claim(a_claim(resolution=an_answer())) == Denied("resolution")
    turn = claimed(await store.turns.claim(a_claim()))
    assert await store.turns.claim(a_claim(resolution=an_answer())) == Denied("resolution")
    await store.turns.finish(a_wait(turn))
    other = a_claim(digest=b"other", resolution=an_answer())
    assert await store.turns.claim(other) == Denied("mismatch")
    late = a_claim(resolution=an_answer(), now=NOW + HOUR)
    assert await store.turns.claim(late) == Denied("resolution")


async def test_a_turn_that_waits_for_several_runs_on_after_the_last(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    two = (an_interrupt(), an_interrupt("int_2", kind="consent"))
    waiting = await store.turns.finish(a_wait(turn, interrupts=two))
    first = await store.turns.claim(a_claim(resolution=an_answer("int_2", outcome="rejected")))
    assert first == Known(waiting)
    asked = await store.turns.interrupts(waiting)
    assert [(one.interrupt.id, one.status) for one in asked] == [
        ("int_1", "open"),
        ("int_2", "resolved"),
    ]
    assert claimed(await store.turns.claim(a_claim(resolution=an_answer()))).fence == 2


async def test_a_turn_whose_time_is_over_fails_and_gives_back_what_it_held(
    store: Store, place: Place
) -> None:
    count = Quota(name="tasks/echo/b", limit=5, take=1)
    asked = a_claim(payer=QUOTA, reserve=800, quotas=(count,))
    turn = claimed(await store.turns.claim(asked))
    held = (Use("tasks/echo/b", 1),)
    await store.turns.finish(a_wait(turn, payer=QUOTA, holding=held))
    place.clock.advance(3599)
    await store.upkeep()
    assert (await store.turns.reload(turn)).state == "waiting"
    place.clock.advance(2)
    await store.upkeep()
    ended = await store.turns.reload(turn)
    assert (ended.state, ended.code) == ("failed", "interrupt_expired")
    assert sorted(place.rows("SELECT name, spent, reserved FROM purse")) == [
        ("p", 0, 0),
        ("tasks/echo/b", 0, 0),
    ]
    (asked_for,) = await store.turns.interrupts(ended)
    assert asked_for.status == "expired"
    assert await store.turns.claim(a_claim()) == Known(ended)
    assert await store.turns.claim(a_claim(resolution=an_answer())) == Denied("resolution")
    assert place.rows("SELECT COUNT(*) FROM kept_call") == [(0,)]


async def test_a_task_whose_time_is_over_tells_its_addresses_with_its_end(
    store: Store, place: Place
) -> None:
    await store.turns.claim(a_task())
    await store.tasks.add_callback("task-r1", Callback(url="https://b.example/two", created=NOW))
    (task,) = await leased(store)
    await store.turns.finish(a_wait(task.turn, is_task=True))
    place.clock.advance(3601)
    await store.upkeep()
    assert (await store.turns.reload(task.turn)).state == "waiting"  # nobody could tell of it
    broken: dict[str, Any] = {"body": None}

    def teller(kept: StoredTask, end: Failed) -> Tell:
        assert (kept.id, kept.call_bytes) == ("task-r1", b"the call")
        assert end.code == "interrupt_expired"
        return lambda addresses: tuple(
            a_delivery(str(one.place), url=one.url, **broken) for one in addresses
        )

    store.expiry.teller = teller
    with pytest.raises(Internal):
        await store.upkeep()  # a delivery cannot be kept, so there is no end
    assert (await store.turns.reload(task.turn)).state == "waiting"
    broken.clear()
    await store.upkeep()
    assert (await store.turns.reload(task.turn)).code == "interrupt_expired"
    deliveries = await store.outbox.list(state="pending", limit=9)
    assert {stored.delivery.url for stored in deliveries} == {
        "https://b.example/hook",
        "https://b.example/two",
    }
    await store.upkeep()
    assert len(await store.outbox.list(state=None, limit=9)) == 2


async def test_a_turn_that_waits_survives_a_restart(place: Place) -> None:
    store = await place.start()
    turn = claimed(await store.turns.claim(a_claim()))
    waiting = await store.turns.finish(a_wait(turn))
    await store.close()
    again = await place.start()
    assert await again.turns.claim(a_claim()) == Known(waiting)
    assert claimed(await again.turns.claim(a_claim(resolution=an_answer()))).fence == 2
    await again.close()


async def test_a_task_that_waits_for_an_answer_keeps_its_sealed_call(
    store: Store, place: Place
) -> None:
    await store.turns.claim(a_task())
    (task,) = await leased(store)
    await store.turns.finish(a_wait(task.turn, is_task=True))
    found = await store.tasks.find("task-r1")
    assert found is not None
    assert (found.state, found.turn.state) == ("running", "waiting")
    assert place.rows("SELECT COUNT(*) FROM kept_call") == [(1,)]
    resumed = claimed(await store.turns.claim(a_claim(resolution=an_answer())))
    await store.turns.finish(a_finish(resumed, is_task=True))
    assert place.rows("SELECT COUNT(*) FROM kept_call") == [(0,)]


async def test_a_turn_waits_for_something_and_not_for_ever(place: Place) -> None:
    store = await place.open(wait_hours=2)
    turn = claimed(await store.turns.claim(a_claim()))
    with pytest.raises(ValueError, match="says what for"):
        await store.turns.finish(a_wait(turn, interrupts=()))
    end = a_wait(turn, waits_until=NOW + 100 * HOUR)
    assert (await store.turns.finish(end)).waits_until == end.now + 2 * HOUR
    other = claimed(await store.turns.claim(a_claim("r2")))
    assert (
        await store.turns.finish(a_wait(other, waits_until=0))
    ).waits_until == end.now + 2 * HOUR
    await store.close()
