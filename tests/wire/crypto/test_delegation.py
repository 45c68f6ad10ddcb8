"""Delegation tokens: read strictly, written as the SDKs write them, and understood by others."""

import base64
from contextlib import suppress
from typing import Any

import jwt
import pytest
import samvad.delegation as samvad
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jws as other
from joserfc.jwk import OKPKey
from msgspec.structs import replace
from samvad.errors import SamvadError

from carnet.core.people.delegation import Delegation
from carnet.core.people.proof import Spending
from carnet.errors import DelegationExceeded, DelegationInvalid
from carnet.wire.crypto import ed25519
from carnet.wire.crypto.delegation import MAX_BYTES, read, write
from tests.support.signing.delegations import ours, sdk
from tests.support.signing.forged import UNREADABLE, UNTIMELY, Forgery, Grant
from tests.support.signing.signed import Sender, now, unpadded

# RFC 9864 would rather have the name Ed25519; the SDKs write EdDSA.
pytestmark = pytest.mark.filterwarnings("ignore:EdDSA is deprecated")

SEED = b"\x04" * 32
PUBLIC = ed25519.public_of(SEED)
SEED_TEXT, PUBLIC_TEXT = (base64.b64encode(raw).decode() for raw in (SEED, PUBLIC))
NOW = 1_776_146_908
A, B, C = "agent://a.com", "agent://b.com", "agent://c.com"

sign = ed25519.signer(SEED)

ISSUER = Sender(A, "key-1", SEED)
GRANT = Grant(ISSUER, B, C)


def unsigned(delegation: Delegation) -> Delegation:
    """What a token says, without how it says it."""
    return replace(delegation, text="", signed=b"", signature=b"")


def granted(**more: Any) -> Delegation:
    whole: dict[str, Any] = {
        "issuer": A,
        "subject": B,
        "scope": ("review-code",),
        "hops": 2,
        "issued": NOW,
        "expires": NOW + 300,
        "keyid": "key-1",
        **more,
    }
    return Delegation(**whole)


def own(**more: Any) -> Delegation:
    return granted(**{"audience": C, "token_id": "jti-1", "is_ours": True, **more})


# ---------------------------------------------------------------------------------- written


def test_a_token_for_the_sdks_is_theirs_byte_by_byte() -> None:
    """The fact delegation-01."""
    assert write(granted(), sign=sign) == (
        "eyJhbGciOiJFZERTQSIsImtpZCI6ImtleS0xIiwidHlwIjoiSldUIn0."
        "eyJpc3MiOiJhZ2VudDovL2EuY29tIiwic3ViIjoiYWdlbnQ6Ly9iLmNvbSIsImlhdCI6MTc3NjE0NjkwOCwi"
        "ZXhwIjoxNzc2MTQ3MjA4LCJzY29wZSI6WyJyZXZpZXctY29kZSJdLCJtYXhEZXB0aCI6Mn0."
        "54Eh9P-poIR4F1Mwrm97HSpUXhVFR0O9lBdsY5GQnbRn-zNE4KmJ8XtWJvepVPwdM9OJ73nqV1l4pNiH1vV0AQ"
    )


WORD = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=20)
BOUND = st.none() | st.integers(0, 2**31)
BUDGETS = st.none() | st.builds(
    Spending, money=st.integers(0, 10**9), currency=st.just("credits"), calls=BOUND, tokens=BOUND
)


@given(
    scope=st.lists(WORD, max_size=5, unique=True).map(tuple),
    hops=st.integers(-5, 2**31),
    once=st.booleans(),
    budget=BUDGETS,
    actors=st.lists(WORD, max_size=3).map(tuple),
    not_before=st.sampled_from([0, NOW]),
    is_ours=st.booleans(),
)
def test_what_is_written_is_read_again_and_its_signature_holds(**more: Any) -> None:
    given_one = own(**more)
    found = read(write(given_one, sign=sign))
    assert unsigned(found) == given_one
    assert ed25519.holds(PUBLIC, found.signed, found.signature)


