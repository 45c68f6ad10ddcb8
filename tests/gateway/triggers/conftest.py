"""One gateway for the tests of this folder, on each store, with a model that says what it is to."""

from collections.abc import Iterator

import pytest

from tests.gateway.conversations.conftest import front
from tests.support.model import Model, streamed
from tests.support.organisation import Organisation

__all__ = ["front"]


@pytest.fixture(scope="session")
def acme(front: tuple[Organisation, Model]) -> Organisation:
    return front[0]


@pytest.fixture
def model(front: tuple[Organisation, Model]) -> Iterator[Model]:
    front[1].asked.clear()
    front[1].reply = lambda _: streamed("Hello.")
    yield front[1]
    (front[0].folder / "gate.txt").unlink(missing_ok=True)
