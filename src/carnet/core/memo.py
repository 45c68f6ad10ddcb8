"""What is remembered so that it need not be found again, within a bound."""

from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Memo(dict[K, V]):
    """At most `most` values: what was kept longest ago is forgotten first.

    A dictionary, so that looking something up is no call of ours.
    """

    __slots__ = ("_most",)

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def keep(self, key: K, value: V) -> V:
        """Remember a value as the newest, and give it back."""
        if key in self:
            del self[key]
        elif len(self) >= self._most:
            del self[next(iter(self))]
        self[key] = value
        return value
