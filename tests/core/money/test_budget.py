"""Counted limits: clamped into their range, exceeded when the count reaches the ceiling."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.money.budget import IterationBudget


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
