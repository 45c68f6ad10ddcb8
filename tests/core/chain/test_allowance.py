"""What is left of a budget: set aside first, given back after, and never more than there was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.chain.allowance import Allowance, Aside
from carnet.core.people.proof import Spending
from carnet.errors import BudgetExceeded

TEN = Spending(money=10, currency="credits", calls=3, tokens=7)


def test_a_call_within_the_budget_is_set_aside() -> None:
    allowance = Allowance(TEN)
    assert allowance.take(4, "credits") == Aside(4, 1, 0)
    assert allowance.left() == Spending(money=6, currency="credits", calls=2, tokens=7)


def test_a_call_that_may_cost_more_than_is_left_is_refused_and_takes_nothing() -> None:
    allowance = Allowance(TEN)
    with pytest.raises(BudgetExceeded):
        allowance.take(11, "credits")
    assert allowance.left() == TEN


def test_an_agent_elsewhere_is_told_to_cost_what_is_left() -> None:
    allowance = Allowance(TEN)
    assert allowance.take(100, "credits", shrinks=True).money == 10
    assert allowance.left(Aside(10)).money == 10
    with pytest.raises(BudgetExceeded):
        allowance.take(1, "credits", shrinks=True)


def test_what_a_call_did_not_cost_can_be_spent_again() -> None:
    allowance = Allowance(TEN)
    allowance.take(10, "credits")
    allowance.give_back(Aside(7))
    assert allowance.take(7, "credits").money == 7


def test_no_more_calls_are_made_than_the_budget_counts() -> None:
    allowance = Allowance(Spending(calls=2))
    assert [allowance.take(5, "credits").money for _ in range(2)] == [5, 5]
    with pytest.raises(BudgetExceeded):
        allowance.take(0, "credits")


def test_money_of_another_currency_pays_for_nothing_here() -> None:
    allowance = Allowance(Spending(money=10, currency="pearls"))
    assert allowance.take(0, "credits").money == 0
    with pytest.raises(BudgetExceeded):
        allowance.take(1, "credits", shrinks=True)


def test_a_call_that_somebody_else_pays_for_has_no_bound_of_money_here() -> None:
    allowance = Allowance(TEN)
    taken = allowance.take(0, "credits", shrinks=True)
    assert allowance.left(taken) == Spending(calls=1, tokens=0)


def test_a_budget_without_money_bounds_none() -> None:
    allowance = Allowance(Spending(tokens=7))
    assert allowance.take(10**9, "credits").money == 10**9
    allowance.give_back(Aside(1))
    assert allowance.left(Aside(5, 1, 3)) == Spending(tokens=3)


@given(st.lists(st.tuples(st.integers(0, 8), st.booleans(), st.integers(0, 8)), max_size=12))
def test_all_that_is_spent_together_is_never_more_than_the_budget(
    calls: list[tuple[int, bool, int]],
) -> None:
    allowance, spent = Allowance(Spending(money=10, currency="credits")), 0
    for most, shrinks, cost in calls:
        try:
            taken = allowance.take(most, "credits", shrinks=shrinks).money
        except BudgetExceeded:
            continue
        spent += min(cost, taken)
        allowance.give_back(Aside(taken - min(cost, taken)))
    assert spent <= 10
    assert allowance.left().money == 10 - spent


def test_tokens_that_were_used_are_gone_and_with_none_left_nothing_is_called() -> None:
    allowance = Allowance(Spending(tokens=10))
    allowance.use(-5)
    allowance.use(4)
    assert allowance.left().tokens == 6
    allowance.use(100)
    assert allowance.left().tokens == 0
    with pytest.raises(BudgetExceeded):
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


def test_a_callee_that_is_told_what_it_may_use_is_given_what_is_left() -> None:
    allowance = Allowance(TEN)
    assert allowance.take(0, "credits", calls=None, tokens=None) == Aside(0, 3, 7)
    with pytest.raises(BudgetExceeded) as refused:
        allowance.take(0, "credits")
    facts = refused.value.facts
    assert (facts["part"], facts["observed"], facts["limit"]) == ("calls", 4, 3)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)), max_size=6),
    st.integers(0, 9),
)
def test_shares_are_never_more_than_there_was_and_what_is_left_of_them_comes_back(
    shares: list[tuple[int, int, int]], used: int
) -> None:
    whole = Spending(money=10, currency="credits", calls=10, tokens=10)
    above = Allowance(whole)
    made = [
        above.split(Spending(money=money, calls=calls, tokens=tokens), "credits")
        for money, calls, tokens in shares
    ]
    parts = [share.left() for share in made]
    left = above.left()
    for part in ("money", "calls", "tokens"):
        given_away = sum(getattr(share, part) for share in parts)
        assert given_away + getattr(left, part) == 10
    spent = 0
    for share in made:
        before = share.left().money or 0
        if share.left().calls and share.left().tokens:
            share.take(min(used, before), "credits")
        spent += before - (share.left().money or 0)
        share.close()
    assert above.left().money == 10 - spent


def test_a_part_that_a_share_does_not_bound_stays_with_the_one_above() -> None:
    above = Allowance(Spending(calls=5, tokens=9))
    share = above.split(Spending(calls=2), "credits")
    share.use(4)
    assert (above.left().tokens, share.left().tokens, above.tokens_used) == (5, None, 4)


def test_most_of_a_budget_is_told_once() -> None:
    allowance = Allowance(Spending(calls=5))
    assert allowance.crossed() is None
    allowance.take(0, "credits", calls=4)
    assert allowance.crossed() == ("calls", 4, 5)
    assert allowance.crossed() is None


@pytest.mark.parametrize(("runs_again", "left"), [(False, (0, 7)), (True, (30, 7))])
def test_what_earlier_attempts_hold_in_the_store_is_still_there_for_them(
    *, runs_again: bool, left: tuple[int, int]
) -> None:
    allowance = Allowance(Spending(money=30, currency="credits", calls=1))
    limits = Spending(money=30, currency="credits", calls=8)
    theirs = Spending(money=0, currency="credits", calls=7)
    allowance.learn(theirs, limits, runs_again=runs_again)
    assert (allowance.left().money, allowance.left().calls) == left
    assert allowance.left().tokens is None


def test_tokens_that_a_call_has_used_before_it_waited_are_used() -> None:
    allowance = Allowance(Spending(tokens=1000))
    allowance.ran_before(b"key", 600)
    assert allowance.left().tokens == 400
    raised, limits = Spending(tokens=1900), Spending(tokens=2000)
    allowance.learn(raised, limits, runs_again=True)  # of which the store knows 100
    assert allowance.left().tokens == 1400


def test_tokens_of_a_call_that_has_waited_here_are_counted_once() -> None:
    allowance = Allowance(Spending(tokens=1000))
    allowance.use(600)
    allowance.counted |= {b"key"}
    allowance.ran_before(b"key", 600)
    assert allowance.left().tokens == 400


def test_a_budget_begins_in_the_store_with_what_the_call_itself_has_spent_of_it() -> None:
    allowance = Allowance(Spending(money=30, currency="credits", calls=8, tokens=100, asks=True))
    allowance.take(10, "credits")
    allowance.use(40)
    allowance.open("call:1")
    assert allowance.opening == allowance.given
    assert allowance.given.asks
    assert allowance.begun == Aside(10, 1, 40)


@pytest.mark.parametrize(
    ("budget", "part", "most", "is_used_up"),
    [
        (Spending(money=5, currency="credits"), "money", 0, False),  # of one that is free
        (Spending(money=5, currency="credits"), "money", 5, False),  # it was given all it may cost
        (Spending(money=5, currency="credits"), "money", 6, True),
        (Spending(money=5, currency="credits"), "calls", 6, False),
        (Spending(calls=5), "tokens", 6, False),
        (Spending(calls=5), "money", 6, False),
        (Spending(calls=5), "calls", 0, False),
        (Spending(calls=0), "calls", 0, True),
        (Spending(tokens=0), "tokens", 0, True),
    ],
)
def test_more_is_asked_for_of_what_a_callee_could_not_be_given(
    *, budget: Spending, part: str, most: int, is_used_up: bool
) -> None:
    allowance = Allowance(budget)
    assert allowance.is_used_up(part, most) == is_used_up
    assert allowance.split(Spending(seconds=1), "credits").is_used_up(part, most) == is_used_up