def test_a_parent_goes_along_and_is_read_with_its_child() -> None:
    first = read(write(own(), sign=sign))
    second = read(write(own(issuer=B, hops=1, token_id="jti-2", parent=first), sign=sign))
    assert second.chain() == (first, second)
    assert second.parent == first


@pytest.mark.parametrize(
    "wrong",
    [
        {"keyid": ""},
        {"keyid": "a/b"},
        {"issuer": "a.com"},
        {"token_id": None},
        {"token_id": "jti\x00"},
        {"token_id": "j" * 129},
        {"scope": (" x",)},
        {"expires": NOW + 86_401},
    ],
)
def test_what_nobody_would_take_is_not_written(wrong: dict[str, Any]) -> None:
    with pytest.raises(DelegationInvalid):
        write(own(**wrong), sign=sign)


def test_a_chain_that_has_grown_too_long_is_not_written() -> None:
    link = read(write(own(scope=tuple(f"skill-{n:02}" for n in range(60))), sign=sign))
    while len(link.text) < MAX_BYTES * 3 // 4:
        link = read(write(replace(link, issuer=B, parent=link, text=""), sign=sign))
    with pytest.raises(DelegationExceeded) as refused:
        write(replace(link, issuer=B, parent=link, text=""), sign=sign)
    assert refused.value.facts["reason"] == "it has no room for another link"


# ---------------------------------------------------------------------------------- others


def test_the_real_sdk_verifies_what_we_write_for_it() -> None:
    moment = int(now())
    text = write(granted(issued=moment, expires=moment + 300, actors=(C,)), sign=sign)
    claims = samvad.verify_token(text, issuer_public_key_b64=PUBLIC_TEXT)
    assert claims == {
        "iss": A,
        "sub": B,
        "iat": moment,
        "exp": moment + 300,
        "scope": ["review-code"],
        "maxDepth": 2,
        "act": {"sub": C},
    }


def test_tokens_of_the_real_sdk_are_read() -> None:
    first = samvad.issue_token(
        iss=A, sub=B, scope=["s", "t"], max_depth=3, private_key_b64=SEED_TEXT, kid="k"
    )
    found = read(first)
    assert (found.issuer, found.subject, found.scope, found.hops) == (A, B, ("s", "t"), 3)
    assert found.expires - found.issued == 900
    assert ed25519.holds(PUBLIC, found.signed, found.signature)
    keys = {"private_key_b64": SEED_TEXT, "issuer_public_key_b64": PUBLIC_TEXT}
    chained = read(samvad.chain_token(first, new_sub=C, new_iss=B, kid="k", **keys))
    assert (chained.issuer, chained.subject, chained.hops, chained.actors) == (B, C, 2, (B,))


@pytest.mark.parametrize(
    ("scope", "skills"),
    [("chat", ("chat",)), ("chat other", ("chat", "other")), ("", ()), ([], ()), (["*"], ("*",))],
)
def test_a_scope_is_a_list_or_words(scope: object, skills: tuple[str, ...]) -> None:
    """R13."""
    assert read(sdk(ISSUER, B, scope=scope)).scope == skills


def test_a_token_of_the_other_sdk_names_neither_type_nor_key() -> None:
    found = read(sdk(ISSUER, B, header={"kid": None, "typ": None}, iat=...))
    assert (found.keyid, found.is_ours, found.issued) == ("", False, 0)


def test_claims_that_we_do_not_know_are_passed_over() -> None:
    found = read(ours(ISSUER, B, C, more={"deep": [1]}, act={"sub": B, "iss": "x"}))
    assert found.actors == (B,)


def test_two_other_libraries_read_what_we_write() -> None:
    moment = int(now())
    text = write(own(issued=moment, expires=moment + 300, once=True), sign=sign)
    okp: dict[str, str | list[str]] = {"kty": "OKP", "crv": "Ed25519", "x": unpadded(PUBLIC)}
    claims = jwt.decode(text, jwt.PyJWK(okp | {"alg": "EdDSA"}), ["EdDSA"], audience=C)
    assert claims["jti"] == "jti-1"
    assert claims["once"] is True
    registry = other.JWSRegistry(algorithms=["EdDSA", "Ed25519"])
    found = other.deserialize_compact(text, OKPKey.import_key(okp), registry=registry)
    assert found.headers()["typ"] == "carnet-delegation+jwt"


