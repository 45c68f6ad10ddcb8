"""The checker finds what it is there to find."""

from carnet.testing.history import History


def test_what_was_acknowledged_is_there_once_and_unchanged() -> None:
    history = History()
    for name in ("kept", "lost", "changed", "twice"):
        history.ok(name, "yes")
    present = {"kept": ["yes"], "changed": ["no"], "twice": ["yes", "yes"]}
    assert history.faults(present) == [
        "changed: was acknowledged and has changed",
        "lost: was acknowledged and is lost",
        "twice: is present 2 times",
    ]


def test_a_refusal_leaves_no_trace_unless_another_attempt_was_not_refused() -> None:
    history = History()
    history.refused("traced")
    history.refused("clean")
    history.unknown("tried")
    history.refused("tried")
    present = {"traced": ["x"], "tried": ["x"]}
    assert history.faults(present) == ["traced: was refused and left a trace"]


def test_what_is_unknown_may_be_there_or_not_but_not_twice() -> None:
    history = History()
    for name in ("absent", "there", "twice"):
        history.unknown(name)
    assert history.faults({"there": ["x"], "twice": ["x", "x"]}) == ["twice: is present 2 times"]
    assert history.unsettled() == ["absent", "there", "twice"]


def test_a_retry_settles_what_was_unknown_and_answers_agree() -> None:
    history = History()
    history.unknown("a")
    history.ok("a", "1")
    history.ok("a", "2")
    assert history.unsettled() == []
    assert history.faults({"a": ["1"]}) == ["a: was answered in 2 ways"]
    assert (history.count("ok"), history.count("unknown")) == (2, 1)


def test_nothing_may_be_there_that_nobody_asked_for() -> None:
    assert History().faults({"ghost": ["boo"], "empty": []}) == [
        "ghost: is present and was never asked for"
    ]
