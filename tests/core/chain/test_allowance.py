"""What is left of a budget: set aside first, given back after, and never more than there was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.chain.allowance import Allowance
from carnet.core.people.proof import Spending
from carnet.errors import RunCallsExceeded, SpendingLimitReached

TEN = Spending(money=10, currency="credits", calls=3, tokens=7)


def test_a_call_within_the_budget_is_set_aside() -> None:
    allowance = Allowance(TEN)
    assert allowance.take(4, "credits") == 4
    assert allowance.left() == Spending(money=6, currency="credits", calls=2, tokens=7)


def test_a_call_that_may_cost_more_than_is_left_is_refused_and_takes_nothing() -> None:
    allowance = Allowance(TEN)
    with pytest.raises(SpendingLimitReached):
        allowance.take(11, "credits")
    assert allowance.left() == TEN


def test_an_agent_elsewhere_is_told_to_cost_what_is_left() -> None:
    allowance = Allowance(TEN)
    assert allowance.take(100, "credits", shrinks=True) == 10
    assert allowance.left(10).money == 10
    with pytest.raises(SpendingLimitReached):
        allowance.take(1, "credits", shrinks=True)


def test_what_a_call_did_not_cost_can_be_spent_again() -> None:
    allowance = Allowance(TEN)
    allowance.take(10, "credits")
    allowance.give_back(7)
    assert allowance.take(7, "credits") == 7


def test_no_more_calls_are_made_than_the_budget_counts() -> None:
    allowance = Allowance(Spending(calls=2))
    assert [allowance.take(5, "credits") for _ in range(2)] == [5, 5]
    with pytest.raises(RunCallsExceeded):
        allowance.take(0, "credits")


def test_money_of_another_currency_pays_for_nothing_here() -> None:
    allowance = Allowance(Spending(money=10, currency="pearls"))
    assert allowance.take(0, "credits") == 0
    with pytest.raises(SpendingLimitReached):
        allowance.take(1, "credits", shrinks=True)


def test_a_call_that_somebody_else_pays_for_has_no_bound_of_money_here() -> None:
    allowance = Allowance(TEN)
    taken = allowance.take(0, "credits", shrinks=True)
    assert allowance.left(taken) == Spending(calls=2, tokens=7)


def test_a_budget_without_money_bounds_none() -> None:
    allowance = Allowance(Spending(tokens=7))
    assert allowance.take(10**9, "credits") == 10**9
    allowance.give_back(1)
    assert allowance.left(5) == Spending(tokens=7)


@given(st.lists(st.tuples(st.integers(0, 8), st.booleans(), st.integers(0, 8)), max_size=12))
def test_all_that_is_spent_together_is_never_more_than_the_budget(
    calls: list[tuple[int, bool, int]],
) -> None:
    allowance, spent = Allowance(Spending(money=10, currency="credits")), 0
    for most, shrinks, cost in calls:
        try:
            taken = allowance.take(most, "credits", shrinks=shrinks)
        except SpendingLimitReached:
            continue
        spent += min(cost, taken)
        allowance.give_back(taken - min(cost, taken))
    assert spent <= 10
    assert allowance.left().money == 10 - spent


def test_tokens_that_were_used_are_gone_and_with_none_left_nothing_is_called() -> None:
    allowance = Allowance(Spending(tokens=10))
    allowance.use(-5)
    allowance.use(4)
    assert allowance.left().tokens == 6
    allowance.use(100)
    assert allowance.left().tokens == 0
    with pytest.raises(SpendingLimitReached):
        allowance.take(0, "credits")
    unbounded = Allowance(Spending(calls=2))
    unbounded.use(100)
    assert unbounded.left().tokens is None


def test_a_call_that_cost_more_than_expected_takes_what_is_left_and_no_more() -> None:
    allowance = Allowance(TEN)
    allowance.take(4, "credits")
    assert allowance.take_more(2) == 2
    assert allowance.left().money == 4
    assert allowance.take_more(100) == 4
    assert allowance.left().money == 0
    unbounded = Allowance(Spending(calls=2))
    assert unbounded.take_more(5) == 0
    assert unbounded.left() == Spending(calls=2)
