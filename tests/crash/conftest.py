"""Gateway A on either store, and B behind it; A is what dies."""

from collections.abc import Iterator

import pytest

from tests.faults.scene import Pair, two_gateways
from tests.faults.stores import STORES
from tests.stores import servers
from tests.stores.conftest import place, pytest_generate_tests

__all__ = ["pair", "place", "pytest_generate_tests", "server"]


@pytest.fixture(scope="session")
def server() -> Iterator[servers.Server]:
    with servers.running() as server:
        yield server


@pytest.fixture(scope="session", params=STORES)
def pair(
    request: pytest.FixtureRequest, server: servers.Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    database = server.create() if request.param == "postgres" else ""
    with two_gateways(tmp_path_factory.mktemp("crash"), database) as pair:
        yield pair
    if database:
        server.drop(database)
