"""What is remembered so that it need not be found again, within a bound."""

from collections import OrderedDict
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Memo(OrderedDict[K, V]):
    """At most `most` values: what was kept longest ago is forgotten first.

    A dictionary, so that looking something up is no call of ours; an ordered one, since a plain one
    looks for its oldest key through all places that others have left.
    """

    __slots__ = ("_most",)

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def keep(self, key: K, value: V) -> V:
        """Remember a value as the newest, and give it back."""
        if key in self:
            self.move_to_end(key)
        elif len(self) >= self._most:
            self.popitem(last=False)
        self[key] = value
        return value
