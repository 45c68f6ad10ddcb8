"""Compact JWS: others can verify what we sign, we can read what they sign, and what is refused."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from hmac import digest
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jws as other
from joserfc.errors import BadSignatureError
from joserfc.jwk import OKPKey

from carnet.wire.crypto import ed25519
from carnet.wire.crypto.jws import MAX_BYTES, Compact, JwsInvalid, read, write

# RFC 9864 would rather have the name Ed25519; the peers whose tokens we read write EdDSA.
pytestmark = pytest.mark.filterwarnings("ignore:EdDSA is deprecated")

SEED = b"\x04" * 32
PUBLIC = ed25519.public_of(SEED)
TYP = "carnet+jwt"
HEADER = {"alg": "EdDSA", "kid": "key-1", "typ": TYP}
CLAIMS = {"iss": "a.example", "exp": 1776147208}

sign = ed25519.signer(SEED)


def part(raw: bytes | dict[str, Any]) -> str:
    if isinstance(raw, dict):
        raw = json.dumps(raw).encode()
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


def token(
    header: bytes | dict[str, Any] = HEADER,
    claims: bytes | dict[str, Any] = CLAIMS,
    make: Callable[[bytes], bytes] = sign,
) -> str:
    """A token that is signed properly, whatever it says."""
    signed = f"{part(header)}.{part(claims)}"
    return f"{signed}.{part(make(signed.encode()))}"


def holds(found: Compact) -> bool:
    return ed25519.holds(PUBLIC, found.signed, found.signature)


def okp() -> OKPKey:
    return OKPKey.import_key(
        {"kty": "OKP", "crv": "Ed25519", "d": part(SEED), "x": part(PUBLIC), "kid": "key-1"}
    )


def registry() -> other.JWSRegistry:
    return other.JWSRegistry(algorithms=["EdDSA", "Ed25519"])


def test_a_token_is_read_as_it_was_written() -> None:
    text = write(CLAIMS, kid="key-1", typ=TYP, sign=sign)
    found = read(text, typ=TYP)
    assert (found.header, found.payload, found.keyid) == (HEADER, CLAIMS, "key-1")
    assert holds(found)
    assert text.startswith("eyJhbGciOiJFZERTQSIsImtpZCI6ImtleS0xIiwidHlwIjoiY2FybmV0K2p3dCJ9.")


def test_a_token_of_the_other_kind_of_agent_is_made_byte_for_byte() -> None:
    claims = {
        "iss": "agent://a.com",
        "sub": "agent://b.com",
        "iat": 1776146908,
        "exp": 1776147208,
        "scope": ["review-code"],
        "maxDepth": 2,
    }
    text = write(claims, kid="key-1", typ="JWT", sign=sign)
    assert text.endswith(
        ".54Eh9P-poIR4F1Mwrm97HSpUXhVFR0O9lBdsY5GQnbRn-zNE4KmJ8XtWJvepVPwdM9OJ73nqV1l4pNiH1vV0AQ"
    )
    assert read(text, typ=None).payload == claims


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "EdDSA"},
        {"alg": "EdDSA", "typ": "JWT"},
        {"alg": "EdDSA", "kid": "a", "typ": 7},
        HEADER,
    ],
)
def test_tokens_of_others_may_leave_out_who_they_are(header: dict[str, Any]) -> None:
    found = read(token(header), typ=None)
    assert found.keyid == header.get("kid", "")
    assert holds(found)


@pytest.mark.parametrize(
    "header",
    [
        {},
        {**HEADER, "alg": "none"},
        {**HEADER, "alg": "nOnE"},
        {**HEADER, "alg": ["EdDSA"]},
        {**HEADER, "alg": None},
        {**HEADER, "alg": "HS256"},
        {**HEADER, "alg": "eddsa"},
        {**HEADER, "alg": "Ed25519"},
        {**HEADER, "alg": "RS256"},
        {"kid": "key-1", "typ": TYP},
        {**HEADER, "crit": ["exp"], "exp": 1},
        {**HEADER, "crit": []},
        {**HEADER, "b64": False, "crit": ["b64"]},
        {**HEADER, "b64": False},
        {**HEADER, "b64": True},
        {**HEADER, "jwk": {"kty": "OKP", "crv": "Ed25519", "x": part(PUBLIC)}},
        {**HEADER, "jku": "https://evil.example/keys"},
        {**HEADER, "x5u": "https://evil.example/cert"},
        {**HEADER, "x5c": ["MIIB"]},
        {**HEADER, "x5t": "AA"},
        {**HEADER, "x5t#S256": "AA"},
        {**HEADER, "cty": "JWT"},
        {**HEADER, "zip": "DEF"},
        {**HEADER, "": 1},
        {**HEADER, "typ": "JWT"},
        {**HEADER, "typ": TYP.upper()},
        {**HEADER, "typ": [TYP]},
        {"alg": "EdDSA", "kid": "key-1"},
        {"alg": "EdDSA", "typ": TYP},
        {**HEADER, "kid": ""},
        {**HEADER, "kid": None},
        {**HEADER, "kid": 1},
        {**HEADER, "kid": ["key-1"]},
        {**HEADER, "kid": "a" * 129},
        {**HEADER, "kid": "../../etc/passwd"},
        {**HEADER, "kid": "/dev/null"},
        {**HEADER, "kid": "x' OR '1'='1"},
        {**HEADER, "kid": "a;b"},
        {**HEADER, "kid": "a\n"},
        {**HEADER, "kid": "é"},
        {**HEADER, "kid": "https://evil.example/key"},
    ],
)
def test_a_header_that_asks_for_anything_else_is_refused(header: dict[str, Any]) -> None:
    with pytest.raises(JwsInvalid):
        read(token(header), typ=TYP)


@pytest.mark.parametrize("name", ["jwk", "jku", "x5u", "x5c", "crit", "b64"])
def test_no_token_brings_its_own_key_or_rules(name: str) -> None:
    with pytest.raises(JwsInvalid):
        read(token({"alg": "EdDSA", name: 1}), typ=None)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"alg":"none","alg":"EdDSA","kid":"key-1","typ":"carnet+jwt"}',
        b'{"alg":"EdDSA","kid":"key-1","typ":"carnet+jwt","kid":"key-1"}',
        b'{"alg":"EdDSA","\\u0061lg":"none","kid":"key-1","typ":"carnet+jwt"}',
        b'["EdDSA"]',
        b'"EdDSA"',
        b"null",
        b"EdDSA",
        b"\xff",
        b'\xef\xbb\xbf{"alg":"EdDSA","kid":"key-1","typ":"carnet+jwt"}',
        b'{"alg":"EdDSA","kid":"key-1","typ":"carnet+jwt"} x',
    ],
)
def test_a_header_that_has_two_readings_or_none_is_refused(raw: bytes) -> None:
    with pytest.raises(JwsInvalid):
        read(token(raw), typ=TYP)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"sub":"a","sub":"b"}',
        b'{"exp":1e400}',
        b'{"exp":NaN}',
        b"[]",
        b"null",
        b'"claims"',
        b"1",
        b" ",
        b"\xff",
        b'{"a":' * 3000 + b"1" + b"}" * 3000,
        b'{"a":"\\ud800"}',
    ],
)
def test_claims_that_are_not_one_json_object_are_refused(raw: bytes) -> None:
    with pytest.raises(JwsInvalid):
        read(token(claims=raw), typ=TYP, max_bytes=100_000)


GOOD = token()
HEAD, BODY, TAIL = GOOD.split(".")


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "...",
        HEAD,
        f"{HEAD}.{BODY}",
        f"{HEAD}.{BODY}.",
        f".{BODY}.{TAIL}",
        f"{HEAD}..{TAIL}",
        f"{GOOD}.{TAIL}",
        f"{GOOD}.",
        f"{GOOD}==",
        f"{HEAD}=.{BODY}.{TAIL}",
        f" {GOOD}",
        f"{GOOD} ",
        f"{GOOD}\n",
        f"{HEAD}.\n{BODY}.{TAIL}",
        f"Bearer {GOOD}",
        GOOD.replace("_", "/").replace("-", "+") + "+",
        f"{HEAD}.{BODY}.{TAIL[:-1]}",
        f"{HEAD}.{BODY}.{TAIL}AAAA",
        f"{HEAD}.{BODY}.{TAIL[:-1]}{'B' if TAIL[-1] == 'A' else chr(ord(TAIL[-1]) + 1)}",
        f"{HEAD}.{BODY}.{part(b'short')}",
        f"{HEAD}.{BODY}.A",
        f"{HEAD}é.{BODY}.{TAIL}",
        json.dumps({"protected": HEAD, "payload": BODY, "signature": TAIL}),
        json.dumps({"payload": BODY, "signatures": [{"protected": HEAD, "signature": TAIL}]}),
        "A" * 2_000_000,
    ],
)
def test_a_token_has_one_spelling(text: str) -> None:
    assert holds(read(GOOD, typ=TYP))
    with pytest.raises(JwsInvalid):
        read(text, typ=TYP)


def test_a_token_may_be_as_long_as_is_asked_for_and_no_longer() -> None:
    text = token(claims={"a": "x" * 3000})
    assert len(text) > MAX_BYTES
    with pytest.raises(JwsInvalid, match=f"longer than {MAX_BYTES} bytes"):
        read(text, typ=TYP)
    read(text, typ=TYP, max_bytes=len(text))
    with pytest.raises(JwsInvalid):
        read(text, typ=TYP, max_bytes=len(text) - 1)


def test_a_refusal_says_nothing_of_what_was_sent() -> None:
    with pytest.raises(JwsInvalid) as refusal:
        read(token({**HEADER, "kid": "secret value"}), typ=TYP)
    assert "secret" not in str(refusal.value)


def test_the_public_key_is_no_shared_secret() -> None:
    def mac(message: bytes) -> bytes:
        return digest(PUBLIC, message, sha256)

    with pytest.raises(JwsInvalid):
        read(token({**HEADER, "alg": "HS256"}, make=mac), typ=TYP)
    with pytest.raises(JwsInvalid):
        read(token(make=mac), typ=TYP)
    assert not holds(read(token(make=lambda message: mac(message) * 2), typ=TYP))


def test_what_we_could_not_read_we_do_not_write() -> None:
    with pytest.raises(JwsInvalid):
        write(CLAIMS, kid="a/b", typ=TYP, sign=sign)


def test_no_single_bit_of_a_token_may_differ() -> None:
    for place in range(len(GOOD)):
        for bit in range(7):
            flipped = GOOD[:place] + chr(ord(GOOD[place]) ^ 1 << bit) + GOOD[place + 1 :]
            try:
                found = read(flipped, typ=TYP)
            except JwsInvalid:
                continue
            assert not holds(found)


claims = st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6),
    st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.lists(st.booleans(), max_size=3)
    | st.none(),
    max_size=5,
)
kids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._:#=+~@-]{0,20}", fullmatch=True)


@given(claims, kids)
def test_another_implementation_reads_what_we_write_and_we_read_what_it_writes(
    payload: dict[str, Any], kid: str
) -> None:
    text = write(payload, kid=kid, typ=TYP, sign=sign)
    theirs = other.deserialize_compact(text, okp(), registry=registry())
    assert json.loads(theirs.payload) == payload
    assert theirs.protected == {"alg": "EdDSA", "kid": kid, "typ": TYP}
    made = other.serialize_compact(
        {"alg": "EdDSA", "kid": kid, "typ": TYP},
        json.dumps(payload, ensure_ascii=False),
        okp(),
        registry=registry(),
    )
    found = read(made, typ=TYP)
    assert (found.payload, found.keyid) == (payload, kid)
    assert holds(found)


@given(claims, st.integers(0, 511))
def test_both_refuse_a_signature_that_was_touched(payload: dict[str, Any], bit: int) -> None:
    head, body, tail = write(payload, kid="key-1", typ=TYP, sign=sign).split(".")
    raw = int.from_bytes(urlsafe_b64decode(tail + "=="), "big") ^ 1 << bit
    text = f"{head}.{body}.{part(raw.to_bytes(64, 'big'))}"
    assert not holds(read(text, typ=TYP))
    with pytest.raises(BadSignatureError):
        other.deserialize_compact(text, okp(), registry=registry())


@given(st.text("eyJhbGciOiJFZERTQSJ9._-= é", max_size=60) | st.text(max_size=30))
def test_whatever_the_text_it_is_a_token_or_refused(text: str) -> None:
    with pytest.raises(JwsInvalid):
        read(text, typ=None)
