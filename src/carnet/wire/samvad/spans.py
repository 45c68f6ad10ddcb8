"""The span of an answer: new to whoever asks, and yet a function of what it answers.

Law. The same parts give the same span, and it is shaped as the UUID that clients expect.
"""

from hashlib import blake2b

from carnet.core.turn import Turn


def span_of(turn: Turn) -> str:
    """The span of the answer to one attempt of a turn."""
    return span_from(turn.run, turn.turn, str(turn.attempt))


def span_from(*parts: str) -> str:
    """A span for these parts."""
    digits = blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
