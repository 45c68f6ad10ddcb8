"""What becomes of an answer when something else happens to its turn at the same time."""

import asyncio

import pytest
from msgspec.structs import replace

from carnet.core.chain.turn import Turn
from carnet.core.messages.events import Failed
from carnet.core.messages.interrupt import Interrupt, hash_state
from carnet.ports.calls.tasks import StoredTask
from carnet.ports.calls.turns import (
    Claimed,
    Debit,
    Denied,
    Fenced,
    Known,
    Quota,
    Tell,
    TurnClaim,
    Use,
)
from carnet.ports.trust.people import NewPerson
from carnet.stores.commit.queue import given_back
from carnet.stores.open import Store
from tests.stores.support.scenes import (
    ALICE,
    LIMITED,
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


async def test_a_turn_that_is_answered_is_not_failed_by_an_expiry_of_the_same_moment(
    store: Store, place: Place
) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    waiting = await store.turns.finish(a_wait(turn))
    answer = a_claim(resolution=an_answer(), now=turn.created + SECOND)
    answering = asyncio.ensure_future(store.turns.claim(answer))
    await asyncio.sleep(0)
    expiry = a_finish(waiting, state="failed", code="interrupt_expired", debits=())
    expiring = store.turns.finish(expiry)  # both are taken by the writer together
    resumed = claimed(await answering)
    with pytest.raises(Fenced):
        await expiring
    assert await store.turns.reload(turn) == resumed
    assert place.rows("SELECT status FROM interrupt") == [("resolved",)]
    assert (await store.turns.finish(a_finish(resumed))).state == "done"


async def test_a_turn_that_is_claimed_again_is_not_ended_by_whoever_gives_it_up_then(
    store: Store, place: Place
) -> None:
    turn = claimed(await store.turns.claim(a_claim(reserve=300)))
    place.rows("UPDATE turn SET worker = 'gone'")
    again = asyncio.ensure_future(store.turns.claim(a_claim(reserve=300)))
    await asyncio.sleep(0)
    given_up = store.turns.finish(a_finish(turn, state="unknown", debits=()))
    verdict = await again
    assert isinstance(verdict, Claimed)
    with pytest.raises(Fenced):
        await given_up
    assert await store.turns.reload(turn) == verdict.turn
    assert place.rows("SELECT spent, reserved FROM purse") == [(0, 300)]
    await store.turns.finish(a_finish(verdict.turn))
    assert place.rows("SELECT spent, reserved FROM purse") == [(200, 0)]


async def test_what_a_turn_says_after_it_was_claimed_again_in_the_same_moment_is_not_kept(
    store: Store, place: Place
) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    place.rows("UPDATE turn SET worker = 'gone'")
    again = asyncio.ensure_future(store.turns.claim(a_claim()))
    late = asyncio.ensure_future(store.turns.append(turn, 0, 0, b'[["text","late"]]'))
    verdict = await again
    with pytest.raises(Fenced):
        await late
    assert isinstance(verdict, Claimed)
    assert await store.turns.events(verdict.turn) == []


async def test_an_interrupt_that_is_asked_again_is_a_new_question(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    await store.turns.finish(a_wait(turn))
    value = an_answer(resolver="alice", value=b"{}")
    resumed = claimed(await store.turns.claim(a_claim(resolution=value)))
    asked = an_interrupt(
        state="another secret",
        kind="consent",
        message="May it be fifty?",
        amount=50_000_000,
        currency="EUR",
        url="https://acme.example/consent",
        retry_after=7,
        expires_at="2030-01-01T00:00:00Z",
        origin="other",
    )
    end = a_wait(resumed, interrupts=(asked,), now=resumed.created + SECOND)
    waiting = await store.turns.finish(end)
    (found,) = await store.turns.interrupts(waiting)
    assert (found.interrupt, found.status, found.expires) == (asked, "open", waiting.waits_until)
    assert (found.outcome, found.resolver, found.resolved, found.value) == (None,) * 4


async def test_what_no_store_could_hold_is_not_waited_for(store: Store) -> None:
    turn = claimed(await store.turns.claim(a_claim()))
    for wrong in ((an_interrupt(), an_interrupt()), (an_interrupt(message="a\x00b"),)):
        with pytest.raises(ValueError, match=r"the same id|cannot be kept"):
            await store.turns.finish(a_wait(turn, interrupts=wrong))
    assert (await store.turns.finish(a_wait(turn))).state == "waiting"


async def test_a_task_that_has_waited_gives_back_its_place_though_its_sealed_call_is_lost(
    store: Store, place: Place
) -> None:
    counted = Quota(name="tasks/echo/b", limit=5, take=1)
    await store.turns.claim(a_task(quotas=(counted,)))
    (task,) = await leased(store)
    held = (Use("tasks/echo/b", 1),)
    await store.turns.finish(a_wait(task.turn, is_task=True, holding=held))
    resumed = claimed(await store.turns.claim(a_claim(resolution=an_answer())))
    assert await store.tasks.release(resumed, NOW, lost=True)
    ((sealed,),) = place.rows("SELECT sealed FROM kept_call")
    place.rows("UPDATE kept_call SET sealed = ?", bytes(sealed)[:-1])
    (again,) = await leased(store)
    assert (again.call_bytes, again.quota) == (b"", "tasks/echo/b")


async def test_a_task_that_is_cancelled_while_it_waits_fails_and_gives_back_what_it_held(
    store: Store, place: Place
) -> None:
    counted = Quota(name="tasks/echo/b", limit=5, take=1)
    for name in ("r1", "r2"):
        await store.turns.claim(a_task(name, quotas=(counted,), reserve=300, payer=ALICE))
    held = (Use("tasks/echo/b", 1),)
    first, other = [task.turn for task in await leased(store)]
    for turn in (first, other):
        await store.turns.finish(a_wait(turn, is_task=True, holding=held))
    ends: list[tuple[str, str]] = []

    def teller(task: StoredTask, end: Failed) -> Tell:
        ends.append((task.id, end.code))
        return lambda callbacks: tuple(a_delivery(url=each.url) for each in callbacks)

    store.expiry.teller = teller
    assert await store.tasks.cancel("task-r1", NOW)
    await store.upkeep()
    ended = await store.turns.reload(first)
    assert (ended.state, ended.code) == ("failed", "cancelled")
    assert ends == [("task-r1", "cancelled")]
    assert place.rows("SELECT url FROM outbox") == [("https://b.example/hook",)]
    assert place.rows("SELECT SUM(spent), SUM(reserved) FROM purse") == [(1, 300)]
    found = place.rows("SELECT turn, status FROM interrupt ORDER BY turn")
    assert found == [(first.n, "expired"), (other.n, "open")]
    assert (await store.turns.reload(other)).state == "waiting"
    assert not await store.tasks.cancel("task-r1", NOW)


async def taken_back(store: Store, answer: TurnClaim) -> None:
    """An answer that was committed when its caller had gone: the writer gives it back."""
    resumed = claimed(await store.turns.claim(answer))
    given = await store._database.finish(given_back(answer, resumed))  # noqa: SLF001
    assert given.state == "waiting"


async def test_an_answer_whose_caller_went_away_can_be_given_again(
    store: Store, place: Place
) -> None:
    counted = Quota(name="tokens/echo/b", limit=5, take=1)
    asked = a_claim(payer=LIMITED, reserve=300, quotas=(counted,))
    turn = claimed(await store.turns.claim(asked))
    end = a_wait(turn, payer=LIMITED, debits=(Debit("agent:echo", 100),), reserve=300)
    waiting = await store.turns.finish(end)
    events = await store.turns.events(waiting)
    quotas = "SELECT name, spent, reserved FROM purse ORDER BY name"
    held = place.rows(quotas)
    answer = replace(asked, resolution=an_answer(value=b"{}", resolver="alice"))
    await taken_back(store, answer)
    again = await store.turns.claim(asked)
    assert isinstance(again, Known)
    assert again == Known(replace(waiting, fence=2, worker=store.worker))
    assert await store.turns.events(again.turn) == events
    (open_again,) = await store.turns.interrupts(again.turn)
    assert (open_again.interrupt, open_again.status) == (an_interrupt(), "open")
    assert (open_again.outcome, open_again.resolver, open_again.value) == (None, None, None)
    assert place.rows("SELECT COUNT(*) FROM kept_call") == [(1,)]
    assert place.rows(quotas) == held
    resumed = claimed(await store.turns.claim(answer))
    assert (resumed.fence, resumed.attempt) == (3, 1)
    await store.turns.finish(a_finish(resumed, payer=LIMITED))
    assert place.rows("SELECT spent, reserved FROM purse WHERE name = 'token:alice'") == [(300, 0)]


async def test_a_turn_whose_answer_was_taken_back_is_over_when_its_time_is(
    store: Store, place: Place
) -> None:
    turn = claimed(await store.turns.claim(a_claim(reserve=300)))
    await store.turns.finish(a_wait(turn))
    await taken_back(store, a_claim(resolution=an_answer()))
    place.clock.advance(3601)
    await store.upkeep()
    assert (await store.turns.reload(turn)).code == "interrupt_expired"
    assert place.rows("SELECT spent, reserved FROM purse") == [(0, 0)]


async def test_what_a_turn_used_before_it_waited_is_added_to_what_it_uses_then(
    store: Store, place: Place
) -> None:
    for name in ("r1", "r2"):
        turn = claimed(await store.turns.claim(a_claim(name)))
        waiting = await store.turns.finish(a_wait(turn))
        assert (waiting.tokens_in, waiting.tokens_out) == (3, 5)
    resumed = claimed(await store.turns.claim(a_claim(resolution=an_answer())))
    ended = await store.turns.finish(a_finish(resumed, tokens_in=7, tokens_out=None))
    assert (ended.tokens_in, ended.tokens_out) == (10, 5)
    assert await store.turns.reload(ended) == ended
    place.clock.advance(3601)
    await store.upkeep()
    found = place.rows("SELECT state, tokens_in, tokens_out FROM turn ORDER BY n")
    assert found == [("done", 10, 5), ("failed", 3, 5)]


BILL = an_interrupt(origin=None, amount=400)  # which its own turn debits
THRIFTY = replace(LIMITED, limit=1000)
RESERVED = "SELECT spent, reserved FROM purse WHERE name = 'token:alice'"


async def waiting_for_a_payment(store: Store, name: str = "r1", *, reserve: int = 300) -> TurnClaim:
    asked = a_claim(name, payer=THRIFTY, reserve=reserve)
    turn = claimed(await store.turns.claim(asked))
    bill = replace(BILL, id=f"int_{name}", state=f"secret of int_{name}")
    await store.turns.finish(a_wait(turn, payer=THRIFTY, interrupts=(bill,), reserve=reserve))
    return replace(asked, resolution=an_answer(f"int_{name}"))


@pytest.mark.parametrize("reserve", [300, 0])
@pytest.mark.parametrize("is_given_up", [True, False])
async def test_what_was_agreed_to_is_reserved_anew_when_the_turn_runs_again(
    store: Store, place: Place, reserve: int, *, is_given_up: bool
) -> None:
    answer = await waiting_for_a_payment(store, reserve=reserve)
    resumed = claimed(await store.turns.claim(answer))
    assert place.rows(RESERVED) == [(0, reserve + 400)]
    if is_given_up:  # its worker has died, and another one has seen it
        await store.turns.finish(a_finish(resumed, payer=THRIFTY, state="unknown", debits=()))
        assert place.rows(RESERVED) == [(0, 0)]
    else:
        place.rows("UPDATE turn SET worker = 'gone'")
    again = await store.turns.claim(replace(answer, resolution=None))
    assert isinstance(again, Claimed)
    assert (again.reserved, again.agreed) == (reserve + 400, 400)
    assert place.rows(RESERVED) == [(0, reserve + 400)]
    left = 1000 - reserve - 400
    other = a_claim("other", payer=THRIFTY, reserve=left + 1)
    assert await store.turns.claim(other) == Denied("spending", amount=left)
    paid = (Debit("agent:echo", reserve + 400),)
    await store.turns.finish(a_finish(again.turn, payer=THRIFTY, debits=paid))
    assert place.rows(RESERVED) == [(reserve + 400, 0)]


async def test_a_turn_that_may_not_pay_any_more_what_was_agreed_to_does_not_run_again(
    store: Store, place: Place
) -> None:
    answer = await waiting_for_a_payment(store)
    resumed = claimed(await store.turns.claim(answer))
    await store.turns.finish(a_finish(resumed, payer=THRIFTY, state="unknown", debits=()))
    other = claimed(await store.turns.claim(a_claim("other", payer=THRIFTY, reserve=500)))
    asked = replace(answer, resolution=None)
    assert await store.turns.claim(asked) == Denied("spending", amount=500)
    await store.turns.finish(a_finish(other, payer=THRIFTY, debits=()))
    again = claimed(await store.turns.claim(asked))
    paid = (Debit("agent:echo", 700),)
    await store.turns.finish(a_finish(again, payer=THRIFTY, debits=paid))
    assert place.rows(RESERVED) == [(700, 0)]


async def test_an_answer_that_is_given_back_gives_back_what_was_agreed_to(
    store: Store, place: Place
) -> None:
    answer = await waiting_for_a_payment(store)
    await taken_back(store, answer)
    assert place.rows(RESERVED) == [(0, 300)]
    resumed = claimed(await store.turns.claim(answer))
    assert place.rows(RESERVED) == [(0, 700)]
    await store.turns.finish(a_finish(resumed, payer=THRIFTY, debits=()))
    assert place.rows(RESERVED) == [(0, 0)]


async def test_nobody_agrees_to_more_than_is_left_where_the_calls_are_free(store: Store) -> None:
    answers = [await waiting_for_a_payment(store, name, reserve=0) for name in ("r1", "r2", "r3")]
    verdicts = [await store.turns.claim(answer) for answer in answers]
    assert [type(verdict) for verdict in verdicts] == [Claimed, Claimed, Denied]
    assert verdicts[2] == Denied("spending", amount=200, needed=400)


SHARED = "the same for both"
MONEY = an_interrupt("int_money", state=SHARED, origin=None)
LEAVE = an_interrupt("int_leave", state=SHARED, kind="approval", amount=None, currency=None)


@pytest.mark.parametrize("asked", [(MONEY, LEAVE), (LEAVE, MONEY)], ids=["money first", "last"])
async def test_of_two_questions_with_one_secret_the_one_that_was_meant_is_answered(
    asked: tuple[Interrupt, ...], store: Store, place: Place
) -> None:
    """Who asks chooses the secret: leave that is given is no money that is agreed to."""
    turn = claimed(await store.turns.claim(a_claim(reserve=300, payer=LIMITED)))
    await store.turns.finish(a_wait(turn, interrupts=asked, payer=LIMITED))
    shared = hash_state(SHARED)
    nobodys = an_answer(state_hash=shared)
    refused = await store.turns.claim(a_claim(reserve=300, payer=LIMITED, resolution=nobodys))
    assert refused == Denied("resolution")
    meant = an_answer(state_hash=shared, interrupt="int_leave")
    verdict = await store.turns.claim(a_claim(reserve=300, payer=LIMITED, resolution=meant))
    assert isinstance(verdict, Known)
    found = dict(place.rows("SELECT id, status FROM interrupt"))
    assert found == {"int_leave": "resolved", "int_money": "open"}
    assert place.rows("SELECT reserved FROM purse WHERE reserved <> 0") == [(300,)]


async def both_asked(store: Store) -> Turn:
    """A turn that waits for money and for leave, and was given the money."""
    asked = (
        an_interrupt("int_1", origin=None),
        replace(LEAVE, id="int_2", state="secret of int_2"),
    )
    turn = claimed(await store.turns.claim(a_claim(reserve=300, payer=LIMITED)))
    waiting = await store.turns.finish(a_wait(turn, interrupts=asked, payer=LIMITED))
    answer = a_claim(reserve=300, payer=LIMITED, resolution=an_answer("int_1"))
    assert isinstance(await store.turns.claim(answer), Known)
    return waiting


async def test_what_was_agreed_to_while_a_turn_waits_on_is_given_back_when_its_time_is_over(
    store: Store, place: Place
) -> None:
    await both_asked(store)
    assert place.rows("SELECT reserved FROM purse WHERE reserved <> 0") == [(5_000_300,)]
    await store.expiry.end(NOW + 3 * 3600 * SECOND)
    assert place.rows("SELECT state FROM turn") == [("failed",)]
    assert place.rows("SELECT reserved FROM purse WHERE reserved <> 0") == []


async def test_an_answer_that_is_given_back_again_and_again_moves_no_money(
    store: Store, place: Place
) -> None:
    await both_asked(store)
    answer = a_claim(reserve=300, payer=LIMITED, resolution=an_answer("int_2"))
    for _ in range(3):
        await taken_back(store, answer)
        assert place.rows("SELECT reserved FROM purse WHERE reserved <> 0") == [(5_000_300,)]
    claimed(await store.turns.claim(answer))
    assert place.rows("SELECT reserved FROM purse WHERE reserved <> 0") == [(5_000_300,)]


async def test_nobody_answers_for_a_person_who_has_ended(store: Store) -> None:
    """R28: from the moment of her end, whoever may approve."""
    alice = await store.people.add(NewPerson(name="alice"), NOW)
    turn = claimed(await store.turns.claim(a_claim()))
    await store.turns.finish(a_wait(turn, owners=(f"person:{alice.n}",)))
    answer = a_claim(resolution=an_answer())
    await store.people.end("alice", NOW)
    assert await store.turns.claim(answer) == Denied("resolution")
    (asked,) = await store.turns.interrupts(turn)
    assert asked.status == "open"


@pytest.mark.parametrize(
    ("left", "origin", "is_refused"),
    [
        (399, None, True),
        (400, None, False),
        (100, "@a@b.example", False),
        (99, "@a@b.example", True),
    ],
)
async def test_a_payment_that_a_turn_below_has_no_room_for_is_refused_where_it_is_answered(
    store: Store, place: Place, left: int, origin: str | None, *, is_refused: bool
) -> None:
    """What is held for a call to somebody else counts: it can be told to cost less."""
    payer = replace(THRIFTY, limit=300 + left)
    above = claimed(await store.turns.claim(a_claim("r1", payer=payer)))
    more = {"turn": "r1.t1.shop", "parent_turn": above.turn, "depth": 1, "agent": "shop"}
    child = a_claim("r1", payer=payer, reserve=300, made_in=above, **more)
    below = claimed(await store.turns.claim(child))
    bill = replace(BILL, origin=origin)
    await store.turns.finish(
        a_wait(below, payer=payer, interrupts=(bill,), reserve=300, charges_all=True)
    )
    await store.turns.finish(a_wait(above, payer=payer, interrupts=(replace(BILL, origin="x"),)))
    answer = replace(a_claim("r1", payer=payer), resolution=an_answer(interrupt="int_1"))
    verdict = await store.turns.claim(answer)
    if is_refused:
        assert verdict == Denied("spending", amount=left, needed=400)
        assert place.rows("SELECT DISTINCT status FROM interrupt") == [("open",)]
        return
    assert isinstance(verdict, Claimed)
    paid = replace(child, resolution=an_answer(interrupt="int_1"), shrinks=300 if origin else 0)
    assert isinstance(await store.turns.claim(paid), Claimed)
    assert place.rows("SELECT reserved FROM purse WHERE reserved <> 0") == [(300 + left,)]


async def test_a_payment_that_is_asked_for_again_is_held_no_more(
    store: Store, place: Place
) -> None:
    answer = await waiting_for_a_payment(store)
    for _ in range(2):
        resumed = claimed(await store.turns.claim(answer))
        assert place.rows(RESERVED) == [(0, 700)]
        bill = replace(BILL, id="int_r1", state="secret of int_r1")
        end = a_wait(resumed, payer=THRIFTY, interrupts=(bill,), reserve=700, released=400)
        await store.turns.finish(end)
        assert place.rows(RESERVED) == [(0, 300)]
