"""Vouchers as they travel."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.people.identity import Secret
from carnet.core.voucher import Voucher
from carnet.errors import PaymentRefused
from carnet.wire.crypto import jws
from carnet.wire.travel.voucher import PREFIX, TYPE, read_voucher, write_voucher

SIGNATURE = bytes(64)
CLAIMS = {
    "iss": "acme.example",
    "aud": "globex.example",
    "sub": "alice",
    "jti": "0123456789abcdef",
    "iat": 1,
    "exp": 2,
    "amount": "0.5",
    "currency": "credits",
}
names = st.text("abcXYZ019@._~+-", min_size=1, max_size=40)
holders = st.none() | st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1)
seconds = st.integers(0, 2**50)


def written(voucher: Voucher) -> Secret:
    return write_voucher(voucher, kid="k1", sign=lambda _: SIGNATURE)


def text_of(claims: dict[str, object], typ: str = TYPE) -> Secret:
    return Secret(PREFIX + jws.write(claims, kid="k1", typ=typ, sign=lambda _: SIGNATURE))


@given(names, st.integers(0, 10**15), seconds, seconds, holders)
def test_what_is_written_is_read_as_it_was(
    account: str, amount: int, issued: int, expires: int, holder: str | None
) -> None:
    voucher = Voucher(
        issuer="acme.example",
        id="0123456789abcdef",
        audience="globex.example",
        account=account,
        amount=amount,
        currency="credits",
        issued=issued,
        expires=expires,
        holder=holder,
        keyid="k1",
        signature=SIGNATURE,
    )
    text = written(voucher)
    found = read_voucher(text)
    signed = text.reveal().removeprefix(PREFIX).rpartition(".")[0].encode()
    assert found.signed == signed
    assert found == Voucher(
        **{**{n: getattr(voucher, n) for n in voucher.__struct_fields__}, "signed": signed}
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"iss": "no domain"},
        {"aud": "agent://globex.example"},
        {"sub": "a b"},
        {"jti": "short"},
        {"iat": -1},
        {"exp": "2"},
        {"amount": "0.5e3"},
        {"amount": "-1"},
        {"currency": ""},
        {"holder": "a b"},
        {"more": 1},
    ],
)
def test_what_is_in_no_form_cannot_be_read_and_is_not_repeated(changes: dict[str, object]) -> None:
    assert read_voucher(text_of(CLAIMS)).account == "alice"
    with pytest.raises(PaymentRefused) as refused:
        read_voucher(text_of(CLAIMS | changes))
    assert refused.value.facts["reason"] == "unreadable"
    assert "no domain" not in str(refused.value)


@pytest.mark.parametrize("missing", CLAIMS)
def test_every_claim_is_needed(missing: str) -> None:
    with pytest.raises(PaymentRefused):
        read_voucher(text_of({name: value for name, value in CLAIMS.items() if name != missing}))


def test_a_token_of_another_kind_is_no_voucher() -> None:
    for other in (
        text_of(CLAIMS, typ="carnet-statement+jwt"),
        Secret(text_of(CLAIMS).reveal().removeprefix(PREFIX)),
        Secret(PREFIX),
        Secret(PREFIX + "a.b.c"),
    ):
        with pytest.raises(PaymentRefused):
            read_voucher(other)
