"""Counted limits of a run: a name, a ceiling, a current value.

Law 1. A ceiling is at least 1 and a count at least 0, whatever was given.
Law 2. Exceeded means the count has reached the ceiling.
"""

from msgspec import Struct
from msgspec.structs import force_setattr


class IterationBudget(Struct, frozen=True):
    """One dimension, such as `turns`, `tool_calls` or `chain_depth`."""

    name: str
    ceiling: int
    current: int = 0

    def __post_init__(self) -> None:
        """Clamp both numbers into their range."""
        force_setattr(self, "ceiling", max(1, self.ceiling))
        force_setattr(self, "current", max(0, self.current))

    @property
    def exceeded(self) -> bool:
        """Whether nothing is left."""
        return self.current >= self.ceiling

    @property
    def remaining(self) -> int:
        """How much is left."""
        return max(0, self.ceiling - self.current)

    def increment(self) -> "IterationBudget":
        """The budget after one more."""
        return self.at(self.current + 1)

    def at(self, current: int) -> "IterationBudget":
        """The same budget with another count."""
        return IterationBudget(self.name, self.ceiling, current)
