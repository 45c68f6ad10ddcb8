"""The caller's own name for its request: the header `x-correlation-id` (R49).

Law. It is a service to people and never a reason to refuse: what is not one visible word of at most
128 characters was not told.
"""

import re
from typing import Final

from carnet.wire.grammar.headers import Headers

CORRELATION: Final = "x-correlation-id"

_START: Final = b"\n" + CORRELATION.encode()
_WORD: Final = re.compile(r"[!-~]{1,128}", re.ASCII)


def read(headers: Headers) -> str | None:
    """The name, or None where there is none."""
    if _START not in headers.joined():  # nearly every request
        return None
    values = headers.get_all(CORRELATION)
    return values[0] if len(values) == 1 and _WORD.fullmatch(values[0]) else None
