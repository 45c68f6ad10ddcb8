"""A real gateway process for the tests of this folder, on each store."""

from collections.abc import Iterator

import pytest

from tests.faults.stores import STORES, served_on
from tests.support.organisation import Organisation
from tests.support.served import AGENTS, CONFIG


@pytest.fixture(scope="session", params=STORES)
def acme(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Organisation]:
    with served_on(request, tmp_path_factory.mktemp("acme"), CONFIG, agents=AGENTS) as gateway:
        yield gateway
