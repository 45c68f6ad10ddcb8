"""How far long work has come: on a terminal, in one line that is written over."""

import sys
from typing import Self

_CLEAR = "\r\x1b[K"


class ProgressLine:
    """A line on stderr while it is entered; nothing where no person looks."""

    def __init__(self, what: str = "") -> None:
        self._what = what
        self._is_seen = sys.stderr.isatty()

    def so_far(self, done: int) -> None:
        """So many."""
        self.say(f"{done:,} {self._what}")

    def of_table(self, table: str, done: int, total: int) -> None:
        """So many rows of so many."""
        self.say(f"{table}: {done:,} of {total:,} {self._what}")

    def say(self, text: str) -> None:
        """How far it is, in words."""
        if self._is_seen:
            sys.stderr.write(_CLEAR + text)
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.say("")
