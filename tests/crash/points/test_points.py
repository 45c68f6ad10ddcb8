"""kill -9 at every crash point: nothing acknowledged is lost, run again or billed twice.

Each is tried on the store that choice.py names; `make crash` does each on both, ten times.
"""

from collections import Counter

import pytest

from carnet.faults import POINTS
from tests.crash.points import question_matrix, task_matrix, test_dialogue_points, test_loop_points
from tests.crash.points.matrix import (
    CASES,
    DRAINING,
    RECOVERING,
    RESTORING,
    ROTATING,
    STREAMED,
    WHOLE,
    Case,
)
from tests.crash.points.test_waiting import WAITING
from tests.faults.scene import Pair
from tests.gateway.configuration import test_changes_killed
from tests.gateway.conversations import test_messages_killed
from tests.gateway.people import test_sessions_killed
from tests.gateway.triggers import test_starter_killed
from tests.interop.budgets import test_killed
from tests.interop.composition import test_orchestrator
from tests.interop.payers import test_killed as test_vouchers_killed
from tests.selection import STORES, chosen


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


@pytest.mark.parametrize("point", RESTORING)
def test_a_sqlite_store_that_is_being_restored_is_the_old_or_the_new_one_after_a_kill_at(
    point: str, pair: Pair
) -> None:
    assert Case(pair, point).faults() == []


@pytest.mark.parametrize("point", RESTORING)
def test_a_postgres_store_that_is_being_restored_is_the_old_or_the_new_one_after_a_kill_at(
    point: str, pair: Pair
) -> None:
    assert Case(pair, point).faults() == []


def test_every_crash_point_is_killed_at() -> None:
    of_tasks = {case.partition(":")[0] for case in task_matrix.CASES}
    others = {*test_dialogue_points.POINTS, *test_messages_killed.POINTS}
    others |= test_starter_killed.POINTS | set(test_loop_points.MEMORY_POINTS)
    others |= set(test_orchestrator.ASKING) | test_sessions_killed.POINTS | test_killed.POINTS
    others |= test_vouchers_killed.POINTS | test_changes_killed.POINTS
    assert {*CASES, *of_tasks, *WAITING, *question_matrix.CASES, *others} == POINTS


def test_each_store_is_killed_on_at_no_less_than_a_third_of_the_points() -> None:
    of_calls = Counter(chosen(f"test_a_whole_answer_survives_a_kill_at[{at}]") for at in WHOLE)
    of_tasks = Counter(chosen(f"test_a_task_survives_a_kill_at[{at}]") for at in task_matrix.PASSED)
    sample = map(question_matrix.chosen_place, question_matrix.CASES)
    asked = "test_a_question_is_answered_and_paid_once_after_a_kill_at"
    of_questions = Counter(chosen(f"{asked}[{place}]") for place in sample)
    for counted in (of_calls, of_tasks, of_questions):
        assert min(counted[store] for store in STORES) * 3 >= counted.total()
