"""A fault that is noted again and again: one line, and from then on a count now and then.

While a database is down whoever needs it says so each second, and nobody finds the line that says
something else.

Law 1. Only what is word for word the same is left out, with all its fields, and only of warnings
       and errors.
Law 2. What is left out is counted, and told: with the next of the same after `QUIET_SECONDS`, else
       with whatever is written after that, at the latest when the log ends.
"""

import logging
from collections.abc import Callable
from threading import Lock
from typing import Final

from carnet.telemetry import FIELDS

QUIET_SECONDS: Final = 10.0
MOST_KINDS: Final = 256  # of faults that are remembered; others are written each time

_ALL: Final = (*FIELDS, "correlation_id", "run", "turn")

Fault = tuple[object, ...]


class Repeats(logging.Filter):
    """Leaves out what was said a moment ago."""

    def __init__(self, write: Callable[[logging.LogRecord], None]) -> None:
        """`write` is given counts that come too late to be told with a record."""
        super().__init__()
        self._write = write
        self._since: dict[Fault, float] = {}  # when each was last written
        self._left_out: dict[Fault, tuple[int, logging.LogRecord]] = {}  # how many, the last
        self._lock = Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is to be written."""
        if record.levelno < logging.WARNING and not self._since:
            return True
        with self._lock:
            if record.levelno < logging.WARNING:
                self._catch_up(record.created)
                return True
            fault = _fault(record)
            since = self._since.get(fault)
            if since is None:
                self._catch_up(record.created)
                if len(self._since) < MOST_KINDS:
                    self._since[fault] = record.created
                return True
            if 0 <= record.created - since < QUIET_SECONDS:
                many, _ = self._left_out.get(fault, (0, record))
                self._left_out[fault] = many + 1, record
                return False
            many, _ = self._left_out.pop(fault, (0, record))
            self._since[fault] = record.created
            _count(record, many)
            return True

    def rest(self) -> None:
        """Tell of all that was left out: the log ends."""
        with self._lock:
            self._catch_up(float("inf"))

    def _catch_up(self, now: float) -> None:
        """Tell of what has not been noted again since it was left out, and forget it."""
        for fault, since in list(self._since.items()):
            if now - since >= QUIET_SECONDS:
                del self._since[fault]
                if fault in self._left_out:
                    many, record = self._left_out.pop(fault)
                    _count(record, many)
                    self._write(record)


def _fault(record: logging.LogRecord) -> Fault:
    raised = record.exc_info[1] if record.exc_info else None
    error = None if raised is None else (type(raised).__name__, str(raised))
    fields = record.__dict__
    values = [str(fields.get(name)) for name in _ALL]
    return (record.name, record.levelno, record.getMessage(), error, *values)


def _count(record: logging.LogRecord, left_out: int) -> None:
    """Have a record say how often the same was noted since it was last written."""
    if left_out:
        record.count = left_out
        record.msg, record.args = f"{record.getMessage()} (again)", ()
        record.exc_info = None  # it was shown with the first
