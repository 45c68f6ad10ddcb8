"""Rows are held by tests that go red: one mutant a table here, all of them in `make mutants`."""

from dataclasses import replace

import pytest

from tests.mutants.mutant import Mutant
from tests.mutants.running import Vanished, asked_of, judge, place_of
from tests.mutants.table import MUTANTS, TABLES
from tests.requirements.test_rows import ROWS

PROVED = {row.id: row for row in ROWS if row.tests and not row.due}


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.row)
def test_a_mutant_changes_a_line_that_is_there_and_its_row_names_its_tests(mutant: Mutant) -> None:
    assert mutant.row in PROVED, "a mutant is about a row that is proved"
    assert mutant.text != mutant.instead
    place_of(mutant)  # says what to do where it has vanished
    named = {test.split("::")[1] for test in PROVED[mutant.row].tests}
    assert set(mutant.tests) <= named


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_enough_mutants(name: str) -> None:
    assert len(TABLES[name]) >= 8


@pytest.mark.parametrize("name", TABLES)
def test_without_its_behaviour_the_asked_of_a_row_go_red(name: str) -> None:
    mutant = TABLES[name][0]
    quick, _ = asked_of(mutant, PROVED[mutant.row])
    assert quick, "the first of a table is noticed without a gateway"
    verdict = judge(mutant, replace(PROVED[mutant.row], tests=tuple(quick)))
    assert verdict.is_red, verdict.output


def test_without_a_change_the_same_tests_are_green() -> None:
    """Else red would say nothing."""
    mutant = MUTANTS[0]
    harmless = Mutant(mutant.row, mutant.file, mutant.text, f"{mutant.text}  # as it was")
    quick, _ = asked_of(mutant, PROVED[mutant.row])
    verdict = judge(harmless, replace(PROVED[mutant.row], tests=tuple(quick)))
    assert not verdict.is_red, verdict.output


def test_a_text_that_has_vanished_is_an_error_that_names_the_row() -> None:
    with pytest.raises(Vanished, match=r"tangle:depth:refuse .* tests/mutants"):
        place_of(Mutant("tangle:depth:refuse", "core/chain/carnet.py", "\0 no such line", ""))
