"""A scene on each of the two stores: a kill is tried on one of them, in `make crash` on both."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Generic, TypeVar

import pytest

from tests.selection import STORES, chosen
from tests.support.organisation import shared_with_others

T = TypeVar("T")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "store" in metafunc.fixturenames and metafunc.config.getoption("stores") == "both":
        metafunc.parametrize("store", named(metafunc.function.__name__), indirect=True)


def named(test: str) -> tuple[str, ...]:
    """The stores that a test is about: one that it names, or both."""
    return tuple(store for store in STORES if store in test) or STORES


@pytest.fixture
def store(request: pytest.FixtureRequest) -> str:
    if hasattr(request, "param"):
        return str(request.param)
    name = request.node.name
    stores = named(name.partition("[")[0])
    return chosen(name) if len(stores) > 1 else stores[0]


class ByStore(Generic[T]):
    """A scene for each store, made by the first who asks for it, and ended with the stack."""

    def __init__(self, stack: ExitStack, make: Callable[[str], AbstractContextManager[T]]) -> None:
        self._stack = stack
        self._make = make
        self._made: dict[str, T] = {}

    def __getitem__(self, store: str) -> T:
        if store not in self._made:
            with shared_with_others():
                self._made[store] = self._stack.enter_context(self._make(store))
        return self._made[store]
