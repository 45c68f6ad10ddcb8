"""kill -9 at every crash point of a task with a callback (F07, F28).

The callback arrives, each copy the same; the task has one end; its steps are taken once.
`make crash` does each on both stores, ten times.
"""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from carnet.testing.wait import until
from tests.crash.loops.calls import TaskScene, task_scene
from tests.crash.points.choice import ByStore
from tests.crash.points.task_matrix import (
    CASES,
    KILLED,
    PASSED,
    RECOVERING,
    SECOND,
    STOPPING,
    TaskCase,
)
from tests.faults.stores import number, rows
from tests.stores.support import servers

MONTHS_US = 90 * 24 * 3600 * 1_000_000
NOTING = {"CARNET_NOTE_POINTS": "1"}
AROUND_A_DELIVERY = [point for point in PASSED if point.partition(".")[0] in {"outbox", "upstream"}]
BEFORE = [point for point in PASSED if point not in AROUND_A_DELIVERY]


@pytest.fixture(scope="module")
def scenes(
    server: servers.Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ByStore[TaskScene]]:
    @contextmanager
    def made(store: str) -> Iterator[TaskScene]:
        database = server.create() if store == "postgres" else ""
        with task_scene(tmp_path_factory.mktemp("tasks"), database) as scene:
            yield scene
            assert list(scene.left_over()) == []
            assert scene.acme.stop() == 0
        if database:
            server.drop(database)

    with ExitStack() as stack:
        yield ByStore(stack, made)


@pytest.fixture
def scene(store: str, scenes: ByStore[TaskScene]) -> TaskScene:
    return scenes[store]


@pytest.mark.parametrize("point", BEFORE)
def test_a_task_survives_a_kill_at(point: str, scene: TaskScene) -> None:
    assert TaskCase(scene, point).faults() == []


@pytest.mark.parametrize("point", AROUND_A_DELIVERY)
def test_f07_a_callback_arrives_under_one_id_after_a_kill_at(point: str, scene: TaskScene) -> None:
    assert TaskCase(scene, point).faults() == []


@pytest.mark.parametrize("point", SECOND)
def test_a_step_that_is_kept_is_not_taken_again_after_a_kill_at(
    point: str, scene: TaskScene
) -> None:
    assert TaskCase(scene, point).faults() == []


@pytest.mark.parametrize("point", ["t3.before_commit", "t3.after_commit", "outbox.after_send"])
def test_the_failure_of_a_task_is_told_after_a_kill_at(point: str, scene: TaskScene) -> None:
    assert TaskCase(scene, point, fails=True).faults() == []


@pytest.mark.parametrize("point", RECOVERING)
def test_a_task_survives_kills_in_a_row_of_its_recovery_at(point: str, scene: TaskScene) -> None:
    assert TaskCase(scene, point).faults() == []


@pytest.mark.parametrize("point", STOPPING)
def test_a_task_survives_a_kill_of_a_gateway_that_stops_at(point: str, scene: TaskScene) -> None:
    assert TaskCase(scene, point).faults() == []


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_f28_a_task_goes_on_after_a_restart_and_its_callback_arrives(
    how: signal.Signals, scene: TaskScene
) -> None:
    run = f"f28_{how.name}"
    scene.restart()
    scene.hold(run)
    task = scene.accepted(run)
    until(lambda: scene.is_held(run), bool)
    assert scene.signal(how) == (0 if how == signal.SIGTERM else -how)
    scene.let_go(run)
    if how == signal.SIGTERM:  # it was put back, and is not lost until somebody looks for it
        assert scene.attempts(run) == [("queued", 2)]
        scene.acme.start()
    else:
        scene.restart()
    assert scene.ended(task).json["result"] == {"text": "first second"}
    scene.until_delivered(task)
    assert list(scene.faults(run, task)) == []
    assert scene.attempts(run) == [("done", 2)]


def test_a_prune_of_tasks_that_is_killed_is_finished_by_the_next(scene: TaskScene) -> None:
    scene.restart()
    old = scene.accepted("forgotten")
    scene.ended(old)
    scene.until_delivered(old)
    scene.hold("remembered")
    task = scene.accepted("remembered")
    until(lambda: scene.is_held("remembered"), bool)
    for table in ("turn", "task", "outbox"):
        rows(scene.acme, f"UPDATE {table} SET ended = ended - ?", MONTHS_US)  # noqa: S608
    ledger = rows(scene.acme, "SELECT COUNT(*), SUM(amount) FROM ledger")
    assert scene.acme.try_carnet("prune", env={"CRASH_AT": "purge.mid"}).returncode == KILLED
    scene.acme.carnet("prune")
    assert rows(scene.acme, "SELECT id FROM task") == [(task,)]
    for table in ("task", "step", "journal"):
        left = f"SELECT COUNT(*) FROM {table} WHERE turn NOT IN (SELECT n FROM turn)"  # noqa: S608
        assert number(scene.acme, left) == 0
    assert rows(scene.acme, "SELECT COUNT(*), SUM(amount) FROM ledger") == ledger
    assert scene.poll(old).body == b'{"error":"Task not found"}'
    scene.let_go("remembered")
    scene.ended(task)
    scene.until_delivered(task)
    assert list(scene.faults("remembered", task)) == []


def test_these_are_all_the_points_that_a_task_with_a_callback_passes(scene: TaskScene) -> None:
    scene.restart(NOTING)
    whole = scene.accepted("noted")
    scene.ended(whole)
    scene.until_delivered(whole)
    scene.hold("noted_twice")
    task = scene.accepted("noted_twice")
    until(lambda: scene.is_held("noted_twice"), bool)
    assert scene.signal(signal.SIGTERM) == 0  # it is put back
    scene.acme.start()
    until(lambda: scene.is_running("noted_twice"), bool)
    scene.acme.kill()
    scene.let_go("noted_twice")
    scene.end_leases()
    scene.acme.start(env=NOTING)  # it is recovered, and ends
    scene.ended(task)
    scene.until_delivered(task)
    assert scene.acme.stop() == 0
    at_times = {"purge.mid"}  # whatever is forgotten meanwhile
    assert scene.points() - at_times == {case.partition(":")[0] for case in CASES}
