"""One gateway for the tests of this folder, on each store."""

from collections.abc import Iterator

import pytest

from tests.faults.stores import STORES, served_on
from tests.gateway.conversations.scene import AGENTS, CONFIG, Person
from tests.support.model import Model, streamed
from tests.support.organisation import Organisation, shared_with_others


@pytest.fixture(scope="session", params=STORES)
def front(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[tuple[Organisation, Model]]:
    folder = tmp_path_factory.mktemp("front")
    with Model().serving() as model, shared_with_others():
        config = CONFIG.replace("{url}", model.url)
        with served_on(request, folder, config, agents=AGENTS) as gateway:
            yield gateway, model


@pytest.fixture(scope="session", params=STORES)
def held(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[tuple[Organisation, Model]]:
    """One whose streams stay open at a question."""
    folder = tmp_path_factory.mktemp("held")
    with Model().serving() as model, shared_with_others():
        config = CONFIG.replace("{url}", model.url) + "hold_approvals = 600\n"
        with served_on(request, folder, config, agents=AGENTS) as gateway:
            yield gateway, model


@pytest.fixture
def carol(held: tuple[Organisation, Model]) -> Person:
    """Somebody there."""
    return Person(*held, "carol")


@pytest.fixture
def alice(front: tuple[Organisation, Model]) -> Iterator[Person]:
    gateway, model = front
    person = Person(gateway, model, "alice")
    person.replies(streamed("Hello."))
    person.closes_gate()
    yield person
    person.opens_gate()
