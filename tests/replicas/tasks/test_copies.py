"""Tasks of two gateways on one database: each is run by one of them, also when the other dies."""

import signal
from collections import Counter
from collections.abc import Iterator

import pytest

from carnet.testing.wait import until
from tests.crash.loops.calls import TaskScene, task_scene
from tests.faults.stores import rows
from tests.replicas.scene import Replica
from tests.stores.support import servers

AT_ONCE = 4  # of one gateway
SHARED = {"CARNET__LIMITS__TASKS_PER_AGENT": str(AT_ONCE)}


@pytest.fixture
def scene(tmp_path_factory: pytest.TempPathFactory, server: servers.Server) -> Iterator[TaskScene]:
    database = server.create()
    with task_scene(tmp_path_factory.mktemp("shared"), database) as scene:
        scene.acme.start(env=SHARED)
        yield scene
    server.drop(database)


@pytest.fixture
def other(scene: TaskScene) -> Iterator[Replica]:
    """A second gateway in the same folder, as another machine with the same configuration."""
    other = Replica(scene.acme.folder, "other", SHARED)
    other.start()
    yield other
    assert other.stop() == 0


def runners(scene: TaskScene, step: str) -> dict[str, str]:
    """Which process took a step of each run."""
    taken = [(run, one) for run, steps in scene.steps().items() for one in steps]
    return {run: one.pid for run, one in taken if one.name == step}


def workers(scene: TaskScene) -> dict[str, str]:
    """Which gateway holds each run."""
    sql = "SELECT r.id, t.worker FROM turn t JOIN run r ON r.n = t.run WHERE t.state = 'running'"
    return dict(rows(scene.acme, sql))


def end_lease(scene: TaskScene, worker: str) -> None:
    """As if a gateway had been silent for a minute."""
    rows(scene.acme, "UPDATE worker SET until = until - 60000000 WHERE id = ?", worker)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_tasks_of_two_gateways_are_run_by_either_and_finished_by_the_one_that_lives(
    how: signal.Signals, scene: TaskScene, other: Replica
) -> None:
    runs = [f"shared_{n:02}" for n in range(2 * AT_ONCE)]
    for run in runs:
        scene.hold(run)
    tasks = {run: scene.accepted(run) for run in runs}
    until(lambda: all(scene.is_held(run) for run in runs), bool)
    until(lambda: sorted(Counter(workers(scene).values()).values()), lambda n: n == [AT_ONCE] * 2)
    assert scene.acme.process is not None
    victim = str(scene.acme.process.pid)
    its_own = [run for run, pid in runners(scene, "first").items() if pid == victim]
    assert its_own
    worker = workers(scene)[its_own[0]]

    assert scene.signal(how) == (0 if how == signal.SIGTERM else -how)
    end_lease(scene, worker)
    scene.port = other.port
    assert {run: scene.accepted(run) for run in runs} == tasks
    for run in runs:
        scene.let_go(run)
    for run, task in tasks.items():
        assert scene.ended(task).json["result"] == {"text": "first second"}
        scene.until_delivered(task)
        assert list(scene.faults(run, task)) == []
    assert victim not in runners(scene, "second").values()
    assert all(scene.attempts(run)[0][1] > 1 for run in its_own)
    assert list(scene.left_over()) == []


def test_f27_a_gateway_that_stood_still_too_long_takes_no_more_steps_of_its_tasks(
    scene: TaskScene, other: Replica
) -> None:
    run = "paused"
    scene.hold(run)
    other.signal(signal.SIGSTOP)  # so that the first gateway takes it
    task = scene.accepted(run)
    until(lambda: scene.is_held(run), bool)
    assert scene.acme.process is not None
    scene.acme.process.send_signal(signal.SIGSTOP)
    end_lease(scene, workers(scene)[run])
    other.signal(signal.SIGCONT)
    scene.port = other.port
    until(lambda: scene.attempts(run), lambda found: found == [("running", 2)])
    scene.let_go(run)
    scene.acme.process.send_signal(signal.SIGCONT)
    scene.ended(task)
    scene.until_delivered(task)
    until(lambda: "task waits again" in "".join(scene.acme.log_lines()), bool)
    assert list(scene.faults(run, task)) == []
    assert list(scene.left_over()) == []
