"""How many calls one caller makes within one run."""

import pytest

from carnet.guards import limits
from carnet.guards.limits import Runaway


def test_a_caller_may_make_only_so_many_calls_in_a_run() -> None:
    counted = Runaway(2)
    assert counted.enter("r", "a")
    assert counted.enter("r", "a")
    assert not counted.enter("r", "a")
    assert counted.enter("r", "b")
    assert counted.enter("other", "a")


def test_what_was_refused_after_all_or_was_known_does_not_count() -> None:
    counted = Runaway(2)
    for _ in range(5):
        assert counted.enter("r", "a")
        counted.leave("r", "a")
    assert counted.enter("r", "a")
    assert counted.enter("r", "a")
    counted.leave("r", "a")
    assert counted.enter("r", "a")
    counted.leave("never", "entered")


def test_only_the_runs_seen_last_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_RUNS", 2)
    counted = Runaway(1)
    for run in ("1", "2", "3"):
        assert counted.enter(run, "a")
    assert counted.enter("1", "a")
    assert not counted.enter("3", "a")
