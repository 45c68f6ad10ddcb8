"""Strict JSON: the one reader for bodies from outside, and the writers for ours.

It is not a schema check (a dialect converts what it finds here into its own shapes), it does not
bound the number of bytes (the edge has done so before), and `canonical` is not RFC 8785.

Law 1. One meaning or none. Where two parsers could disagree the body is refused: a key twice in
       one object, NaN or Infinity, a number that a double cannot hold, an integer beyond
       +/-(2^53 - 1), a lone surrogate, a NUL in a key, a BOM, anything but UTF-8, trailing data.
Law 2. Whatever the bytes, `read` returns a value or raises `InvalidJson`, in linear time.
Law 3. `InvalidJson` says what was wrong and where, never what was said.
Law 4. `read(write(x)) == x` for every x that `read` can return.
Law 5. What `write` returns is one line, also for readers that break lines at U+0085 or U+2028.
Law 6. `canonical` depends on the value alone: not on the order of keys, not on the spacing.
"""

import json
import math
from collections.abc import Callable
from typing import Final, NoReturn

import msgspec

from carnet.errors import InvalidJson

MAX_LEVELS = 32
MAX_MEMBERS = 100_000
MAX_INTEGER = 2**53 - 1

_SAFE_DIGITS = 15  # fifteen characters of integer are always within MAX_INTEGER
_STRETCH = 65_536  # of a long body: a call into C keeps every other thread waiting to its end
_MOST_DIGITS = 17  # the sign and sixteen digits; a longer one is refused without reading it
_WHITESPACE = " \t\n\r"  # str.strip() alone would take Unicode spaces off as well

# These three occur in JSON only inside a string, so an escape changes the spelling alone.
_LINE_BREAKS = (
    (b"\xc2\x85", b"\\u0085"),
    (b"\xe2\x80\xa8", b"\\u2028"),
    (b"\xe2\x80\xa9", b"\\u2029"),
)

_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)
_LONG_NUMBER = b"0" * (_SAFE_DIGITS + 1)

_ENCODER = msgspec.json.Encoder()
_DECODER = msgspec.json.Decoder()

# The bytes to digest: compact, keys and Struct fields sorted, UTF-8. 1 and 1.0 are two values here.
# Peers digest bytes that they received, never this form. A call less than a function.
canonical: Final[Callable[[object], bytes]] = msgspec.json.Encoder(order="sorted").encode


def read(body: bytes, *, max_levels: int = MAX_LEVELS, max_members: int = MAX_MEMBERS) -> object:
    """Return the value that the body spells, or raise `InvalidJson`.

    Args:
        body: The whole body as received.
        max_levels: How many arrays and objects may stand inside one another.
        max_members: How many commas and opening brackets may stand outside strings. There are
            never more values than that, and it can be counted before anything is built.
    """
    if len(body) > max_members:
        _refuse_many_members(body, max_members)
    value = _read_plain(body)
    if value is None:
        value = _read_any(body, max_levels)
    if body[_STRETCH : _STRETCH + 1]:
        opened = _count(body, b"{") + _count(body, b"[")
    else:
        opened = body.count(b"{") + body.count(b"[")
    if opened > max_levels:
        refuse_depth(value, max_levels)
    return value


def _read_plain(body: bytes) -> object:
    """The value of a body that is seen to be unambiguous; None for all others, right or wrong.

    In C, and a third of the price. Its parser is as strict as ours but for three things: keys that
    stand twice, long integers, and what an escape can spell.
    """
    if b"\\" in body and _is_escaped(body):
        return None
    is_long = body[_STRETCH : _STRETCH + 1] != b""
    if _has_long_number(body) if is_long else _LONG_NUMBER in body.translate(_DIGITS):
        return None
    try:
        value: object = _DECODER.decode(body)
    except (ValueError, RecursionError):
        return None
    # Writing it again gives each string and key the quotes it came with, unless a key was dropped.
    again = _ENCODER.encode(value)
    if is_long:
        return value if _count(body, b'"') == _count(again, b'"') else None
    return value if body.count(b'"') == again.count(b'"') else None


def _is_escaped(body: bytes) -> bool:
    # One character is found at a tenth of the price of two.
    return b"\\" in body and b"\\u" in body


def _read_any(body: bytes, max_levels: int) -> object:
    """The value of any body, or the reason why it has none."""
    # Raw control characters and raw surrogates are refused by the parser and by UTF-8. Only an
    # escape can still bring a NUL or half a pair, and most bodies hold no \u at all.
    escaped = _is_escaped(body)
    try:
        value = _parse(body.decode(), _WARY if escaped else _PLAIN)
        if escaped:
            _ENCODER.encode(value)  # one pass in C that stumbles over half a pair, key or value
    except UnicodeDecodeError as error:
        raise InvalidJson(f"not UTF-8 at byte {error.start}") from None
    except UnicodeEncodeError:
        raise InvalidJson("a string holds half of a surrogate pair") from None
    except RecursionError:
        raise InvalidJson(f"more than {max_levels} levels") from None
    return value


