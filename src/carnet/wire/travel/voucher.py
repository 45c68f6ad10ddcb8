"""A voucher as it travels: `voucher_` and a compact JWS, signed with a key of its issuer.

Law 1. `read_voucher(write_voucher(voucher))` says the same again, and what its signature covers.
Law 2. Amounts are decimal texts, as everywhere outside; moments are seconds.
Law 3. Nothing here is believed. The signature is judged by whoever knows the keys of the issuer.
Law 4. It is a bearer's: its text is a secret until it was used, and nothing repeats it.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from carnet.core.money.amount import format_amount, parse_amount
from carnet.core.people.address import check_domain
from carnet.core.people.identity import Secret
from carnet.core.voucher import Voucher
from carnet.errors import AddressInvalid, InvalidRequest, PaymentRefused
from carnet.wire.crypto import jws
from carnet.wire.grammar.json import MAX_INTEGER

PREFIX: Final = "voucher_"
TYPE: Final = "carnet-voucher+jwt"
MAX_BYTES: Final = 2048

_Number = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]
_Id = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_-]{16,64}\Z")]
_Account = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9@._~+-]{1,128}\Z")]
_Holder = Annotated[str, Meta(pattern=r"\A[!-~]{1,256}\Z")]


class _Claims(Struct, omit_defaults=True, forbid_unknown_fields=True, kw_only=True):
    iss: str
    aud: str
    sub: _Account
    jti: _Id
    iat: _Number
    exp: _Number
    amount: Annotated[str, Meta(max_length=32)]
    currency: Annotated[str, Meta(min_length=1, max_length=16)]
    holder: _Holder | UnsetType = UNSET


def write_voucher(voucher: Voucher, *, kid: str, sign: Callable[[bytes], bytes]) -> Secret:
    """The voucher, signed; refused where a reader would refuse its form."""
    claims = _Claims(
        iss=voucher.issuer,
        aud=voucher.audience,
        sub=voucher.account,
        jti=voucher.id,
        iat=voucher.issued,
        exp=voucher.expires,
        amount=format_amount(voucher.amount),
        currency=voucher.currency,
        holder=UNSET if voucher.holder is None else voucher.holder,
    )
    payload: dict[str, Any] = msgspec.to_builtins(claims)
    text = Secret(PREFIX + jws.write(payload, kid=kid, typ=TYPE, sign=sign))
    read_voucher(text)
    return text


def read_voucher(text: Secret) -> Voucher:
    """Read one; `PaymentRefused` where it cannot be read."""
    try:
        given = text.reveal()
        if not given.startswith(PREFIX):
            raise PaymentRefused(reason="unreadable")
        token = jws.read(given.removeprefix(PREFIX), typ=TYPE, max_bytes=MAX_BYTES)
        claims = msgspec.convert(token.payload, _Claims)
        amount = parse_amount(claims.amount)
        check_domain(claims.iss)
        check_domain(claims.aud)
    except (jws.JwsInvalid, msgspec.ValidationError, AddressInvalid, InvalidRequest):
        raise PaymentRefused(reason="unreadable") from None  # what it says is repeated nowhere
    return Voucher(
        issuer=claims.iss,
        id=claims.jti,
        audience=claims.aud,
        account=claims.sub,
        amount=amount,
        currency=claims.currency,
        issued=claims.iat,
        expires=claims.exp,
        holder=None if claims.holder is UNSET else claims.holder,
        keyid=token.keyid,
        signed=token.signed,
        signature=token.signature,
    )
