"""One gateway for the tests of this folder, on each store."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.faults.stores import served_on
from tests.gateway.conversations.scene import AGENTS, CONFIG, Person
from tests.selection import STORES
from tests.support.model import Model, streamed
from tests.support.organisation import Organisation, shared_with_others

Front = tuple[Organisation, Model]


@contextmanager
def served(
    folders: pytest.TempPathFactory, request: pytest.FixtureRequest, more: str = ""
) -> Iterator[Front]:
    with Model().serving() as model, shared_with_others():
        config = CONFIG.replace("{url}", model.url) + more
        with served_on(request, folders.mktemp("front"), config, agents=AGENTS) as gateway:
            yield gateway, model


@pytest.fixture(scope="session", params=STORES)
def front(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Front]:
    with served(tmp_path_factory, request) as found:
        yield found


@pytest.fixture(scope="session", params=STORES)
def held(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Front]:
    """One whose streams stay open at a question."""
    with served(tmp_path_factory, request, "hold_approvals = 600\n") as found:
        yield found


@pytest.fixture
def carol(held: Front) -> Person:
    """Somebody there."""
    return Person(*held, "carol")


@pytest.fixture
def alice(front: Front) -> Iterator[Person]:
    gateway, model = front
    person = Person(gateway, model, "alice")
    person.replies(streamed("Hello."))
    person.closes_gate()
    yield person
    person.opens_gate()
