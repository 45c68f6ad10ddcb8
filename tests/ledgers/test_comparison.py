"""Two real ledgers agree after random calls; `make ledgers` makes two thousand of them."""

from pathlib import Path

import pytest

from tests.ledgers.comparison import compare, unmatched
from tests.ledgers.load import Load
from tests.ledgers.scene import two_ledgers
from tests.selection import STORES
from tests.stores.support import servers

pytestmark = pytest.mark.timeout(600)  # gateways are killed and started again


@pytest.mark.parametrize("store", STORES)
def test_two_ledgers_agree_or_say_where_they_do_not(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """R57: to the micro-unit, whatever broke; what differs is listed, and a repeat mends it."""
    databases = ("", "")
    if store == "postgres":
        server: servers.Server = request.getfixturevalue("server")
        databases = (server.create(), server.create())
    with two_ledgers(tmp_path, databases) as world:
        load = Load(world, calls=80, kills=4, seed=11)
        made = load.run()
        assert made.kills == 4
        found = compare(world)
        assert found.faults == []
        assert found.same > 0
        for called in made.calls:
            if called.run in unmatched(world):
                load.ask(called)
        assert compare(world).faults == []
