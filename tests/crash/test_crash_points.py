"""kill -9 at every crash point, on both stores: nothing acknowledged is lost, rerun, billed twice.

`make crash` does each ten times.
"""

import pytest

from carnet.faults import POINTS
from tests.crash import task_matrix
from tests.crash.matrix import CASES, DRAINING, RECOVERING, ROTATING, STREAMED, WHOLE, Case
from tests.faults.scene import Pair


@pytest.mark.parametrize("point", WHOLE)
def test_a_whole_answer_survives_a_kill_at(point: str, pair: Pair) -> None:
    assert Case(pair, point).faults() == []


@pytest.mark.parametrize("point", STREAMED)
def test_a_stream_survives_a_kill_at(point: str, pair: Pair) -> None:
    assert Case(pair, point).faults() == []


@pytest.mark.parametrize("point", RECOVERING)
def test_recovery_survives_kills_in_a_row_at(point: str, pair: Pair) -> None:
    assert Case(pair, point).faults() == []


@pytest.mark.parametrize("point", DRAINING)
def test_draining_survives_a_kill_at(point: str, pair: Pair) -> None:
    assert Case(pair, point).faults() == []


def test_a_migration_that_is_killed_is_finished_by_the_next(pair: Pair) -> None:
    assert Case(pair, "migrate.mid").faults() == []


def test_a_prune_that_is_killed_is_finished_by_the_next(pair: Pair) -> None:
    assert Case(pair, "purge.mid").faults() == []


@pytest.mark.parametrize("point", ROTATING)
def test_f09_a_key_that_is_being_replaced_is_the_old_or_the_new_one_after_a_kill_at(
    point: str, pair: Pair
) -> None:
    assert Case(pair, point).faults() == []


def test_every_crash_point_is_killed_at() -> None:
    of_tasks = {case.partition(":")[0] for case in task_matrix.CASES}
    assert {*CASES, *of_tasks} == POINTS
