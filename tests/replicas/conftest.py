"""Four gateways that share a database, and their callers."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.replicas.scene import LOOPED, MODEL, Callers, House, Replica, a_house, callers
from tests.replicas.upstream import Upstream, upstream
from tests.stores.support import servers


@pytest.fixture(scope="session")
def model() -> Iterator[Upstream]:
    with upstream() as model:
        yield model


@pytest.fixture(scope="session")
def house(
    tmp_path_factory: pytest.TempPathFactory, server: servers.Server, model: Upstream
) -> Iterator[House]:
    """Four gateways with the usual lease; a test uses as many of them as it needs."""
    folder = tmp_path_factory.mktemp("replicas")
    looped = LOOPED.format(url=model.url, listen=model.url.removesuffix("/v1"))
    with a_house(folder, server, MODEL.format(url=model.url) + looped) as house:
        house.open(4, {"CARNET__LIMITS__SENDER_CALLS_PER_MINUTE": "1000000"})  # `make replay`
        yield house


@pytest.fixture
def four(house: House) -> list[Replica]:
    return house.replicas[:4]


@pytest.fixture
async def people(house: House) -> AsyncIterator[Callers]:
    async with callers(house.token) as people:
        yield people
