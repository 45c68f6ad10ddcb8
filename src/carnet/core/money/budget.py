"""Counted limits of a run: a name, a ceiling, a current value.

Law 1. A ceiling is at least 1 and a count at least 0, whatever was given.
Law 2. Exceeded means the count has reached the ceiling.
Law 3. Those that a loop counts have closed names: `turns`, `tool_calls`, `tool_calls_` with the
       name of a tool, `wall_clock_seconds`. What has another name is no budget.
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import force_setattr

TURNS: Final = "turns"  # times that a model is asked
TOOL_CALLS: Final = "tool_calls"
OF_TOOL: Final = "tool_calls_"  # and the name of one
WALL_CLOCK: Final = "wall_clock_seconds"
MOST_CEILING: Final = 1_000_000  # beyond it a budget is a mistake, and bounds nothing
MOST_NAMED: Final = 32  # budgets of one agent, or of one token
MOST_COUNTS: Final = 8192  # characters of what was counted of both

_NAME: Final = re.compile(
    r"turns|tool_calls|tool_calls_[!-<>-~]{1,64}|wall_clock_seconds", re.ASCII
)
_WRITTEN: Final = re.compile(r"([!-<>-~]{1,80})=([1-9][0-9]{0,6})", re.ASCII)

Ceilings = tuple[tuple[str, int], ...]  # by the names of budgets


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


def ceilings_of(given: Mapping[str, object], *, most: int = MOST_NAMED) -> Ceilings:
    """Named budgets, in the order of their names; ValueError with what is wrong."""
    if len(given) > most:
        raise ValueError(f"there are more than {most}")
    found: list[tuple[str, int]] = []
    for name, ceiling in sorted(given.items()):
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name[:40]!r} is the name of none")
        if type(ceiling) is not int or not 1 <= ceiling <= MOST_CEILING:
            raise ValueError(f"{name} is no whole number from 1 to {MOST_CEILING}")
        found.append((name, ceiling))
    return tuple(found)


def read_ceilings(words: list[str], *, most: int = MOST_NAMED) -> Ceilings:
    """The same from words such as `turns=3`; ValueError with what is wrong."""
    given: dict[str, object] = {}
    for word in words:
        written = _WRITTEN.fullmatch(word)
        if written is None or written[1] in given:
            raise ValueError(f"{word[:40]!r} is not in its form, or named twice")
        given[written[1]] = int(written[2])
    return ceilings_of(given, most=most)


def read_counts(text: str) -> Ceilings:
    """What was counted of named budgets, as `write_ceilings` writes it; ValueError for no such."""
    words = text.split(" ") if len(text) <= MOST_COUNTS else [""]
    return read_ceilings(words, most=2 * MOST_NAMED)


def write_ceilings(ceilings: Ceilings) -> str:
    """Those words, with spaces between them."""
    return " ".join([f"{name}={ceiling}" for name, ceiling in ceilings])
