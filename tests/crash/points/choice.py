"""Which store a kill is tried on: in the tests one of the two, in `make crash` both.

Law. The choice is a hash of the test's name, so it is the same on every machine and on every run;
     both stores have about as many.
"""

import zlib
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Generic, TypeVar

from tests.faults.stores import STORES
from tests.support.organisation import shared_with_others

T = TypeVar("T")


def chosen(name: str) -> str:
    """The store of a test."""
    return STORES[zlib.crc32(name.encode()) % len(STORES)]


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
