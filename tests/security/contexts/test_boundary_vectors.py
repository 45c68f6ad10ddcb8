"""The boundary vectors of the model, U01 to U18, through real requests."""

import inspect
from collections.abc import Iterator

import pytest

from tests.interop.interrupts.scene import Scene as Three
from tests.interop.interrupts.scene import started
from tests.interop.mentions.conftest import World, mentioning
from tests.security.contexts.vectors import VECTORS
from tests.selection import STORES
from tests.support.organisation import Organisation, shared_with_others


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with mentioning(tmp_path_factory.mktemp("mentions")) as both:
        yield both


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Three]:
    with shared_with_others():  # the first that plays on it does not end it
        scene = started(str, tmp_path_factory)
    yield scene
    scene.stop()


def scenes_of(name: str) -> list[str]:
    return list(inspect.signature(VECTORS[name]).parameters)


# What is about the chain alone is played on both stores.
PLAYED = [
    pytest.param(store, name, id=f"{name}-{store}" if "site" in scenes_of(name) else name)
    for name in VECTORS
    for store in (STORES if "site" in scenes_of(name) else STORES[:1])
]


@pytest.mark.parametrize(("site", "name"), PLAYED, indirect=["site"])
def test_a_vector_of_the_model_holds(
    site: Organisation, name: str, request: pytest.FixtureRequest
) -> None:
    given = {each: request.getfixturevalue(each) for each in scenes_of(name) if each != "site"}
    if "site" in scenes_of(name):
        given["site"] = site
    VECTORS[name](**given)


def test_every_number_of_the_list_is_played() -> None:
    assert {name[:3] for name in VECTORS} == {f"U{number:02}" for number in range(1, 19)}
