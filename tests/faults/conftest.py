"""One pair of gateways for the faults of the network; each test finds it healthy."""

from collections.abc import Iterator

import pytest

from tests.faults.scene import Pair, two_gateways


@pytest.fixture(scope="session")
def gateways(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    with two_gateways(tmp_path_factory.mktemp("faults")) as pair:
        yield pair


@pytest.fixture
def pair(gateways: Pair) -> Iterator[Pair]:
    yield gateways
    gateways.heal()
