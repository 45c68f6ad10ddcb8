"""SIGKILL at random times while tasks run: none is lost, billed twice or told in two ways.

`make crash` kills 300 times on each store; `FAULT_KILLS` and `FAULT_SEED` change it here.
"""

import os
from pathlib import Path

import pytest

from tests.crash.loops.calls import task_scene
from tests.crash.loops.task_loop import task_loop
from tests.stores.support import servers

KILLS = int(os.environ.get("FAULT_KILLS", "3"))
SEED = int(os.environ.get("FAULT_SEED", "1"))


@pytest.mark.timeout(180 + 5 * KILLS)
def test_f28_kills_while_tasks_run_lose_none_and_each_callback_arrives(
    store: str, server: servers.Server, tmp_path: Path
) -> None:
    database = server.create() if store == "postgres" else ""
    with task_scene(tmp_path, database) as scene:
        figures = task_loop(scene, "loop", kills=KILLS, seed=SEED)
        assert figures.faults == []
        assert figures.refused == 0
        assert figures.ok > KILLS
        assert scene.acme.stop() == 0
    if database:
        server.drop(database)
