"""What was recorded of the protocol's own SDK, and where we depart from it.

Each area is met by one test, which is given its facts one by one.
"""

from typing import NamedTuple

import pytest

from tests.requirements.rows import Divergence
from tests.vectors.samvad_sdk import Fact, kept

COVERED: list[str] = []  # the facts that a test is given


class Ours(NamedTuple):
    """What we say in the place of what was recorded, and why."""

    value: object
    divergence: Divergence


_ALTERED = Ours(
    value=False,
    divergence=Divergence(
        "R8",
        "The request was altered after it was signed. The Python SDK writes the parameters anew "
        "and ignores those it was sent; we verify the received text, as the other SDK does.",
    ),
)
_INWARD = Ours(
    value=True,
    divergence=Divergence(
        "R14",
        "A system's resolver reads it as loopback, or it is no host of the public internet: the "
        "egress guard, which every learned address passes, refuses it.",
    ),
)

DIVERGENCES = {
    **dict.fromkeys(("verify-10", "verify-11", "verify-12", "verify-13", "verify-14"), _ALTERED),
    "private_host-06": _INWARD,  # 127.1
    "private_host-12": _INWARD,  # shared by carriers
    "private_host-14": _INWARD,  # multicast
    "private_host-22": _INWARD,  # localhost with a dot at its end
    "private_host-23": _INWARD,  # 127.0.0.1 as one number
    "private_host-25": Ours(
        value=True, divergence=Divergence("R14", "A URL without a host leads nowhere.")
    ),
    "status-08": Ours(
        500, Divergence("R12", "AGENT_UNAVAILABLE is 500 in the text; the SDK says 503.")
    ),
    "status-10": Ours(None, Divergence("R12", "A code that is none of the nine is never written.")),
    "delegation_verify-07": Ours(
        "ok", Divergence("R13", "The text writes a scope as words: both forms are read.")
    ),
    "delegation_verify-09": Ours(
        "AUTH_FAILED", Divergence("R3", "A depth is never coerced: true is no number.")
    ),
}


FACTS = kept()


def facts_of(area: str) -> list[Fact]:
    return [fact for fact in FACTS if fact["area"] == area]


def recorded(area: str) -> pytest.MarkDecorator:
    """Give a test every fact of an area, one by one."""
    found = facts_of(area)
    COVERED.extend(fact["id"] for fact in found)
    return pytest.mark.parametrize("fact", found, ids=lambda fact: fact["id"])


def holds(fact: Fact, value: object) -> bool:
    """Whether we say what was recorded, or what our divergence says."""
    ours = DIVERGENCES.get(fact["id"])
    if ours is None:
        return bool(value == fact["expected"])
    return bool(value == ours.value != fact["expected"])
