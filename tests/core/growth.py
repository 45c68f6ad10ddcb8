"""How work grows with what it is given: compared or counted, whatever machine this is."""

import sys
import time
from collections.abc import Callable

TIMES = 8
# Between 8, where time grows as what is given does, and 64, where it does as its square.
SQUARE = 24
ROUNDS = 3


def times_as_long(work: Callable[[int], object], many: int) -> float:
    """How many times as long so many take as an eighth of them."""
    return _seconds(work, many) / _seconds(work, many // TIMES)


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called, in Python and in C."""
    called = 0

    def note(_: object, event: str, __: object) -> None:
        nonlocal called
        called += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return called


def _seconds(work: Callable[[int], object], many: int) -> float:
    """The least that it takes of this thread: whatever else happens only adds to it."""
    took = []
    for _ in range(ROUNDS):
        began = time.thread_time()
        work(many)
        took.append(time.thread_time() - began)
    return min(took)
