"""What answers change in budgets: payments are held of them, and who is asked may give more."""

from typing import Any

import pytest
from msgspec.structs import replace

from carnet.core.chain.turn import Turn
from carnet.core.messages.interrupt import BudgetRaise, Interrupt
from carnet.core.people.proof import Spending
from carnet.ports.calls.turns import Claimed, Debit, Denied, Known, TurnClaim
from carnet.ports.money.budgets import DAY_US, Amounts, BudgetRecord, BudgetTake, Opening
from carnet.stores.commit.queue import given_back
from carnet.stores.open import Store
from tests.stores.support.scenes import (
    NOW,
    SECOND,
    Place,
    a_claim,
    a_finish,
    a_wait,
    an_answer,
    an_interrupt,
    claimed,
)

TOKEN = "token:alice"
DAILY = TOKEN + "/day"
CREDIT = 1_000_000
PAID = an_interrupt(origin=None)  # five credits
CALL = "call:root"


def taking(*names: str, money: int = 0, **more: Any) -> BudgetTake:  # noqa: ANN401, RUF100
    need = Amounts(money, 1, 0)
    return BudgetTake(names=names, take=need, least=need, run="r1", **more)


async def one(store: Store, name: str) -> BudgetRecord:
    found = await store.budgets.find(name)
    assert found is not None
    return found


async def waiting(store: Store, claim: TurnClaim, *asked: Interrupt) -> Turn:
    turn = claimed(await store.turns.claim(claim))
    return await store.turns.finish(a_wait(turn, interrupts=asked, used=(1, 0)))


async def bounded(store: Store, credits_: int) -> TurnClaim:
    """A call for which one credit is held of a budget of its token."""
    await store.budgets.put(TOKEN, Spending(money=credits_ * CREDIT, currency="credits"), now=NOW)
    return a_claim(budget=taking(TOKEN, money=CREDIT))


async def test_a_payment_that_is_agreed_to_is_held_of_the_budgets_that_were_set(
    store: Store,
) -> None:
    claim = await bounded(store, 6)
    await waiting(store, claim, PAID)
    turn = claimed(await store.turns.claim(replace(claim, resolution=an_answer())))
    assert (await one(store, TOKEN)).held.money == 6 * CREDIT
    other = await store.turns.claim(a_claim("r2", budget=taking(TOKEN, money=1)))
    assert isinstance(other, Denied)
    assert other.reason == "budget"
    debits = (Debit("agent:echo", 6 * CREDIT),)
    await store.turns.finish(a_finish(turn, debits=debits, used=(1, 0)))
    budget = await one(store, TOKEN)
    assert (budget.spent.money, budget.held) == (6 * CREDIT, Amounts())


async def test_a_payment_that_a_budget_has_no_room_for_is_refused_and_stays_open(
    store: Store,
) -> None:
    claim = await bounded(store, 5)
    turn = await waiting(store, claim, PAID)
    refused = await store.turns.claim(replace(claim, resolution=an_answer()))
    assert isinstance(refused, Denied)
    assert refused.short is not None
    assert (refused.short.name, refused.short.part) == (TOKEN, "money")
    assert (refused.short.observed, refused.short.limit) == (6 * CREDIT, 5 * CREDIT)
    assert [one.status for one in await store.turns.interrupts(turn)] == ["open"]
    assert (await one(store, TOKEN)).held.money == CREDIT
    await store.budgets.put(TOKEN, Spending(money=6 * CREDIT, currency="credits"), now=NOW)
    claimed(await store.turns.claim(replace(claim, resolution=an_answer())))


async def test_a_payment_that_is_refused_holds_nothing_more(store: Store) -> None:
    claim = await bounded(store, 1)
    await waiting(store, claim, PAID)
    no = an_answer(outcome="rejected")
    claimed(await store.turns.claim(replace(claim, resolution=no)))
    assert (await one(store, TOKEN)).held.money == CREDIT


async def test_an_answer_that_nobody_ran_on_with_holds_nothing_more(store: Store) -> None:
    claim = await bounded(store, 6)
    await waiting(store, claim, PAID)
    answer = replace(claim, resolution=an_answer())
    for _ in range(3):  # each as if there had been none before
        verdict = await store.turns.claim(answer)
        assert isinstance(verdict, Claimed)
        assert (await one(store, TOKEN)).held.money == 6 * CREDIT
        end = given_back(answer, verdict.turn, verdict.undo)
        await store._database.finish(end)  # noqa: SLF001  as the writer does
        assert (await one(store, TOKEN)).held.money == CREDIT


