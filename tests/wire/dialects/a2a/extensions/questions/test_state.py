"""What is remembered of a question in a foreign form."""

from hypothesis import given
from hypothesis import strategies as st

from carnet.wire.dialects.a2a.extensions.questions.state import (
    MOST_STATE,
    read_state,
    write_state,
)


@given(st.lists(st.text(max_size=20), min_size=1, max_size=5))
def test_a_state_is_read_as_it_was_written(values: list[str]) -> None:
    state = write_state("kagent", values)
    assert read_state("kagent", state, str) == values
    assert read_state("other", state, str) is None


@given(st.text(max_size=64))
def test_any_other_state_is_none(text: str) -> None:
    assert read_state("kagent", text, str) is None
    found = read_state("kagent", f"kagent.{text}", str)
    assert found is None or all(isinstance(value, str) for value in found)


def test_a_state_of_other_kinds_of_values_is_none() -> None:
    assert read_state("q", write_state("q", ["a", 2]), str, int) == ["a", 2]
    assert read_state("q", write_state("q", ["a", True]), str, int) is None
    assert read_state("q", write_state("q", [2]), str) is None
    assert read_state("q", write_state("q", []), str) is None
    assert read_state("q", "q.e30", str) is None  # an object


def test_a_state_that_would_be_too_long_is_empty() -> None:
    assert write_state("q", ["x" * MOST_STATE]) == ""
    assert read_state("q", "q." + "A" * MOST_STATE, str) is None
