"""What is green, and what is not."""

import pytest

from tests.rounds.verdict import Verdict, verdict

LAST = "================ {} in 723.10s (0:12:03) ================\n"


def test_green_is_where_every_test_passed() -> None:
    result = verdict("-- pytest\n......\n" + LAST.format("24654 passed"), 0)
    assert result == Verdict(is_green=True, counts="24654 passed")


@pytest.mark.parametrize(
    ("counts", "code"),
    [
        ("24654 passed", 1),  # something after the tests failed
        ("1 failed, 24653 passed", 1),
        ("24653 passed, 1 skipped", 0),
        ("24653 passed, 1 xfailed", 0),
        ("24654 passed, 1 error", 1),
        ("24654 passed, 2 warnings", 0),
    ],
)
def test_whatever_else_is_told_is_not_green(counts: str, code: int) -> None:
    result = verdict("-- pytest\n......\n" + LAST.format(counts), code)
    assert result == Verdict(is_green=False, counts=counts)


def test_a_round_without_a_count_is_not_green() -> None:
    assert not verdict("make: *** [test] Error 1\n", 2).is_green
    assert not verdict("", 0).is_green
    assert not verdict("he said: 3 passed in 2s, or so\n", 0).is_green
