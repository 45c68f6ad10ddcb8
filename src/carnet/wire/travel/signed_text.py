"""What was signed, as people are shown it.

Law 1. Of the lines of a base those are shown whose names are listed here. Of all others, such as a
       credential that was covered or the travel document, the name is shown and no value.
Law 2. Of a call out its destination, the digest of its body and the input of its signature are
       kept, never the signature. Its base is built from these when somebody asks for it.
Law 3. What is kept is bounded.
"""

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from carnet.errors import SignatureInvalid
from carnet.wire.crypto import signatures
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps import tangle

HIDDEN: Final = "***"
MOST_BYTES: Final = 4096
# Lines that hold nothing but where a request goes, what its body is, and its place in its chain.
SHOWN: Final = (
    *("@method", "@authority", "@path", "@scheme", "@signature-params"),
    *("content-digest", "content-type", "content-length", "date"),
    *(tangle.PROTOCOL_VERSION, tangle.FORWARDED_DEPTH, tangle.RUN_ID, tangle.TURN_ID),
    *(tangle.PARENT_TURN_ID, tangle.SPEAKER),
)
_OTHERS: Final = re.compile(
    rb'^"(?!(?:%s)")([^"\n]*)": .*$' % b"|".join(re.escape(name.encode()) for name in SHOWN),
    re.MULTILINE,
)
_LINE: Final = rb'"\1": ***'
_PARTS: Final = 3


def hide(base: bytes) -> bytes:
    """A base without what is not for people's eyes, as much of it as is kept."""
    return _OTHERS.sub(_LINE, base)[:MOST_BYTES]


class SentRequest(Struct, frozen=True, kw_only=True):
    """What is known of a signed request that left."""

    method: str
    url: str
    digest: str
    input: str  # of its signature: the header
    base: str | None  # None: it cannot be built


def read_sent(noted: str, fields: Mapping[str, str]) -> SentRequest | None:
    """What was kept of a call out (`Outbound.signed`); `fields` are its headers, without secrets.

    None where it is not in its form.
    """
    lines = noted.split("\n")
    if len(lines) != _PARTS:
        return None
    head, digest, given = lines
    method, _, rest = head.partition(" ")
    url, _, rest = rest.partition(" ")
    path, _, newline = rest.rpartition(" ")
    known = {**fields, "content-digest": digest}
    base = _base(method, url, path, given, known, newline=newline == "1")
    return SentRequest(method=method, url=url, digest=digest, input=given, base=base)


def _base(
    method: str, url: str, path: str, given: str, known: Mapping[str, str], *, newline: bool
) -> str | None:
    unsigned = f"{given.partition('=')[0]}=:{'A' * 86}==:"  # the place of a signature
    try:
        headers = [(b"signature-input", given.encode()), (b"signature", unsigned.encode())]
        presented = signatures.read(Headers(headers))
    except SignatureInvalid:
        return None
    scheme, _, rest = url.partition("://")
    values = {name: known.get(name, HIDDEN) for name in presented.components if name[:1] != "@"}
    request = signatures.Request(
        method=method,
        authority=rest.partition("/")[0],
        path=path,
        query=None,
        headers=Headers([(name.encode(), value.encode()) for name, value in values.items()]),
        scheme=scheme,
    )
    try:
        base = signatures.base(presented, request, newline=newline)
    except SignatureInvalid:
        return None
    return hide(base).decode("ascii", "replace")
