"""A budget as people write it: `0.50`, or `money=0.50,calls=20,tokens=5000,seconds=60,on=ask`.

Law 1. `read_terms(write_terms(x)) == x` for every budget that bounds something.
Law 2. Each part stands once, has a name of ours and a number; whatever else is refused as a whole.
"""

import re
from functools import lru_cache
from typing import Final

from carnet.core.money.amount import format_amount, parse_amount
from carnet.core.people.proof import Spending
from carnet.errors import InvalidRequest

MOST_TERMS: Final = 256  # characters
_MOST: Final = (1 << 53) - 1
_COUNT: Final = re.compile(r"[0-9]{1,16}", re.ASCII)
_PARTS: Final = ("money", "calls", "tokens", "seconds")
_ON: Final = "on"  # what is done when it is used up
_ON_BUDGET: Final = {"ask": True, "refuse": False}


@lru_cache(maxsize=256)  # a program asks for the same one again and again
def read_terms(text: str, *, field: str = "budget") -> Spending:
    """Read it; the money is in the currency of the ledger that it is for."""
    if len(text) > MOST_TERMS:
        raise InvalidRequest(field, "is too long")
    terms: dict[str, int] = {}
    asks: bool | None = None
    for term in text.split(","):
        name, equals, value = term.strip().partition("=")
        if not equals:
            name, value = "money", name
        if name == _ON and asks is None and value in _ON_BUDGET:
            asks = _ON_BUDGET[value]
            continue
        if name not in _PARTS or name in terms:
            raise InvalidRequest(field, f"has parts {', '.join(_PARTS)}, each once")
        terms[name] = parse_amount(value, field=field) if name == "money" else _count(value, field)
    if not terms:
        raise InvalidRequest(field, "bounds something")
    return Spending(
        money=terms.get("money"),
        calls=terms.get("calls"),
        tokens=terms.get("tokens"),
        seconds=terms.get("seconds"),
        asks=asks,
    )


def _count(text: str, field: str) -> int:
    if _COUNT.fullmatch(text) is None or int(text) > _MOST:
        raise InvalidRequest(field, "counts calls, tokens and seconds in whole numbers")
    return int(text)


def write_terms(budget: Spending) -> str:
    """Write it."""
    terms = {
        "money": None if budget.money is None else format_amount(budget.money),
        "calls": budget.calls,
        "tokens": budget.tokens,
        "seconds": budget.seconds,
        _ON: None if budget.asks is None else "ask" if budget.asks else "refuse",
    }
    return ",".join(f"{name}={value}" for name, value in terms.items() if value is not None)
