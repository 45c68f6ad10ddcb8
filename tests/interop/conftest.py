"""Every scene of this folder is played over both stores."""

from collections.abc import Callable

import pytest

from tests.selection import STORES
from tests.stores.support import servers

Databases = Callable[[], str]


@pytest.fixture(scope="module", params=STORES)
def database(request: pytest.FixtureRequest) -> Databases:
    """A new database for each organisation that asks; none where they are on SQLite."""
    if request.param == "sqlite":
        return str
    server: servers.Server = request.getfixturevalue("server")
    return server.create
