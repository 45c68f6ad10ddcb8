"""Access tokens that are JWTs, and the keys of their issuers."""

import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from hypothesis import given
from hypothesis import strategies as st

from carnet.wire.crypto import ed25519, rsa
from carnet.wire.identity import access_token
from carnet.wire.identity.access_token import AccessInvalid
from tests.support.signing.weak_keys import SMALL_ORDER

SEED = bytes(range(32))
RSA = generate_private_key(public_exponent=65537, key_size=2048)
CLAIMS: dict[str, Any] = {"iss": "https://i.example", "sub": "u", "aud": "us", "exp": 2000}


def b64(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def written(header: dict[str, Any] | None = None, **claims: Any) -> str:
    head = {"alg": "EdDSA", "kid": "k1", "typ": "at+jwt"} | (header or {})
    body = {name: value for name, value in (CLAIMS | claims).items() if value is not None}
    text = f"{b64(json.dumps(head).encode())}.{b64(json.dumps(body).encode())}"
    return f"{text}.{b64(ed25519.sign(SEED, text.encode()))}"


def test_a_token_is_read_and_holds_under_its_key() -> None:
    found = access_token.read(written(scope="a b", client_id="c", nbf=5, scp=None))
    assert found.holds(ed25519.public_of(SEED))
    assert not found.holds(ed25519.public_of(bytes(32)))
    assert (found.claims.scopes, found.claims.client) == (frozenset({"a", "b"}), "c")
    listed = access_token.read(written(scp=["a"], aud=["x", "us"], sub=None, client_id="machine"))
    assert (listed.claims.subject, listed.claims.scopes) == ("machine", frozenset({"a"}))


def test_rsa_holds_for_what_was_signed_and_nothing_else() -> None:
    numbers = RSA.public_key().public_numbers()
    key = rsa.public_key(numbers.n.to_bytes(256), numbers.e.to_bytes(3))
    signature = RSA.sign(b"text", padding.PKCS1v15(), hashes.SHA256())
    assert rsa.holds(key, b"text", signature)
    assert not rsa.holds(key, b"other", signature)
    assert not rsa.holds(key, b"text", signature[:-1])
    assert not rsa.holds(key, b"text", b"\xff" * 256)
    assert not rsa.holds(key, b"text", bytes([signature[0] ^ 1]) + signature[1:])


def keys(*members: Any) -> bytes:
    return json.dumps({"keys": list(members)}).encode()


OKP = {"kty": "OKP", "crv": "Ed25519", "kid": "k1", "x": b64(ed25519.public_of(SEED))}
NUMBERS = RSA.public_key().public_numbers()
RSA_KEY = {"kty": "RSA", "kid": "k1", "n": b64(NUMBERS.n.to_bytes(256)), "e": "AQAB"}


def test_the_keys_of_an_issuer_are_found_by_algorithm_and_name() -> None:
    found = access_token.read_keys(
        keys(OKP, RSA_KEY, {"kty": "EC", "kid": "e"}, 7, OKP | {"use": "enc"})
    )
    assert set(found) == {("EdDSA", "k1"), ("RS256", "k1")}


@pytest.mark.parametrize(
    "page",
    [
        b"[]",
        b"{}",
        keys(*[{}] * 65),
        keys(OKP, OKP),
        keys(OKP | {"x": b64(bytes.fromhex(SMALL_ORDER[0]))}),
        keys(OKP | {"x": "AAA="}),
        keys(OKP | {"x": 7}),
        keys(RSA_KEY | {"e": "Aw"}),
        keys(RSA_KEY | {"n": "AQAB"}),
        keys(RSA_KEY | {"n": "é"}),
        keys(RSA_KEY | {"n": "AB"}),
    ],
)
def test_a_weak_key_or_a_page_that_is_none_is_worthless(page: bytes) -> None:
    with pytest.raises(AccessInvalid):
        access_token.read_keys(page)


@pytest.mark.parametrize(
    "token",
    [
        "",
        "a.b",
        "x" * 9000,
        written({"alg": "none"}),
        written({"alg": "HS256"}),
        written({"jku": "https://x"}),
        written({"crit": []}),
        written({"kid": None}),
        written({"typ": "logout+jwt"}),
        written(sub=None),
        written(sub="a b"),
        written(exp=None),
        written(exp=True),
        written(aud=7),
        written(aud=[7]),
        written(scope=7),
        "bm8.bm8.bm8",
    ],
)
def test_what_is_no_access_token_is_refused(token: str) -> None:
    with pytest.raises(AccessInvalid):
        access_token.read(token)


def test_audience_and_times_are_judged_with_a_minute_between_the_clocks() -> None:
    claims = access_token.read(written(nbf=1000)).claims
    access_token.check_claims(claims, frozenset({"us"}), 2_059_000_000)
    access_token.check_claims(claims, frozenset({"us"}), 940_000_000)
    for ours, now in (
        (frozenset({"them"}), 1500),
        (frozenset({"us"}), 2060),
        (frozenset({"us"}), 939),
    ):
        with pytest.raises(AccessInvalid):
            access_token.check_claims(claims, ours, now * 1_000_000)


@given(st.text(max_size=80))
def test_whatever_the_text_it_is_read_or_refused(text: str) -> None:
    with pytest.raises(AccessInvalid):
        access_token.read(text)
