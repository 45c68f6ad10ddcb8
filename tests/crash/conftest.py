"""Gateway A on either store, and B behind it; A is what dies. The store: points/choice.py."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from tests.crash.points.choice import ByStore, pytest_generate_tests, store
from tests.faults.scene import Pair, two_gateways
from tests.stores.conftest import place
from tests.stores.support import servers

__all__ = ["driver", "pair", "pairs", "place", "pytest_generate_tests", "store"]


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
