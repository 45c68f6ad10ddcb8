"""One gateway for the tests of the console, and people of each role at it."""

from collections.abc import Iterator

import pytest

from tests.console.pages import a_viewer, an_admin
from tests.faults.scene import HELD, HELD_CONFIG
from tests.gateway.people.browser import Somebody
from tests.support.organisation import Organisation, shared_with_others
from tests.support.served import AGENTS, CONFIG


@pytest.fixture(scope="session")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    """It bears more failures of one address than usual: all the tests come from one."""
    gateway = Organisation(tmp_path_factory.mktemp("acme"), "acme.example")
    limits = "\n[limits]\nauth_failures = 1000\nsign_in_failures = 1000\n"
    gateway.configure(CONFIG + HELD_CONFIG + limits, agents=AGENTS + HELD)
    with shared_with_others():
        gateway.start()
    yield gateway
    assert gateway.stop() == 0


@pytest.fixture(scope="session")
def viewer(acme: Organisation) -> Somebody:
    return a_viewer(acme)


@pytest.fixture(scope="session")
def operator(acme: Organisation) -> Somebody:
    return Somebody(acme)


@pytest.fixture(scope="session")
def admin(acme: Organisation) -> Somebody:
    return an_admin(acme)
