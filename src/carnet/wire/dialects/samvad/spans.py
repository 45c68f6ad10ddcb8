"""The span of an answer: new to whoever asks, and yet a function of what it answers.

Law. The same parts give the same span, and it is shaped as the UUID that clients expect.
"""

from hashlib import blake2b

from carnet.core.chain.turn import Turn


def span_of(turn: Turn) -> str:
    """The span of the answer to one attempt of a turn."""
    return span_from(turn.run, turn.turn, str(turn.attempt))


def span_from(*parts: str) -> str:
    """A span for these parts."""
    spelled = blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()
    start, middle = spelled[:8], f"{spelled[8:12]}-{spelled[12:16]}-{spelled[16:20]}"
    return f"{start}-{middle}-{spelled[20:]}"
