"""What a normative sentence is here: a row that names what proves it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Divergence:
    """Where we depart from a sentence: the ruling that decided it, and why."""

    ruling: str
    reason: str


@dataclass(frozen=True, slots=True)
class Row:
    """One sentence, in our own words.

    It is settled by `tests` (as `tests/room/test_noun.py::function`), by a `divergence`, or by the
    milestone in which it falls `due`; a divergence is usually shown by tests as well.
    """

    id: str
    sentence: str
    source: str
    tests: tuple[str, ...] = ()
    divergence: Divergence | None = None
    due: str | None = None
