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

    It is proved by `tests` (as `tests/room/test_noun.py::function`), which always run and go red
    where the sentence is broken (`make mutants`); or it has a `divergence`, usually shown by tests;
    or it is `due` in words that say what is missing. Tests of a row that is due show what of it
    stands already.
    """

    id: str
    sentence: str
    source: str
    tests: tuple[str, ...] = ()
    divergence: Divergence | None = None
    due: str | None = None