async def test_a_turn_that_runs_again_holds_what_was_agreed_to_before(
    store: Store, place: Place
) -> None:
    claim = await bounded(store, 6)
    await waiting(store, claim, PAID)
    claimed(await store.turns.claim(replace(claim, resolution=an_answer())))
    await store.close()
    place.end_leases()
    again = await place.start()
    await again.budgets.refresh()
    try:
        claimed(await again.turns.claim(claim))
        budget = await one(again, TOKEN)
        assert (budget.held.money, budget.spent.money) == (6 * CREDIT, 0)
    finally:
        await again.close()


async def test_what_waited_in_vain_has_made_its_call_and_spent_nothing_more(
    store: Store, place: Place
) -> None:
    await store.budgets.put(
        TOKEN, Spending(money=9 * CREDIT, currency="credits", calls=9, tokens=99), now=NOW
    )
    take = BudgetTake(
        names=(TOKEN,), take=Amounts(CREDIT, 1, 50), least=Amounts(CREDIT, 1, 1), run="r1"
    )
    await waiting(store, a_claim(budget=take), PAID)
    assert (await one(store, TOKEN)).held == Amounts(CREDIT, 1, 50)
    place.clock.advance(3601)
    assert await store.expiry.end(place.clock.wall_us()) == 1
    budget = await one(store, TOKEN)
    assert (budget.spent, budget.held) == (Amounts(0, 1, 0), Amounts())


async def test_a_day_is_no_longer_for_what_was_lost_the_day_before(store: Store) -> None:
    await store.budgets.put(DAILY, Spending(calls=2), now=NOW)
    claim = a_claim(budget=taking(DAILY))
    turn = claimed(await store.turns.claim(claim))
    lost = a_finish(turn, state="unknown", debits=(), events=b"", used=None)
    await store.turns.finish(lost)
    assert (await one(store, DAILY)).spent.calls == 1
    later = NOW + DAY_US
    other = claimed(await store.turns.claim(a_claim("r2", budget=taking(DAILY), now=later)))
    await store.turns.finish(a_finish(other, debits=(), used=(1, 0)))
    again = await store.turns.claim(replace(claim, now=later))
    assert isinstance(again, Claimed)
    budget = await one(store, DAILY)
    assert (budget.spent.calls, budget.held.calls) == (1, 1)
    refused = await store.turns.claim(a_claim("r3", budget=taking(DAILY), now=later))
    assert isinstance(refused, Denied)


def asking(part: Any = "calls", more: int = 3, **changes: Any) -> Interrupt:  # noqa: ANN401, RUF100
    """A question whether a budget may have more."""
    asked = BudgetRaise(budget=CALL, part=part, more=more, observed=3, limit=2)
    return Interrupt(
        id="int_1",
        state="secret of int_1",
        kind="approval",
        message="More?",
        raises=replace(asked, **changes),
    )


def root(**changes: Any) -> Opening:  # noqa: ANN401, RUF100
    limits = Spending(money=CREDIT, currency="credits", calls=2)
    return replace(Opening(name=CALL, limits=limits, asks=True), **changes)


async def opened(store: Store, opening: Opening) -> None:
    """Have the budget of a call begin, and one call made of it."""
    claim = a_claim("other", budget=taking(CALL, above=opening))
    turn = claimed(await store.turns.claim(claim))
    await store.turns.finish(a_finish(turn, debits=(), used=(1, 0)))


