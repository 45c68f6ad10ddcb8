"""The head of a request, judged as bytes: within its sizes, and readable in one way only.

Law. What is refused here was refused by a look at the bytes alone; no field is believed yet.
"""

import re
from itertools import chain
from typing import Final

from msgspec import Struct

from carnet.errors import BodyTooLarge, HeadersTooLarge, MalformedRequest, UriTooLong
from carnet.wire.stamps import STAMPS

Fields = list[tuple[bytes, bytes]]

_HOST: Final = re.compile(rb"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_ONCE: Final = frozenset({b"host", b"content-length", b"transfer-encoding"})
_LENGTH_DIGITS: Final = 19


class EdgeLimits(Struct, frozen=True, kw_only=True):
    """What a connection is held to."""

    header_bytes: int
    header_fields: int
    url_bytes: int
    header_seconds: float
    body_bytes: int  # the largest body that any route takes
    body_seconds: float
    write_stall_seconds: float
    connections: int
    requests: int
    bodies_bytes: int  # of all requests together
    # Fields that may hold anything: their readers refuse what is bad, and name the header.
    tolerated: tuple[bytes, ...] = STAMPS.tolerated


def check_head(target: bytes, fields: Fields, limits: EdgeLimits) -> bool:
    """Refuse a head that is too large or can be read in two ways; whether a body follows."""
    if len(target) > limits.url_bytes:
        raise UriTooLong(limit=limits.url_bytes)
    values = b"".join(chain.from_iterable(fields))
    if (
        len(fields) > limits.header_fields
        or len(target) + len(values) + 4 * len(fields) > limits.header_bytes  # 4: colon and so on
    ):
        raise HeadersTooLarge(limit=limits.header_bytes, fields=limits.header_fields)
    if not target.startswith(b"/") or b"#" in target:
        raise MalformedRequest("its target is not a path")
    named = dict(fields)
    if len(named) != len(fields):
        _refuse_repeated(fields)
    if not values.isascii():
        _refuse_beyond_ascii(fields, limits.tolerated)
    host = named.get(b"host")
    if host is None or not _HOST.fullmatch(host.strip(b" \t")):
        raise MalformedRequest("it does not name one valid host")
    return _has_body(named.get(b"content-length"), named.get(b"transfer-encoding"), limits)


def _has_body(length: bytes | None, coding: bytes | None, limits: EdgeLimits) -> bool:
    if coding is not None:
        if length is not None:
            raise MalformedRequest("it has a length beside a transfer coding")
        if coding.strip(b" \t") != b"chunked":
            raise MalformedRequest("its transfer coding is not 'chunked'")
        return True
    if length is None:
        return False
    digits = length.strip(b" \t")
    if not digits.isdigit() or len(digits) > _LENGTH_DIGITS:
        raise MalformedRequest("its length is not a number")
    if int(digits) > limits.body_bytes:
        raise BodyTooLarge(limit=limits.body_bytes)
    return int(digits) > 0


def _refuse_repeated(fields: Fields) -> None:
    framing = [name for name, _ in fields if name in _ONCE]
    if len(framing) != len(set(framing)):
        raise MalformedRequest("a field that may stand once stands twice")


def _refuse_beyond_ascii(fields: Fields, tolerated: tuple[bytes, ...]) -> None:
    for name, value in fields:
        if not (name.isascii() and value.isascii()) and not name.startswith(tolerated):
            raise MalformedRequest("a header field holds a character beyond ASCII")
