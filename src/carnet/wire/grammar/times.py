"""Moments as people and machines read them."""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def when(micros: int | None) -> str | None:
    """A moment in RFC 3339; None for none."""
    if micros is None:
        return None
    return datetime.fromtimestamp(micros / 1_000_000, UTC).isoformat(timespec="milliseconds")


def micros_of(text: str) -> int | None:
    """The moment that a text of RFC 3339 names, in microseconds; None if it names none.

    Where it says no zone it is UTC, and midnight where it says no time.
    """
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1)
