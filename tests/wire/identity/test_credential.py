"""The credential of a caller, as it is written and read."""

import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.errors import CredentialInvalid
from carnet.wire.crypto import ed25519
from carnet.wire.identity.credential import (
    is_token,
    named,
    peek_issuer,
    read_credential,
    write_credential,
)

SEED = bytes(range(32))
SIGN = ed25519.signer(SEED)
CLAIMS: dict[str, Any] = {
    "iss": "globex.example",
    "sub": "@critic@globex.example",
    "aud": "acme.example",
    "iat": 1000,
    "exp": 1300,
    "jti": "number-1",
}


def encoded(value: object) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def written(**claims: Any) -> str:
    """A token with other claims; those that are None are left out."""
    head = encoded({"alg": "EdDSA", "kid": "k1", "typ": "JWT"})
    body = encoded({name: value for name, value in (CLAIMS | claims).items() if value is not None})
    text = f"{head}.{body}"
    return f"{text}.{urlsafe_b64encode(SIGN(text.encode())).rstrip(b'=').decode()}"


@given(st.integers(1, 2**40), st.integers(1, 600), st.text("abcdef0123456789", min_size=8))
def test_what_is_written_is_read(issued: int, seconds: int, nonce: str) -> None:
    token = write_credential(
        issuer="globex.example",
        subject="@critic@globex.example",
        audience="@echo@acme.example",
        issued=issued % 2**32 + 1,
        nonce=nonce[:64],
        kid="k1",
        sign=SIGN,
        seconds=seconds,
    )
    assert is_token(token)
    assert peek_issuer(token) == "globex.example"
    found = read_credential(token)
    assert (found.sender, found.subject) == ("agent://globex.example", "@critic@globex.example")
    assert (found.keyid, found.nonce, found.audiences) == (
        "k1",
        nonce[:64],
        ("@echo@acme.example",),
    )
    assert found.at == (issued % 2**32 + 1) * 1_000_000
    assert found.expires == issued % 2**32 + 1 + seconds + 60
    assert ed25519.holds(ed25519.public_of(SEED), found.bases[0], found.signature)


def test_the_organisation_itself_may_speak() -> None:
    for name in ("globex.example", "agent://globex.example"):
        found = read_credential(written(iss=name, sub="globex.example"))
        assert (found.sender, found.subject) == ("agent://globex.example", None)
        assert found.principal == "agent://globex.example"
    assert read_credential(written()).principal == "agent://globex.example#@critic@globex.example"
    assert named("acct:x@b.example") == ("agent://b.example", "@x@b.example")


def test_a_later_begin_counts() -> None:
    assert read_credential(written(nbf=1100)).at == 1_100_000_000
    assert read_credential(written(nbf=900)).at == 1_000_000_000


@pytest.mark.parametrize(
    "sub",
    ["@boss@acme.example", "acme.example", "agent://critic.globex.example", "@x@y.globex.example"],
)
def test_nobody_vouches_for_a_name_of_somebody_elses(sub: str) -> None:
    with pytest.raises(CredentialInvalid):
        read_credential(written(sub=sub))


WRONG: list[dict[str, Any]] = [
    *({name: None} for name in CLAIMS),
    *({"iss": value} for value in (7, "", "no domain", "a\n.example", "x" * 600)),
    *({"aud": value} for value in ([7], ["x"] * 9, "")),
    {"aud": []},
    {"aud": {}},
    *({"iat": value} for value in (True, 1000.0, "1000", -1, 10**15)),
    *({"exp": value} for value in (1000, 999, 1601, "1300")),
    *({"jti": value} for value in ("short", 12345678, "x" * 129, "with a space")),
    {"nbf": "1000"},
]


@pytest.mark.parametrize("claims", WRONG, ids=str)
def test_what_is_not_right_is_refused(claims: dict[str, Any]) -> None:
    with pytest.raises(CredentialInvalid):
        read_credential(written(**claims))


@given(st.text(max_size=60) | st.text("eyJA.-_", max_size=60))
def test_whatever_the_text_it_is_a_proof_or_refused(text: str) -> None:
    peek_issuer(text)
    if is_token(text):
        with pytest.raises(CredentialInvalid):
            read_credential(text)
    assert peek_issuer(written(iss=7)) is None
