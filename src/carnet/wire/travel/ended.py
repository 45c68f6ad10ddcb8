"""`/.well-known/carnet-ended.json`: delegations that a gateway has ended before their time (R59).

Law 1. `read_ended(write_ended(ended))` says the same again, and what its signature covers.
Law 2. It is short-lived: it says when it was made, and nobody believes it for long.
Law 3. Nothing here is believed. The signature is judged by whoever knows the keys of the domain.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from carnet.core.people.address import check_domain
from carnet.errors import AddressInvalid, InvalidJson, PeerUnreachable
from carnet.wire.crypto import jws
from carnet.wire.grammar import json

TYPE: Final = "carnet-ended+jwt"
MOST_ENDED: Final = 4096  # ids of one list; a gateway that has ended more says that there are more
MAX_BYTES: Final = 256 * 1024

_Number = Annotated[int, Meta(ge=0, le=json.MAX_INTEGER)]
_Id = Annotated[str, Meta(min_length=1, max_length=128)]


class EndedList(Struct, frozen=True, kw_only=True):
    """What the page says."""

    domain: str
    issued: int  # seconds since the epoch
    expires: int
    ids: frozenset[str]
    whole: bool = True  # False: there are more than the list holds
    keyid: str = ""
    signed: bytes = b""  # what its signature covers
    signature: bytes = b""


class _Claims(Struct):
    iss: str
    iat: _Number
    exp: _Number
    ids: Annotated[list[_Id], Meta(max_length=MOST_ENDED)]
    whole: bool = True


class _Page(Struct):
    ended: str


def write_ended(ended: EndedList, *, kid: str, sign: Callable[[bytes], bytes]) -> bytes:
    """The page, signed with a key of the domain."""
    claims = _Claims(
        iss=ended.domain,
        iat=ended.issued,
        exp=ended.expires,
        ids=sorted(ended.ids)[:MOST_ENDED],
        whole=ended.whole and len(ended.ids) <= MOST_ENDED,
    )
    payload: dict[str, Any] = msgspec.to_builtins(claims)
    return json.write({"ended": jws.write(payload, kid=kid, typ=TYPE, sign=sign)})


def read_ended(body: bytes) -> EndedList:
    """Read the page; `PeerUnreachable` for what is none."""
    try:
        page = msgspec.convert(json.read_object(body), _Page)
        token = jws.read(page.ended, typ=TYPE, max_bytes=MAX_BYTES)
        claims = msgspec.convert(token.payload, _Claims)
        check_domain(claims.iss)
    except (InvalidJson, msgspec.ValidationError, AddressInvalid, jws.JwsInvalid):
        raise PeerUnreachable("its list of ended delegations cannot be read") from None
    return EndedList(
        domain=claims.iss,
        issued=claims.iat,
        expires=claims.exp,
        ids=frozenset(claims.ids),
        whole=claims.whole,
        keyid=token.keyid,
        signed=token.signed,
        signature=token.signature,
    )
