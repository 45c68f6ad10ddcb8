"""One fixture for every store: each test runs over both drivers.

A test that is about one of them says so in its name: `..._sqlite_...`, `..._postgres_...`.
"""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from carnet.stores.open import Store
from carnet.stores.postgres import writer
from tests.stores.support import servers
from tests.stores.support.scenes import Place
from tests.support.commands import CONNECT_SECONDS

DRIVERS = ("sqlite", "postgres")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "driver" in metafunc.fixturenames:
        named = [driver for driver in DRIVERS if driver in metafunc.function.__name__]
        metafunc.parametrize("driver", named or DRIVERS)


@pytest.fixture
def empty(server: servers.Server) -> Iterator[str]:
    """A database without a layout."""
    url = server.empty()
    yield url
    server.drop(url)


@pytest.fixture
def place(
    driver: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Place:
    if driver == "sqlite":
        return Place(tmp_path)
    monkeypatch.setattr(writer, "CONNECT_SECONDS", CONNECT_SECONDS)
    server: servers.Server = request.getfixturevalue("server")  # not started for SQLite alone
    return Place(tmp_path, server.fresh())


@pytest.fixture
async def store(place: Place) -> AsyncIterator[Store]:
    opened = await place.start()
    yield opened
    await opened.close()
