"""A deadline only moves closer."""

import msgspec
import pytest

from carnet.guards.admission.transaction import deadline_of
from carnet.testing.clock import FakeClock
from tests.guards.scene import directory

STEADY = FakeClock().steady_us() / 1_000_000


@pytest.mark.parametrize(
    ("before", "seconds", "after"),
    [
        (None, None, None),
        (STEADY + 5, None, STEADY + 5),
        (None, 9.0, STEADY + 9),
        (STEADY + 5, 9.0, STEADY + 5),
        (STEADY + 9, 5.0, STEADY + 5),
    ],
)
def test_the_earlier_of_two_deadlines_holds(
    before: float | None, seconds: float | None, after: float | None
) -> None:
    target = msgspec.structs.replace(directory().find("echo"), seconds=seconds)
    assert deadline_of(before, target, FakeClock()) == after
