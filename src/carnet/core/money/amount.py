"""Money: decimal text outside, integer micro-units inside.

Law 1. No rounding: an amount with more than six decimals is refused, never shortened.
Law 2. `parse_amount(format_amount(x)) == x`.
"""

import re
from functools import lru_cache

from carnet.errors import InvalidRequest

MICROS = 1_000_000
MOST_MICROS = 10**15  # a thousand million units: beyond it a number is a mistake, not a price

_AMOUNT = re.compile(r"([0-9]{1,12})(?:\.([0-9]{1,6}))?", re.ASCII)


def parse_amount(text: str, *, field: str = "amount") -> int:
    """Read decimal text such as `0.0002` into micro-units."""
    match = _AMOUNT.fullmatch(text)
    if match is None:
        raise InvalidRequest(field, "must be a decimal number with at most six decimals")
    whole, fraction = match.groups(default="")
    micros = int(whole) * MICROS + int(fraction.ljust(6, "0"))
    if micros > MOST_MICROS:
        raise InvalidRequest(field, "is too large")
    return micros


@lru_cache(maxsize=256)  # most calls cost one of few amounts, or nothing
def format_amount(micros: int) -> str:
    """Write micro-units as the shortest decimal text."""
    sign, value = ("-", -micros) if micros < 0 else ("", micros)
    whole, fraction = divmod(value, MICROS)
    tail = f".{fraction:06d}".rstrip("0").rstrip(".") if fraction else ""
    return f"{sign}{whole}{tail}"
