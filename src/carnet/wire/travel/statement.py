"""A statement of what two organisations have served one another, signed by one of them.

Law 1. `read_statement(write_statement(statement))` says the same again, and what its signature
       covers.
Law 2. Amounts are decimal texts, as everywhere outside; moments are microseconds.
Law 3. Nothing here is believed. The signature is judged by whoever knows the keys of the issuer.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from carnet.core.money.amount import format_amount, parse_amount
from carnet.core.money.statement import Statement, StatementLine
from carnet.core.people.address import check_domain
from carnet.errors import AddressInvalid, InvalidRequest, StatementInvalid
from carnet.wire.crypto import jws
from carnet.wire.grammar import json

TYPE: Final = "carnet-statement+jwt"
MOST_LINES: Final = 2000  # of each kind, in one statement
MAX_BYTES: Final = 4 * 1024 * 1024

_Number = Annotated[int, Meta(ge=0, le=json.MAX_INTEGER)]
_Word = Annotated[str, Meta(min_length=1, max_length=512)]


class _Line(Struct, array_like=True):
    run: _Word
    turn: _Word
    cost: Annotated[str, Meta(max_length=32)] | None
    payer: _Word | None
    at: _Number


_Lines = Annotated[list[_Line], Meta(max_length=MOST_LINES)]


class _Claims(Struct):
    iss: str
    aud: str
    iat: _Number
    since: _Number
    until: _Number
    currency: Annotated[str, Meta(min_length=1, max_length=16)]
    served: _Lines
    made: _Lines


class SignedStatement(Struct, frozen=True, kw_only=True):
    """What was read and not verified."""

    statement: Statement
    issued: int  # seconds since the epoch
    keyid: str
    signed: bytes  # what its signature covers
    signature: bytes


def write_statement(
    statement: Statement, *, issued: int, kid: str, sign: Callable[[bytes], bytes]
) -> str:
    """The statement as a compact JWS; `issued` in seconds."""
    claims = _Claims(
        iss=statement.issuer,
        aud=statement.audience,
        iat=issued,
        since=statement.since,
        until=statement.until,
        currency=statement.currency,
        served=_written(statement.served),
        made=_written(statement.made),
    )
    payload: dict[str, Any] = msgspec.to_builtins(claims)
    return jws.write(payload, kid=kid, typ=TYPE, sign=sign)


def _written(lines: Sequence[StatementLine]) -> list[_Line]:
    return [
        _Line(
            line.run,
            line.turn,
            None if line.cost is None else format_amount(line.cost),
            line.payer,
            line.at,
        )
        for line in lines[:MOST_LINES]
    ]


def read_statement(text: str) -> SignedStatement:
    """Read one; `StatementInvalid` says what is wrong with it."""
    try:
        token = jws.read(text, typ=TYPE, max_bytes=MAX_BYTES)
        claims = msgspec.convert(token.payload, _Claims)
        statement = Statement(
            issuer=check_domain(claims.iss),
            audience=check_domain(claims.aud),
            since=claims.since,
            until=claims.until,
            currency=claims.currency,
            served=_read(claims.served),
            made=_read(claims.made),
        )
    except jws.JwsInvalid as error:
        raise StatementInvalid(reason=str(error)) from None
    except (msgspec.ValidationError, AddressInvalid, InvalidRequest):  # names what a peer sent
        raise StatementInvalid(reason="it lacks a claim or has one of a wrong kind") from None
    return SignedStatement(
        statement=statement,
        issued=claims.iat,
        keyid=token.keyid,
        signed=token.signed,
        signature=token.signature,
    )


def _read(lines: Sequence[_Line]) -> tuple[StatementLine, ...]:
    return tuple(
        [
            StatementLine(
                line.run,
                line.turn,
                None if line.cost is None else parse_amount(line.cost),
                line.payer,
                line.at,
            )
            for line in lines
        ]
    )
