"""What every test shares: how hypothesis searches, where files are, one PostgreSQL, an end.

Other fixtures live beside the tests that use them.
"""

import gc
import logging
import signal
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from carnet.telemetry import undeclared
from tests import bytecode, ordering, selection
from tests.bytecode import pytest_collection
from tests.failures import pytest_runtest_makereport, pytest_runtest_protocol
from tests.ordering import pytest_configure
from tests.selection import pytest_report_header
from tests.support import memory
from tests.support.organisation import ended_with_it

if TYPE_CHECKING:
    from tests.stores.support import servers

__all__ = [
    "pytest_addoption",
    "pytest_collection",
    "pytest_configure",
    "pytest_report_header",
    "pytest_runtest_makereport",
    "pytest_runtest_protocol",
    "server",
]

# The same examples on every run, and no verdict by the wall clock: a failure here is a fact about
# the code. `pytest --hypothesis-profile=explore` looks further.
settings.register_profile(
    "carnet", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", deadline=None, max_examples=2000)
settings.load_profile("carnet")

memory.use()
bytecode.keep()

# A shell makes what it starts in the background deaf to Ctrl-C, and so would be the commands that
# tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


class Undeclared(logging.Handler):
    """Raises where a line is logged with a field that the list in telemetry.py does not have."""

    def emit(self, record: logging.LogRecord) -> None:
        if lost := undeclared(record):
            raise AssertionError(f"log fields that no line would show: {', '.join(lost)}")


logging.getLogger("carnet").addHandler(Undeclared())


def pytest_addoption(parser: pytest.Parser) -> None:
    ordering.pytest_addoption(parser)
    selection.pytest_addoption(parser)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the stores, then put the files in order."""
    selection.select(config, items)
    ordering.put_in_order(config, items)


def pytest_collection_finish() -> None:
    """The thousands of tests that were found stay to the end: they are looked through no more."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def server() -> Iterator["servers.Server"]:
    """The server that DATABASE_URL names, or one that is started by the first test that asks."""
    from tests.stores.support import servers  # noqa: PLC0415  not for tests that need no database

    with servers.running() as server:
        yield server


@pytest.fixture(autouse=True)
def ends() -> Iterator[None]:
    """Whatever a test does, the gateways that it started end with it.

    Those of fixtures for many tests were started before, and end with their fixture.
    """
    with ended_with_it():
        yield
    sys.modules.pop("agents", None)  # of a gateway in this process; others have their own
