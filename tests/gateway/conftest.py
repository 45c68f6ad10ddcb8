"""A real gateway process for the tests of this folder, on each store."""

from collections.abc import Iterator

import pytest

from tests.faults.scene import HELD, HELD_CONFIG
from tests.faults.stores import served_on
from tests.selection import STORES
from tests.support.organisation import Organisation
from tests.support.served import AGENTS, CONFIG

# What loops elsewhere ask for with a bearer is asked for with tokens here, which are wrong ones.
LIMITS = "[limits]\nauth_failures = 10000\n"


@pytest.fixture(scope="session", params=STORES)
def acme(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Organisation]:
    folder = tmp_path_factory.mktemp("acme")
    config, agents = CONFIG + HELD_CONFIG + LIMITS, AGENTS + HELD
    with served_on(request, folder, config, agents=agents) as gateway:
        yield gateway
