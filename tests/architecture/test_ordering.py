"""The files of the tests are put in order, and the order is only that."""

import json

from tests.architecture.tree import ROOT
from tests.bytecode import modules_below, turned
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


def test_each_worker_begins_with_another_share_and_none_leaves_a_file_out() -> None:
    files = ["a", "b", "c", "d", "e"]
    orders = [turned(files, number, 3) for number in range(3)]
    assert [order[0] for order in orders] == ["a", "b", "d"]
    assert [sorted(order) for order in orders] == [files] * 3


def test_the_modules_of_a_file_and_of_a_folder_are_named() -> None:
    here = "tests.architecture.test_ordering"
    assert modules_below([ROOT / "tests/architecture/test_ordering.py"]) == [here]
    assert here in modules_below([ROOT / "tests/architecture"])
