"""One fixture for every store: a second driver is a second parameter."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from carnet.stores.opening import Store
from tests.stores.scenes import Place


@pytest.fixture(params=["sqlite"])
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
async def store(place: Place) -> AsyncIterator[Store]:
    opened = await place.start()
    yield opened
    await opened.close()
