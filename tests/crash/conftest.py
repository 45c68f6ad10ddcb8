"""Gateway A on either store, and B behind it; A is what dies. See choosing.py for the store."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.crash.points.choice import ByStore
from tests.faults.scene import Pair, two_gateways
from tests.selection import STORES, chosen
from tests.stores.conftest import place
from tests.stores.support import servers

__all__ = ["driver", "pair", "pairs", "place", "pytest_generate_tests", "store"]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "store" in metafunc.fixturenames and metafunc.config.getoption("stores") == "both":
        metafunc.parametrize("store", named(metafunc.function.__name__), indirect=True)


def named(test: str) -> tuple[str, ...]:
    """The stores that a test is about: one that it names, or both."""
    return tuple(store for store in STORES if store in test) or STORES


@pytest.fixture
def store(request: pytest.FixtureRequest) -> str:
    if hasattr(request, "param"):
        return str(request.param)
    name = request.node.name
    stores = named(name.partition("[")[0])
    return chosen(name) if len(stores) > 1 else stores[0]


@pytest.fixture
def driver(store: str) -> str:
    return store


@pytest.fixture(scope="session")
def pairs(
    server: servers.Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ByStore[Pair]]:
    @contextmanager
    def made(store: str) -> Iterator[Pair]:
        database = server.create() if store == "postgres" else ""
        with two_gateways(tmp_path_factory.mktemp("crash"), database) as pair:
            yield pair
        if database:
            server.drop(database)

    with ExitStack() as stack:
        yield ByStore(stack, made)


@pytest.fixture
def pair(store: str, pairs: ByStore[Pair]) -> Pair:
    return pairs[store]
