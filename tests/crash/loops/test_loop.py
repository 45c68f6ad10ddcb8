"""SIGKILL at random times under load: nothing acknowledged is lost, changed, or paid twice.

`make crash` kills 300 times on each store; `FAULT_KILLS` and `FAULT_SEED` change it here.
"""

import os
from collections.abc import Iterator

import pytest

from tests.crash.loops.loop import kill_loop
from tests.faults.scene import Pair, two_gateways
from tests.stores.support import servers

KILLS = int(os.environ.get("FAULT_KILLS", "4"))
SEED = int(os.environ.get("FAULT_SEED", "1"))


@pytest.fixture
def pair(
    store: str, server: servers.Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    database = server.create() if store == "postgres" else ""
    with two_gateways(tmp_path_factory.mktemp("kills"), database) as pair:
        yield pair
    if database:
        server.drop(database)


@pytest.mark.timeout(180 + 5 * KILLS)
def test_f10_kills_under_load_lose_change_and_bill_nothing_twice(pair: Pair) -> None:
    figures = kill_loop(pair, "loop", kills=KILLS, seed=SEED)
    assert figures.faults == []
    assert figures.refused == 0
    assert figures.ok > KILLS
