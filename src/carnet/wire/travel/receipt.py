"""What the answering side signs about its answer: the `carnet-receipt` header or SSE comment.

Law 1. `read_receipt(write_receipt(receipt))` says the same again.
Law 2. A receipt names one call (`run`, `turn`), what it cost, how many calls it took and how deep
       they went, and the digest of the answer; of a call that failed, its code and no digest.
Law 3. The digest is over the answer and not over its bytes on the wire, so that it holds for a
       whole answer and for a stream: SHA-256 of the JCS form (RFC 8785) of an object of the
       dialect, `{"text": ...}` with `tool_calls` where there are any, or the result of a skill.
       Every answer that can be sent has one: integers stand there in all their digits.
Law 4. A receipt names the receipts that were given for the calls below it, by the hash of them all
       together: whoever has these can tell whether one is missing, or is another.
"""

from base64 import b64encode
from collections.abc import Callable, Collection
from hashlib import sha256
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from carnet.core.money.amount import format_amount, parse_amount
from carnet.errors import InvalidRequest, PeerResponseInvalid
from carnet.wire.crypto import jws
from carnet.wire.grammar import jcs, sse
from carnet.wire.grammar.headers import MAX_COUNT
from carnet.wire.grammar.json import MAX_INTEGER

RECEIPT_HEADER: Final = "carnet-receipt"
TYPE: Final = "carnet-receipt+jwt"
MAX_BYTES: Final = 4096
MOST_LEVELS: Final = 64  # of a result: as many as the dialects read

_Number = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]
_Depth = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
_Word = Annotated[str, Meta(min_length=1, max_length=256)]


class Links(Struct, frozen=True):
    """The receipts below one: how many, and the hash of their hashes."""

    count: int
    digest: str


class Receipt(Struct, frozen=True, kw_only=True):
    """What one receipt says; nothing of it is believed before its signature was judged."""

    issuer: str  # the domain that answered
    audience: str  # the domain that asked
    issued: int  # seconds since the epoch
    run: str
    turn: str
    cost: int | None  # micro-units; None where nobody knows
    currency: str
    calls: int  # how many calls it took, itself included
    max_depth: int  # the deepest of them
    tokens: int | None = None  # used by all of them, where a budget counted them
    digest: str | None = None  # of the answer; None where the call failed
    code: str | None = None  # of a call that failed
    parent: str | None = None  # the turn that it was made in, as the caller told it
    below: Links | None = None  # None where no receipt was given for anything below
    keyid: str
    signed: bytes = b""  # the bytes that its signature covers
    signature: bytes = b""


class _Links(Struct):
    n: Annotated[int, Meta(ge=1, le=MAX_INTEGER)]
    dig: _Word


class _Claims(Struct, omit_defaults=True):
    iss: _Word
    aud: _Word
    iat: _Number
    run: _Word
    turn: _Word
    cost: _Word | None
    currency: _Word
    calls: _Number
    max_d: _Depth
    tok: _Number | UnsetType = UNSET
    dig: _Word | UnsetType = UNSET
    code: _Word | UnsetType = UNSET
    parent: _Word | UnsetType = UNSET
    sub: _Links | UnsetType = UNSET


def receipt_hash(text: str) -> bytes:
    """By which one receipt names another."""
    return sha256(text.encode()).digest()


def links_to(hashes: Collection[bytes]) -> Links | None:
    """What names these receipts, in whichever order they were given; None if there are none."""
    found = sorted(set(hashes))
    return Links(len(found), _written(sha256(b"".join(found)).digest())) if found else None


def _written(digest: bytes) -> str:
    return f"sha-256=:{b64encode(digest).decode()}:"


def answer_digest(answer: dict[str, Any]) -> str:
    """The digest of an answer, in the form of Content-Digest."""
    levels = MOST_LEVELS + 1  # in chat a result stands within the answer
    form = jcs.canonical(answer, max_levels=levels, any_integer=True)
    return _written(sha256(form).digest())


def read_receipt(text: str) -> Receipt:
    """Read a receipt; `PeerResponseInvalid` for what is none."""
    try:
        token = jws.read(text, typ=TYPE, max_bytes=MAX_BYTES)
        claims = msgspec.convert(token.payload, _Claims)
        cost = None if claims.cost is None else parse_amount(claims.cost)
    except (jws.JwsInvalid, msgspec.ValidationError, InvalidRequest) as error:
        raise PeerResponseInvalid(f"the receipt cannot be read: {error}") from None
    if (claims.dig is UNSET) == (claims.code is UNSET):
        raise PeerResponseInvalid("the receipt is neither for an answer nor for a failure")
    return Receipt(
        issuer=claims.iss,
        audience=claims.aud,
        issued=claims.iat,
        run=claims.run,
        turn=claims.turn,
        cost=cost,
        currency=claims.currency,
        calls=claims.calls,
        max_depth=claims.max_d,
        tokens=None if claims.tok is UNSET else claims.tok,
        digest=claims.dig or None,
        code=claims.code or None,
        parent=claims.parent or None,
        below=None if claims.sub is UNSET else Links(claims.sub.n, claims.sub.dig),
        keyid=token.keyid,
        signed=token.signed,
        signature=token.signature,
    )


def write_receipt(receipt: Receipt, *, sign: Callable[[bytes], bytes]) -> str:
    """Write a receipt, signed with the key that `receipt.keyid` names."""
    claims = _Claims(
        iss=receipt.issuer,
        aud=receipt.audience,
        iat=receipt.issued,
        run=receipt.run,
        turn=receipt.turn,
        cost=None if receipt.cost is None else format_amount(receipt.cost),
        currency=receipt.currency,
        calls=receipt.calls,
        max_d=receipt.max_depth,
        tok=UNSET if receipt.tokens is None else receipt.tokens,
        dig=receipt.digest or UNSET,
        code=receipt.code or UNSET,
        parent=receipt.parent or UNSET,
        sub=UNSET if receipt.below is None else _Links(receipt.below.count, receipt.below.digest),
    )
    payload: dict[str, Any] = msgspec.to_builtins(claims)
    return jws.write(payload, kid=receipt.keyid, typ=TYPE, sign=sign)


def write_comment(receipt: str) -> bytes:
    """The receipt as a stream carries it; readers that do not know it skip it."""
    return sse.write_comment(f"{RECEIPT_HEADER} {receipt}")


def read_comment(comment: str) -> str | None:
    """The receipt in a comment of a stream, if it holds one."""
    name, _, value = comment.partition(" ")
    return value if name == RECEIPT_HEADER else None
