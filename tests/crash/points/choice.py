"""A scene on each of the two stores: a kill is tried on one of them, in `make crash` on both."""

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Generic, TypeVar

from tests.support.organisation import shared_with_others

T = TypeVar("T")


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
