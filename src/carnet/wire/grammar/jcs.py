"""The canonical form of JSON that other programs can rebuild (RFC 8785).

`wire.grammar.json.canonical` is quicker and for our own digests only: it sorts keys by their
UTF-8 and keeps 1 and 1.0 apart. This one sorts by UTF-16 code units and writes numbers as
ECMAScript does.

Law 1. It depends on the value alone: equal values give equal bytes, whatever they were read from.
Law 2. A reader whose numbers are doubles finds the value again, and gives it the same form.
Law 3. Its time grows with the size of the value, however deep that lies: strangers choose both.
Law 4. What has no canonical form is refused: NaN, Infinity, an integer beyond +/-(2^53 - 1), half
       a surrogate pair, more levels than our own reader takes, anything that is not JSON. Who has
       to digest what others made asks for `any_integer` (in all its digits) and more levels.
"""

import math
from collections.abc import Callable
from json.encoder import encode_basestring
from typing import Final

from carnet.wire.grammar.json import MAX_INTEGER, MAX_LEVELS

_LARGEST_PLAIN: Final = 21  # digits before the point; from 1e21 on there is an exponent
_SMALLEST_PLAIN: Final = -6  # 0.000001 is written so, 1e-7 is not
Scalar = Callable[[object], str]

_WORDS: Final = {None: "null", True: "true", False: "false"}


class NotCanonical(ValueError):
    """The value has no canonical form."""


def canonical(value: object, *, max_levels: int = MAX_LEVELS, any_integer: bool = False) -> bytes:
    """The one spelling of a JSON value."""
    pieces: list[str] = []
    try:
        _write(value, max_levels, _write_any_scalar if any_integer else _write_scalar, pieces)
        return "".join(pieces).encode()
    except UnicodeEncodeError:
        raise NotCanonical("a string holds half of a surrogate pair") from None


def _write(value: object, levels: int, scalar: Scalar, pieces: list[str]) -> None:
    """Add the spelling of a value: its time grows with its size, however deep it lies."""
    if isinstance(value, dict):
        _refuse_depth(levels)
        separator = "{"
        for key in sorted(value, key=_code_units):
            pieces.append(f"{separator}{encode_basestring(str(key))}:")
            _write(value[key], levels - 1, scalar, pieces)
            separator = ","
        pieces.append("}" if value else "{}")
    elif isinstance(value, list | tuple):
        _refuse_depth(levels)
        separator = "["
        for member in value:
            pieces.append(separator)
            _write(member, levels - 1, scalar, pieces)
            separator = ","
        pieces.append("]" if value else "[]")
    else:
        pieces.append(scalar(value))


def _refuse_depth(levels: int) -> None:
    if levels == 0:
        raise NotCanonical("too many levels")


def _code_units(key: object) -> bytes:
    if not isinstance(key, str):
        raise NotCanonical("a key is not a string")
    return key.encode("utf-16-be")


def _write_any_scalar(value: object) -> str:
    return str(value) if type(value) is int else _write_scalar(value)


def _write_scalar(value: object) -> str:
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None or isinstance(value, bool):
        return _WORDS[value]
    if isinstance(value, int):
        if not -MAX_INTEGER <= value <= MAX_INTEGER:
            raise NotCanonical("an integer beyond 2^53 - 1")
        return str(value)
    if isinstance(value, float):
        return _write_float(value)
    raise NotCanonical("a value that is not JSON")


def _write_float(value: float) -> str:
    """The shortest digits that give this double back, laid out as ECMAScript does."""
    if not math.isfinite(value):
        raise NotCanonical("NaN and Infinity are not JSON")
    if value == 0:
        return "0"  # -0 too
    sign = "-" if value < 0 else ""
    digits, point = _shortest(abs(value))
    return sign + _lay_out(digits, point)


def _shortest(value: float) -> tuple[str, int]:
    """The significant digits, and how many of them stand before the point."""
    mantissa, _, exponent = repr(value).partition("e")
    whole, _, fraction = mantissa.partition(".")
    if fraction == "0":
        fraction = ""
    point = len(whole) + int(exponent or "0")
    digits = whole + fraction
    stripped = digits.lstrip("0")
    return stripped.rstrip("0"), point - (len(digits) - len(stripped))


def _lay_out(digits: str, point: int) -> str:
    count = len(digits)
    if count <= point <= _LARGEST_PLAIN:
        return digits + "0" * (point - count)
    if 0 < point <= _LARGEST_PLAIN:
        return f"{digits[:point]}.{digits[point:]}"
    if _SMALLEST_PLAIN < point <= 0:
        return "0." + "0" * -point + digits
    mantissa = digits[0] + (f".{digits[1:]}" if count > 1 else "")
    return f"{mantissa}e{point - 1:+d}"