def read_object(
    body: bytes, *, max_levels: int = MAX_LEVELS, max_members: int = MAX_MEMBERS
) -> dict[str, object]:
    """Like `read`, for the formats whose outermost value is an object."""
    value = read(body, max_levels=max_levels, max_members=max_members)
    if type(value) is not dict:
        raise InvalidJson("the outermost value is not an object")
    return value


def write(value: object) -> bytes:
    """Return compact JSON on one line.

    Takes what msgspec takes, Structs included. A float that is not finite becomes null, and half
    a surrogate pair raises UnicodeEncodeError: neither can come from `read`.
    """
    line = _ENCODER.encode(value)
    if not line.isascii():
        for raw, escape in _LINE_BREAKS:
            line = line.replace(raw, escape)
    return line


def write_text(value: object) -> str:
    """Like `write`, for a JSON text that travels inside another format."""
    return write(value).decode()


def _parse(text: str, decoder: json.JSONDecoder) -> object:
    document = text.strip(_WHITESPACE)
    if not document:
        raise InvalidJson("empty")
    try:
        value, end = decoder.raw_decode(document)
    except json.JSONDecodeError as error:
        # Its message and its `doc` quote the body; the place is enough.
        raise InvalidJson(f"not JSON at character {error.pos}") from None
    if end != len(document):
        raise InvalidJson(f"more data after the value at character {end}")
    return value


def _refuse_many_members(body: bytes, max_members: int) -> None:
    if _count_marks(body) <= max_members:
        return  # not even with the commas and brackets of its prose
    if members_in(body, max_members) > max_members:
        raise InvalidJson(f"more than {max_members} members")


def members_in(body: bytes, most: int) -> int:
    """How many commas and opening brackets stand outside strings; more than `most` is enough."""
    # Without escaped backslashes and then escaped quotes, every second piece between quotes is
    # outside a string. For a text that is not JSON the count is off, and it is refused anyway.
    text = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    found = within = 0  # a string, at the beginning of a stretch
    for start in range(0, len(text), _STRETCH):
        pieces = text[start : start + _STRETCH].split(b'"')
        found += _count_marks(b"".join(pieces[within::2]))
        if found > most:  # by the first stretches that hold too many, not by all of them
            break
        within ^= (len(pieces) - 1) & 1
    return found


def _count_marks(text: bytes) -> int:
    return _count(text, b",") + _count(text, b"[") + _count(text, b"{")


def _count(text: bytes, mark: bytes) -> int:
    return sum(text.count(mark, at, at + _STRETCH) for at in range(0, len(text), _STRETCH))


def _has_long_number(body: bytes) -> bool:
    overlap = len(_LONG_NUMBER) - 1
    return any(
        _LONG_NUMBER in body[at : at + _STRETCH + overlap].translate(_DIGITS)
        for at in range(0, len(body), _STRETCH)
    )


def refuse_depth(value: object, max_levels: int) -> None:
    """Refuse a value of more levels, also one that another reader has read."""
    # Level by level, so that no nesting can exhaust our own stack.
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(max_levels):
        level = [
            child
            for parent in level
            for child in (parent.values() if type(parent) is dict else parent)
            if type(child) is dict or type(child) is list
        ]
        if not level:
            return
    raise InvalidJson(f"more than {max_levels} levels")


def _read_object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise InvalidJson("a key stands twice in one object")
    return members


def _read_object_warily(pairs: list[tuple[str, object]]) -> dict[str, object]:
    for key, _ in pairs:
        if "\0" in key:
            raise InvalidJson("a key holds a NUL")
    return _read_object(pairs)


def _read_integer(digits: str) -> int:
    if len(digits) <= _SAFE_DIGITS:
        return int(digits)
    if len(digits) <= _MOST_DIGITS and abs(number := int(digits)) <= MAX_INTEGER:
        return number
    raise InvalidJson("an integer beyond 2^53 - 1")


def _read_float(digits: str) -> float:
    number = float(digits)
    if math.isfinite(number):
        return number
    raise InvalidJson("a number too large for a double")


def _refuse_constant(_: str) -> NoReturn:
    raise InvalidJson("NaN and Infinity are not JSON")


_PLAIN = json.JSONDecoder(
    object_pairs_hook=_read_object,
    parse_int=_read_integer,
    parse_float=_read_float,
    parse_constant=_refuse_constant,
)
_WARY = json.JSONDecoder(
    object_pairs_hook=_read_object_warily,
    parse_int=_read_integer,
    parse_float=_read_float,
    parse_constant=_refuse_constant,
)