@pytest.mark.parametrize(
    ("question", "grant", "limits"),
    [
        (asking(), None, (CREDIT, 5)),
        (asking(), "1", (CREDIT, 3)),
        (asking("money", 2 * CREDIT), None, (3 * CREDIT, 2)),
        (asking("money", 2 * CREDIT), "0.5", (CREDIT * 3 // 2, 2)),
    ],
)
async def test_who_is_asked_gives_a_budget_more_once(
    store: Store, question: Interrupt, grant: str | None, limits: tuple[int, int]
) -> None:
    await opened(store, root())
    claim = a_claim()
    turn = await waiting(store, claim, question)
    (kept,) = await store.turns.interrupts(turn)
    assert kept.interrupt.raises == question.raises
    answer = replace(claim, resolution=an_answer(grant=grant))
    claimed(await store.turns.claim(answer))
    budget = await one(store, CALL)
    assert (budget.limits.money, budget.limits.calls) == limits
    assert budget.spent.calls == 1
    replayed = await store.turns.claim(answer)
    assert isinstance(replayed, Denied)
    assert replayed.reason == "resolution"
    assert (await one(store, CALL)).limits == budget.limits


async def test_a_budget_of_which_nothing_was_taken_yet_begins_with_the_answer(
    store: Store,
) -> None:
    claim = a_claim()
    await waiting(store, claim, asking(opening=Spending(calls=0, asks=True)))
    claimed(await store.turns.claim(replace(claim, resolution=an_answer())))
    budget = await one(store, CALL)
    assert (budget.limits.calls, budget.asks, budget.run) == (3, True, "r1")


async def test_the_time_in_which_somebody_was_asked_is_not_counted(store: Store) -> None:
    await opened(store, root(until=NOW + SECOND))
    claim = a_claim()
    await waiting(store, claim, asking())
    later = NOW + 100 * SECOND
    claimed(await store.turns.claim(replace(claim, resolution=an_answer(), now=later)))
    budget = await one(store, CALL)
    assert budget.until is not None
    assert later < budget.until <= later + SECOND


async def test_a_budget_whose_time_is_over_is_given_more_of_it(store: Store) -> None:
    await opened(store, root(until=NOW + SECOND))
    claim = a_claim()
    await waiting(store, claim, asking("seconds", 30))
    later = NOW + 100 * SECOND
    claimed(await store.turns.claim(replace(claim, resolution=an_answer(), now=later)))
    assert (await one(store, CALL)).until == later + 30 * SECOND


async def test_an_answer_that_says_no_or_gives_nothing_raises_nothing(store: Store) -> None:
    await opened(store, root())
    claim = a_claim()
    await waiting(store, claim, asking())
    for given in ("0", "many", "1" * 16, "-1", "9" * 15 + "9"):
        refused = await store.turns.claim(replace(claim, resolution=an_answer(grant=given)))
        assert isinstance(refused, Denied), given
    claimed(await store.turns.claim(replace(claim, resolution=an_answer(outcome="rejected"))))
    assert (await one(store, CALL)).limits.calls == 2


async def test_a_budget_that_does_not_ask_is_raised_by_no_answer(store: Store) -> None:
    await opened(store, root(asks=False))
    claim = a_claim()
    turn = await waiting(store, claim, asking())
    refused = await store.turns.claim(replace(claim, resolution=an_answer()))
    assert isinstance(refused, Denied)
    assert refused.reason == "budget"
    assert [one.status for one in await store.turns.interrupts(turn)] == ["open"]
    assert (await one(store, CALL)).limits.calls == 2


async def test_what_somebody_else_asks_for_raises_nothing_here(store: Store) -> None:
    """The turn below raises it, when the answer comes there."""
    await opened(store, root())
    claim = a_claim()
    await waiting(store, claim, replace(asking(), origin="echo"))
    claimed(await store.turns.claim(replace(claim, resolution=an_answer())))
    assert (await one(store, CALL)).limits.calls == 2


async def test_a_raise_that_nobody_ran_on_with_is_taken_back(store: Store) -> None:
    await opened(store, root())
    claim = a_claim()
    await waiting(store, claim, asking())
    answer = replace(claim, resolution=an_answer())
    for _ in range(3):
        verdict = await store.turns.claim(answer)
        assert isinstance(verdict, Claimed)
        assert (await one(store, CALL)).limits.calls == 5
        end = given_back(answer, verdict.turn, verdict.undo)
        await store._database.finish(end)  # noqa: SLF001  as the writer does
        assert (await one(store, CALL)).limits.calls == 2


async def share(store: Store, *, asks: bool) -> TurnClaim:
    """A call that waits with a share of its own: both calls of its root."""
    limits = Spending(calls=2)
    opens = Opening(name="call:share", limits=limits, parent=CALL, asks=True)
    take = taking("call:share", above=root(asks=asks), opens=opens)
    claim = a_claim(budget=take)
    await waiting(store, claim, asking(budget="call:share"))
    return claim


async def test_a_share_is_raised_with_the_budget_above_it(store: Store) -> None:
    claim = await share(store, asks=True)
    claimed(await store.turns.claim(replace(claim, resolution=an_answer())))
    below, above = await one(store, "call:share"), await one(store, CALL)
    assert (below.limits.calls, above.limits.calls, above.held.calls) == (5, 5, 5)


async def test_a_share_never_has_more_than_the_budget_above_it(store: Store) -> None:
    claim = await share(store, asks=False)
    refused = await store.turns.claim(replace(claim, resolution=an_answer()))
    assert isinstance(refused, Denied)
    below, above = await one(store, "call:share"), await one(store, CALL)
    assert (below.limits.calls, above.limits.calls, above.held.calls) == (2, 2, 2)


async def test_of_several_questions_each_raises_what_it_asked_for(store: Store) -> None:
    await opened(store, root())
    claim = a_claim()
    other = replace(asking("money", CREDIT), id="int_2", state="secret of int_2")
    await waiting(store, claim, asking(), other)
    first = await store.turns.claim(replace(claim, resolution=an_answer()))
    assert isinstance(first, Known)
    limits = (await one(store, CALL)).limits
    assert (limits.calls, limits.money) == (5, CREDIT)
    claimed(await store.turns.claim(replace(claim, resolution=an_answer("int_2"))))
    limits = (await one(store, CALL)).limits
    assert (limits.calls, limits.money) == (5, 2 * CREDIT)
