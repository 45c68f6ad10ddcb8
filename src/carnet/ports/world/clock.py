"""Time and chance, so that nothing else reads a clock or draws a number."""

from typing import Protocol


class Clock(Protocol):
    """Wall time for windows and records; for durations and deadlines, time that never jumps."""

    def wall_us(self) -> int:
        """Microseconds since the epoch."""

    def monotonic(self) -> float:
        """Seconds that never jump."""

    def steady_us(self) -> int:
        """Microseconds since the epoch that never jump: for deadlines.

        It is the wall clock of the start, and what the monotonic clock has counted since.
        """


class Ids(Protocol):
    """A source of names nobody can guess."""

    def uuid(self) -> str:
        """A random UUID in its canonical text."""

    def ordered_uuid(self) -> str:
        """A UUID that begins with the time, so that rows named by it are kept side by side."""

    def token(self) -> str:
        """At least 160 random bits as URL-safe text."""

    def fraction(self) -> float:
        """A number in [0, 1), for jitter."""
