"""Which tasks are begun next: a property, and the cases that gave the rules."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from carnet.stores.calls.fairness import fairly
from carnet.stores.database import Row

ROWS = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.integers(0, 5)), max_size=30
).map(lambda made: [(n, agent, quota, rank) for n, (agent, quota, rank) in enumerate(made)])


def test_a_place_goes_to_whoever_has_the_fewest() -> None:
    found: list[Row] = [(n, "a", "x", n) for n in range(4)] + [(9, "a", "y", 3)]
    assert fairly(found, {}, 2) == [0, 9]
    assert fairly(found, {"x": 1}, 2) == [9, 0]
    assert fairly(found, {"y": 5}, 9) == [0, 1, 2, 3, 9]


def test_of_one_tenant_the_agents_take_turns_and_then_the_ranks_decide() -> None:
    found: list[Row] = [(1, "a", "x", 5), (2, "a", "x", 4), (3, "b", "x", 900), (4, "b", "x", 901)]
    assert fairly(found, {}, 4) == [2, 3, 1, 4]
    assert fairly(found, {}, 0) == []


@given(
    found=ROWS,
    running=st.dictionaries(st.sampled_from("xyz"), st.integers(0, 4)),
    most=st.integers(0, 12),
)
def test_nobody_gets_a_second_place_while_another_who_waits_has_fewer(
    found: list[Row], running: dict[str, int], most: int
) -> None:
    chosen = fairly(found, running, most)
    assert len(chosen) == len(set(chosen)) == min(most, len(found))
    whose = {n: quota for n, _, quota, _ in found}
    left, counts = Counter(whose.values()), Counter(running)
    for n in chosen:
        assert counts[whose[n]] == min(counts[quota] for quota, some in left.items() if some)
        counts[whose[n]] += 1
        left[whose[n]] -= 1