# ---------------------------------------------------------------------------------- refused


@pytest.mark.parametrize("forge", UNREADABLE.values(), ids=UNREADABLE)
def test_the_list_of_attacks_is_refused(forge: Forgery) -> None:
    """A28."""
    with pytest.raises(DelegationInvalid) as refused:
        read(forge(GRANT))
    assert refused.value.facts["link"] == 1


@pytest.mark.parametrize("name", UNTIMELY)
def test_what_is_wrong_with_its_time_is_judged_by_a_clock(name: str) -> None:
    """A28: all but those that no clock is needed for."""
    if name in {"exp too far ahead, of ours", "exp before iat"}:
        with pytest.raises(DelegationInvalid):
            read(UNTIMELY[name](GRANT))
    else:
        read(UNTIMELY[name](GRANT))


@pytest.mark.parametrize("jti", ["", "a\x00b", "a b", "j" * 129, 7])
def test_a_jti_that_could_not_be_recorded_is_refused(jti: object) -> None:
    for text in (ours(ISSUER, B, C, jti=jti), sdk(ISSUER, B, jti=jti)):
        with pytest.raises(DelegationInvalid):
            read(text)


def test_a_wrong_claim_is_told_with_its_link() -> None:
    first = ours(ISSUER, B, C)
    second = ours(Sender(B), C, C, parent=first, scope=7)
    third = ours(Sender(C), B, C, parent=second)
    with pytest.raises(DelegationInvalid) as refused:
        read(third)
    assert refused.value.facts["link"] == 2
    with pytest.raises(DelegationInvalid) as refused:
        read(ours(Sender(C), B, C, parent=first, maxDepth=True))
    assert refused.value.facts["link"] == 2


def test_more_links_than_are_looked_at_are_refused() -> None:
    brief: dict[str, Any] = {
        "iat": ...,
        "exp": 1,
        "scope": [],
        "header": {"kid": None, "typ": None},
    }
    text = sdk(Sender("agent://a"), "agent://b", **brief)
    for _ in range(7):
        text = sdk(Sender("agent://a"), "agent://b", parent=text, **brief)
    assert len(read(text).chain()) == 8
    with pytest.raises(DelegationExceeded) as refused:
        read(sdk(Sender("agent://a"), "agent://b", parent=text, **brief))
    assert refused.value.facts["reason"] == "it has more than 8 links"


def test_a_token_of_the_greatest_length_is_read() -> None:
    room = MAX_BYTES - len(sdk(ISSUER, B, more=""))
    text = sdk(ISSUER, B, more="x" * (room * 3 // 4 - 2))
    assert MAX_BYTES - 4 <= len(text) <= MAX_BYTES
    read(text)


@given(st.text() | st.text("AZaz09-_.=", max_size=300))
def test_whatever_the_text_it_is_refused_as_one_of_two(text: str) -> None:
    with pytest.raises((DelegationInvalid, DelegationExceeded)):
        read(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)
CLAIM = st.sampled_from(
    ["iss", "sub", "aud", "jti", "iat", "exp", "nbf", "scope", "maxDepth", "once", "bud", "act"]
)


@given(st.dictionaries(CLAIM | st.just("parent"), JSON, min_size=1, max_size=4))
def test_whatever_the_claims_it_is_read_or_refused_as_one_of_two(claims: dict[str, Any]) -> None:
    with suppress(DelegationInvalid, DelegationExceeded):
        assert read(ours(ISSUER, B, C, **claims)).issuer


def test_the_facts_of_the_sdks_that_we_share() -> None:
    """Those where a token is made wrong; a depth that is true is our named divergence."""
    for scope in ("chat x", [1]):
        text = sdk(ISSUER, B, scope=scope)
        with pytest.raises(SamvadError):
            samvad.verify_token(text, issuer_public_key_b64=PUBLIC_TEXT)
    assert samvad.verify_token(sdk(ISSUER, B, maxDepth=True), issuer_public_key_b64=PUBLIC_TEXT)[
        "maxDepth"
    ]
