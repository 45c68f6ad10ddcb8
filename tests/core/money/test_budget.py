"""Counted limits: clamped into their range, exceeded when the count reaches the ceiling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.money.budget import (
    MOST_CEILING,
    MOST_NAMED,
    IterationBudget,
    ceilings_of,
    read_ceilings,
    write_ceilings,
)


@pytest.mark.parametrize(("ceiling", "kept"), [(0, 1), (-5, 1), (1, 1), (3, 3)])
def test_a_ceiling_is_at_least_one(ceiling: int, kept: int) -> None:
    assert IterationBudget("turns", ceiling).ceiling == kept


def test_a_count_is_never_below_zero() -> None:
    assert IterationBudget("turns", 3, -3).current == 0
    assert IterationBudget("turns", 3, 2).at(-10).current == 0


def test_a_budget_is_exceeded_when_the_count_has_reached_the_ceiling() -> None:
    assert IterationBudget("turns", 3, 3).exceeded
    assert not IterationBudget("turns", 3, 2).exceeded
    assert IterationBudget("turns", 3, 2).increment().exceeded


@pytest.mark.parametrize(("depth", "exceeded"), [(2, False), (3, True), (7, True)])
def test_chain_depth_is_a_dimension_like_any_other(depth: int, *, exceeded: bool) -> None:
    assert IterationBudget("chain_depth", 3).at(depth).exceeded is exceeded


@given(ceiling=st.integers(), current=st.integers())
def test_what_is_left_and_what_is_used_never_pass_the_ceiling(ceiling: int, current: int) -> None:
    budget = IterationBudget("tool_calls", ceiling, current)
    assert budget.remaining == max(0, budget.ceiling - budget.current)
    assert budget.exceeded is (budget.remaining == 0)
    after = budget.increment()
    assert (after.name, after.ceiling) == (budget.name, budget.ceiling)
    assert after.current == budget.current + 1


# ------------------------------------------------------------------ those that a loop counts


def test_named_budgets_are_read_as_they_are_written() -> None:
    given = {"turns": 8, "tool_calls": 20, "tool_calls_client/ping": 2, "wall_clock_seconds": 60}
    ceilings = ceilings_of(given)
    assert dict(ceilings) == given
    assert read_ceilings(write_ceilings(ceilings).split()) == ceilings
    assert read_ceilings([]) == ceilings_of({}) == ()


@pytest.mark.parametrize(
    "word",
    [
        *(
            "steps=3",
            "turns",
            "turns=",
            "turns=0",
            "turns=-1",
            "turns=01",
            "turns=1_0",
            "turns=\u0661",
        ),
        *("tool_calls_=1", "tool_calls_a b=1", "tool_calls_a=b=1", "Turns=1", "turns=1\n", "=1"),
        *(f"turns={MOST_CEILING + 1}", f"tool_calls_{'x' * 65}=1"),
    ],
)
def test_what_is_no_named_budget_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match=r"is not in its form|is the name of none|no whole number"):
        read_ceilings([word])


def test_one_is_named_once_and_there_is_a_most_of_them() -> None:
    with pytest.raises(ValueError, match="named twice"):
        read_ceilings(["turns=1", "turns=2"])
    many = {f"tool_calls_{n}": 1 for n in range(MOST_NAMED)}
    assert len(ceilings_of(many)) == MOST_NAMED
    with pytest.raises(ValueError, match="there are more than"):
        ceilings_of({**many, "turns": 1})
    with pytest.raises(ValueError, match="no whole number"):
        ceilings_of({"turns": True})
