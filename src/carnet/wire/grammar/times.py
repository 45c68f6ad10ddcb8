"""Moments as people and machines read them."""

from datetime import UTC, datetime


def when(micros: int | None) -> str | None:
    """A moment in RFC 3339; None for none."""
    if micros is None:
        return None
    return datetime.fromtimestamp(micros / 1_000_000, UTC).isoformat(timespec="milliseconds")
