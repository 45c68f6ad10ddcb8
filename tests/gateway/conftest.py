"""One real gateway process for the tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.support.organisation import Organisation
from tests.support.served import AGENTS, CONFIG


@pytest.fixture(scope="session")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    gateway = Organisation(tmp_path_factory.mktemp("acme"), "acme.example")
    gateway.configure(CONFIG, agents=AGENTS)
    gateway.start()
    yield gateway
    assert gateway.stop() == 0
