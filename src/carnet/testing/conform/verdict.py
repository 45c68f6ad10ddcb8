"""A check of the contract, and what became of it."""

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

Outcome = Literal["ok", "broken", "unseen"]


class BrokenPlace(Struct, frozen=True):
    """Where the contract does not hold."""

    expected: str
    seen: str


class Verdict(Struct, frozen=True, kw_only=True):
    """What became of one check."""

    check: str
    sentence: str
    outcome: Outcome
    broken: tuple[BrokenPlace, ...] = ()


MOST_SHOWN = 3  # places where a check was broken, that are told


def judged(
    check: str, sentence: str, broken: Iterable[BrokenPlace], *, is_seen: bool = True
) -> Verdict:
    """The verdict on what was found of a check; `is_seen` tells that it could be broken at all."""
    found = tuple(dict.fromkeys(broken))[:MOST_SHOWN]
    outcome: Outcome = "broken" if found else "ok" if is_seen else "unseen"
    return Verdict(check=check, sentence=sentence, outcome=outcome, broken=found)
