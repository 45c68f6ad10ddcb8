"""Assertions of OAuth federation, as they are written and read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carnet.wire.crypto import ed25519, jws
from carnet.wire.identity import assertion
from carnet.wire.identity.assertion import Assertion, AssertionInvalid

SEED = bytes(range(32))
AT = "https://x.example/oauth/token"
NOW = 1_700_000_000
MADE = Assertion(
    typ=assertion.SUBJECT,
    issuer="did:web:x.example",
    subject="slack:T1/U2",
    issued=NOW,
    expires=NOW + 300,
    id="n-1",
    keyid="did:web:x.example#k1",
    method="urn:m:1",
)


def test_what_is_written_is_read_and_signed() -> None:
    for made in (MADE, replace(MADE, typ=assertion.CONTINUATION, method=None, task="t-1")):
        text = assertion.write(made, AT, sign=ed25519.signer(SEED))
        found, audience = assertion.read(text, made.typ)
        assert replace(found, signed=b"", signature=b"") == made
        assert ed25519.holds(ed25519.public_of(SEED), found.signed, found.signature)
        assertion.check(found, audience, AT, NOW * 1_000_000)


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"aud": None}, "missing-claim"),
        ({"iat": True}, "malformed"),
        ({"sub": "a b"}, "malformed"),
        ({"sub": 7}, "malformed"),
        ({"mentionable_method": 7}, "invalid-method"),
    ],
)
def test_what_is_not_in_its_form_has_a_word(claims: dict[str, object], reason: str) -> None:
    usual = {
        "iss": "did:web:x.example",
        "sub": "s",
        "aud": AT,
        "iat": NOW,
        "exp": NOW + 1,
        "jti": "j",
        "mentionable_method": "urn:m:1",
    }
    given_claims = {name: each for name, each in (usual | claims).items() if each is not None}
    text = jws.write(given_claims, kid="k1", typ=MADE.typ, sign=ed25519.signer(SEED))
    with pytest.raises(AssertionInvalid) as raised:
        assertion.read(text, MADE.typ)
    assert raised.value.reason == reason


def test_one_that_names_no_key_is_refused() -> None:
    signed = "eyJhbGciOiJFZERTQSIsInR5cCI6IngifQ.e30"
    with pytest.raises(AssertionInvalid, match="kid-not-authorized"):
        assertion.read(f"{signed}.{'A' * 86}", "x")


@given(st.text())
def test_whatever_the_text_it_is_an_assertion_or_refused(text: str) -> None:
    with pytest.raises(AssertionInvalid):
        assertion.read(text, assertion.SUBJECT)
