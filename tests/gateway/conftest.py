"""A real gateway process for the tests of this folder, on each store."""

from collections.abc import Iterator

import pytest

from tests.faults.stores import STORES, move_to
from tests.stores.support import servers
from tests.support.organisation import Organisation
from tests.support.served import AGENTS, CONFIG


@pytest.fixture(scope="session", params=STORES)
def acme(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Organisation]:
    gateway = Organisation(tmp_path_factory.mktemp("acme"), "acme.example")
    if request.param == "postgres":
        server: servers.Server = request.getfixturevalue("server")
        move_to(gateway, server.create())
    gateway.configure(CONFIG, agents=AGENTS)
    gateway.start()
    yield gateway
    assert gateway.stop() == 0
