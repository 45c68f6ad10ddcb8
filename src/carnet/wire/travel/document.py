"""The travel document itself: the `carnet` header, a compact JWS of at most 4 KiB.

Law 1. `read(write(document))` says the same again.
Law 2. Malformed in any claim is malformed; what is not a document raises `TravelDocumentInvalid`.
Law 3. A claim that we do not know is passed over: a later version may say more, never less.
Law 4. Nothing here is believed. The signature is judged by whoever knows the sender's key.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from carnet.core.chain.carnet import Mark
from carnet.core.people.address import check_domain, parse_handle
from carnet.core.people.identity import Account
from carnet.core.people.proof import Document, Spending
from carnet.errors import AddressInvalid, TravelDocumentInvalid
from carnet.wire.crypto import budget_claim, digests, jws
from carnet.wire.grammar.headers import MAX_COUNT, Headers
from carnet.wire.grammar.json import MAX_INTEGER
from carnet.wire.stamps.tangle import MAX_RUN_BYTES, MAX_TURN_BYTES

HEADER: Final = "carnet"
TYPE: Final = "carnet+jwt"
MAX_BYTES: Final = 4096
MOST_PATH: Final = 32
MOST_SECONDS: Final = 300  # between `iat` and `exp`

_Number = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]
_Depth = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
_Word = Annotated[str, Meta(min_length=1, max_length=256)]
_Run = Annotated[str, Meta(min_length=1, max_length=MAX_RUN_BYTES)]
_Turn = Annotated[str, Meta(min_length=1, max_length=MAX_TURN_BYTES)]
_Words = Annotated[list[_Word], Meta(max_length=MOST_PATH)]


class _Payer(Struct):
    issuer: _Word
    id: _Word


class _Claims(Struct, omit_defaults=True):
    iss: str
    aud: str  # one string; a list would be for several
    iat: _Number
    exp: _Number
    run: _Run
    turn: _Turn
    d: _Depth
    l: _Depth  # noqa: E741  the name of the claim
    dig: _Word
    parent: _Turn | UnsetType = UNSET
    path: _Words = []
    bud: budget_claim.SpendingClaim | UnsetType = UNSET
    dl: _Number | UnsetType = UNSET
    pay: _Payer | UnsetType = UNSET
    obo: _Words = []


def read(value: str) -> Document:
    """Read the header; `TravelDocumentInvalid` says what is wrong with it."""
    try:
        token = jws.read(value, typ=TYPE, max_bytes=MAX_BYTES)
        claims = msgspec.convert(token.payload, _Claims)
    except jws.JwsInvalid as error:
        raise TravelDocumentInvalid(str(error)) from None
    except msgspec.ValidationError:  # its text names what a peer sent
        raise TravelDocumentInvalid("lacks a claim or has one of a wrong kind") from None
    _check(claims)
    return Document(
        issuer=claims.iss,
        audience=claims.aud,
        issued=claims.iat,
        expires=claims.exp,
        run=claims.run,
        turn=claims.turn,
        parent_turn=claims.parent or None,
        depth=claims.d,
        last_depth=claims.l,
        path=tuple(claims.path),
        budget=_read_budget(claims.bud),
        deadline_ms=None if claims.dl is UNSET else claims.dl,
        payer=None if claims.pay is UNSET else Account(claims.pay.issuer, claims.pay.id),
        on_behalf_of=tuple(claims.obo),
        digest=claims.dig,
        keyid=token.keyid,
        signed=token.signed,
        signature=token.signature,
    )


def _check(claims: _Claims) -> None:
    if not 0 <= claims.exp - claims.iat <= MOST_SECONDS:
        raise TravelDocumentInvalid(f"is meant to hold longer than {MOST_SECONDS} seconds")
    try:
        check_domain(claims.iss)
        check_domain(claims.aud)
        canonical = [str(parse_handle(address)) for address in claims.path]
    except AddressInvalid:
        raise TravelDocumentInvalid("names a domain or an agent that is none") from None
    if canonical != claims.path:
        raise TravelDocumentInvalid("names an agent in another spelling than its own")
    words = [claims.run, claims.turn, claims.parent or claims.turn, *claims.obo]
    if claims.pay is not UNSET:
        words += [claims.pay.issuer, claims.pay.id]
    if not all(word.isprintable() and word == word.strip(" ") for word in words):
        raise TravelDocumentInvalid("holds a character that is not visible")
    if not all(word.isascii() for word in words[:3]):  # they stand in headers as well
        raise TravelDocumentInvalid("names a run or a turn in other than ASCII")


def _read_budget(claim: budget_claim.SpendingClaim | UnsetType) -> Spending | None:
    try:
        return budget_claim.read_spending(claim)
    except budget_claim.SpendingInvalid as error:
        raise TravelDocumentInvalid(str(error)) from None


def read_beside(headers: Headers, body: bytes | None) -> Document | None:
    """The document that came with a body, made for that body if there is one; None for none."""
    value = headers.get(HEADER)
    if value is None:
        return None
    document = read(value)
    if body is not None:
        digests.check(document.digest, body)
    return document


def mark(document: Document, *, last_depth: int) -> Mark:
    """What a document says about the chain. `last_depth` is ours: a document only lowers it."""
    return Mark(
        stamp="travel",
        depth=document.depth,
        last_depth=min(document.last_depth, last_depth),
        is_usual=document.last_depth > last_depth,
        own_depth=document.last_depth if document.last_depth > last_depth else None,
        run=document.run,
        turn=document.turn,
        parent_turn=document.parent_turn,
    )


def write(document: Document, *, sign: Callable[[bytes], bytes]) -> str:
    """Write the header. `sign` is the key that `document.keyid` names; what it signed is new."""
    payer = document.payer
    claims = _Claims(
        iss=document.issuer,
        aud=document.audience,
        iat=document.issued,
        exp=document.expires,
        run=document.run,
        turn=document.turn,
        parent=budget_claim.given(document.parent_turn),
        d=document.depth,
        l=document.last_depth,
        path=list(document.path),
        bud=budget_claim.write_spending(document.budget),
        dl=budget_claim.given(document.deadline_ms),
        pay=UNSET if payer is None else _Payer(payer.issuer, payer.id),
        obo=list(document.on_behalf_of),
        dig=document.digest,
    )
    payload: dict[str, Any] = msgspec.to_builtins(claims)
    value = jws.write(payload, kid=document.keyid, typ=TYPE, sign=sign)
    if len(value) > MAX_BYTES:
        raise TravelDocumentInvalid(f"would be longer than {MAX_BYTES} bytes")
    return value
