"""A fault that is noted again and again."""

import logging

from carnet.log.repeats import MOST_KINDS, QUIET_SECONDS, Repeats


class Log:
    """What is written through a filter, and when each record was made."""

    def __init__(self) -> None:
        self.written: list[logging.LogRecord] = []
        self.repeats = Repeats(self.written.append)
        self.now = 1000.0

    def note(self, message: str, level: int = logging.WARNING, **fields: object) -> None:
        record = logging.LogRecord("carnet.worker", level, __file__, 1, message, None, None)
        record.__dict__.update(fields, created=self.now)
        if self.repeats.filter(record):
            self.written.append(record)

    @property
    def lines(self) -> list[tuple[str, object]]:
        return [(one.getMessage(), one.__dict__.get("count")) for one in self.written]


def test_the_same_fault_is_one_line_and_then_a_count() -> None:
    log = Log()
    for _ in range(25):
        log.note("no tasks are taken", detail="it is down")
        log.now += 1
    assert log.lines == [
        ("no tasks are taken", None),
        ("no tasks are taken (again)", 9),
        ("no tasks are taken (again)", 9),
    ]
    log.repeats.rest()
    assert log.lines[3:] == [("no tasks are taken (again)", 4)]
    log.repeats.rest()
    assert len(log.lines) == 4


def test_what_differs_in_a_field_is_written() -> None:
    log = Log()
    for number in range(3):
        log.note("no tasks are taken", detail=f"reason {number}")
        log.note("keys not learned", peer=f"{number}.example")
        log.note("no tasks are taken", logging.ERROR, detail=f"reason {number}")
    assert len(log.lines) == 9


def test_what_is_no_fault_is_always_written() -> None:
    log = Log()
    for _ in range(3):
        log.note("refused", logging.INFO)
    assert len(log.lines) == 3


def test_a_count_that_nothing_follows_is_told_with_the_next_line() -> None:
    log = Log()
    log.note("the outbox could not be read")
    log.note("the outbox could not be read")
    log.now += QUIET_SECONDS
    log.note("listening", logging.INFO)
    assert log.lines == [
        ("the outbox could not be read", None),
        ("the outbox could not be read (again)", 1),
        ("listening", None),
    ]
    log.note("the outbox could not be read")  # it is another fault by now
    assert log.lines[-1] == ("the outbox could not be read", None)


def test_the_same_after_a_while_is_written_again() -> None:
    log = Log()
    log.note("x")
    log.now += QUIET_SECONDS
    log.note("x")
    assert log.lines == [("x", None), ("x", None)]


def test_a_clock_that_was_set_back_hides_nothing() -> None:
    log = Log()
    log.note("x")
    log.now -= 3600
    log.note("x")
    assert log.lines == [("x", None), ("x", None)]


def test_what_is_remembered_is_bounded() -> None:
    log = Log()
    for number in range(MOST_KINDS + 10):
        log.note(f"fault {number}")
    log.note(f"fault {MOST_KINDS + 5}")
    log.note("fault 5")
    assert len(log.lines) == MOST_KINDS + 11


def test_of_exceptions_the_same_is_the_same() -> None:
    log = Log()
    for text in ("a", "a", "b"):
        error = ValueError(text)
        log.note("failed", logging.ERROR, exc_info=(ValueError, error, None))
    assert len(log.lines) == 2
    log.repeats.rest()
    assert log.written[-1].exc_info is None
