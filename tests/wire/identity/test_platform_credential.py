"""Credentials of identity 0.2, as they are written, signed and read."""

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.people.evidence import Evidence, EvidenceInvalid
from carnet.wire.crypto import ed25519
from carnet.wire.identity import platform_credential

SEED = bytes(range(32))
METHOD = "did:web:x.example#k1"
MADE = Evidence(
    id="urn:uuid:1",
    subject="slack:T1/U2",
    issuer="did:web:x.example",
    method="urn:m",
    assurance="platform",
    audience=("@b@bots.example",),
    issued=1_700_000_000,
    expires=1_700_000_300,
    source={"platform": {"provider": "slack"}},
    version="0.2",
)


def written(evidence: Evidence = MADE, **more: Any) -> dict[str, Any]:
    made = platform_credential.write(
        evidence, challenge="m-1", method=METHOD, sign=ed25519.signer(SEED)
    )
    return made | more


PROOF: dict[str, Any] = written()["proof"]
SUBJECT: dict[str, Any] = written()["credentialSubject"]


def test_what_is_written_is_read_and_signed() -> None:
    found = platform_credential.read(written())
    assert found.evidence == MADE
    assert (found.domain, found.challenge, found.method) == ("@b@bots.example", "m-1", METHOD)
    (base,) = found.bases()
    assert ed25519.holds(ed25519.public_of(SEED), base, found.signature)
    plain = Evidence(subject="a", issuer="b", method="c", audience=("d",), id="e", issued=1)
    assert "assurance" not in written(plain)["credentialSubject"]


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ({"proof": 1}, "malformed"),
        ({"proof": PROOF | {"@context": []}}, "malformed"),
        ({"proof": PROOF | {"created": "now"}}, "malformed"),
        ({"proof": PROOF | {"proofValue": "z0"}}, "malformed"),
        ({"proof": PROOF | {"proofValue": "z1"}}, "malformed"),
        ({"proof": PROOF | {"proofValue": 7}}, "malformed"),
        ({"proof": PROOF | {"expires": "x"}}, "unsupported_profile"),
        ({"proof": PROOF | {"domain": "a b"}}, "malformed"),
        ({"credentialSubject": []}, "malformed"),
        ({"credentialSubject": SUBJECT | {"profile": 7}}, "malformed"),
        ({"credentialSubject": SUBJECT | {"profile": {"username": 7}}}, "malformed"),
        ({"credentialSubject": SUBJECT | {"source": {"x": float(2**60)}}}, None),
        ({"credentialSubject": SUBJECT | {"source": {"x": 2**60}}}, "malformed"),
    ],
)
def test_what_is_not_in_its_form_is_told_in_a_word(more: dict[str, Any], fault: str | None) -> None:
    if fault is None:
        assert platform_credential.read(written(**more)).bases()
        return
    with pytest.raises(EvidenceInvalid) as raised:
        platform_credential.read(written(**more)).bases()
    assert raised.value.fault == fault


_ANY = st.recursive(
    st.none() | st.text() | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(_ANY)
def test_whatever_the_value_it_is_a_credential_or_set_aside(value: object) -> None:
    for each in (value, written(credentialSubject=value), written(proof=value)):
        with contextlib.suppress(EvidenceInvalid):
            platform_credential.read(each).bases()
