"""The files of the tests are put in order, and the order is only that."""

import json

from tests.architecture.tree import ROOT
from tests.ordering import KEPT, file_of, in_order, written


def test_the_longest_is_first_and_one_that_is_not_known_is_before_it() -> None:
    seconds = {"a": 1.0, "b": 9.0, "c": 1.0}
    assert in_order(["c", "a", "new", "b", "a"], seconds, "longest-first") == ["new", "b", "a", "c"]
    assert in_order(["c", "a", "new", "b", "a"], seconds, "reversed") == ["c", "a", "b", "new"]


def test_a_file_is_told_from_its_test() -> None:
    assert (
        file_of("tests/core/money/test_amount.py::test_x[a::b]")
        == "tests/core/money/test_amount.py"
    )


def test_the_table_is_written_with_the_longest_first() -> None:
    assert json.loads(written({"a": 1.04, "b": 2.0})) == {"b": 2.0, "a": 1.0}
    kept = json.loads(KEPT.read_text())
    assert list(kept.values()) == sorted(kept.values(), reverse=True)


def test_the_table_names_no_file_that_is_gone() -> None:
    assert [file for file in json.loads(KEPT.read_text()) if not (ROOT / file).exists()] == []
