"""One real gateway process for the tests of this folder; two where its store matters."""

from collections.abc import Iterator

import pytest

from tests.faults.stores import STORES, move_to
from tests.stores import servers
from tests.support.organisation import Organisation
from tests.support.served import AGENTS, CONFIG

OF_THE_STORE = {"test_forwarding", "test_idempotency", "test_runs"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "acme" in metafunc.fixturenames:
        module = metafunc.module.__name__.rpartition(".")[2]
        stores = STORES if module in OF_THE_STORE else STORES[:1]
        metafunc.parametrize("acme", stores, indirect=True, scope="session")


@pytest.fixture(scope="session")
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
