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

_HOST: Final = re.compile(rb"[ \t]*(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?[ \t]*")
_LENGTH: Final = re.compile(rb"[ \t]*[0-9]{1,19}[ \t]*")
_ONCE: Final = frozenset({b"host", b"content-length", b"transfer-encoding"})


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


def check_head(target: bytes, fields: Fields, limits: EdgeLimits) -> tuple[bool, bool]:
    """Refuse a head that is too large or can be read in two ways.

    Tells whether a body follows, and whether it waits to be asked for.
    """
    count, size = len(fields), len(target)
    if size > limits.url_bytes:
        raise UriTooLong(limit=limits.url_bytes)
    text = b"".join(chain(*fields))
    if (
        count > limits.header_fields
        or size + len(text) + 4 * count > limits.header_bytes  # 4: colon and so on
    ):
        raise HeadersTooLarge(limit=limits.header_bytes, fields=limits.header_fields)
    if target[:1] != b"/" or b"#" in target:
        raise MalformedRequest("its target is not a path")
    named = dict(fields)
    if len(named) != count:
        _refuse_repeated(fields)
    if not text.isascii():
        _refuse_beyond_ascii(fields, limits.tolerated)
    if b"host" not in named or not _HOST.fullmatch(named[b"host"]):
        raise MalformedRequest("it does not name one valid host")
    return _has_body(named, limits), b"expect" in named and _expects(fields)


def _has_body(named: dict[bytes, bytes], limits: EdgeLimits) -> bool:
    if b"transfer-encoding" in named:
        if b"content-length" in named:
            raise MalformedRequest("it has a length beside a transfer coding")
        if named[b"transfer-encoding"].strip(b" \t") != b"chunked":
            raise MalformedRequest("its transfer coding is not 'chunked'")
        return True
    if b"content-length" not in named:
        return False
    length = named[b"content-length"]
    if not _LENGTH.fullmatch(length):
        raise MalformedRequest("its length is not a number")
    size = int(length)
    if size > limits.body_bytes:
        raise BodyTooLarge(limit=limits.body_bytes)
    return size > 0


def _expects(fields: Fields) -> bool:
    return any(name == b"expect" and value.lower() == b"100-continue" for name, value in fields)


def _refuse_repeated(fields: Fields) -> None:
    framing = [name for name, _ in fields if name in _ONCE]
    if len(framing) != len(set(framing)):
        raise MalformedRequest("a field that may stand once stands twice")


def _refuse_beyond_ascii(fields: Fields, tolerated: tuple[bytes, ...]) -> None:
    for name, value in fields:
        if not (name.isascii() and value.isascii()) and not name.startswith(tolerated):
            raise MalformedRequest("a header field holds a character beyond ASCII")
