"""What is said in the conversations whose steps are measured: the same words by everybody."""

TURNS = 10
AT_ONCE = 64
SEED = "Is it ready? " * 8


def spoken(speaker: str, count: int) -> str:
    """What is said in a turn."""
    return f"{speaker} after {count} messages: " + "no " * 30
