"""Identity evidence, as it is written, signed and read."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.people.evidence import Evidence, EvidenceInvalid
from carnet.wire.crypto import ed25519
from carnet.wire.identity import attestation

SEED = bytes(range(32))
MADE = Evidence(
    id="number-1",
    subject="@agent-a@example.com",
    issuer="example.com",
    method=attestation.METHOD,
    assurance=attestation.ASSURANCE,
    audience=("@b@bots.example",),
    issued=1_700_000_000,
    expires=1_700_000_300,
    on_behalf_of=("mailto:u@example.com",),
    claims={"consent": "payment"},
    key="k1",
)


def written(**more: Any) -> dict[str, Any]:
    made = attestation.write(MADE, kid="k1", sign=ed25519.signer(SEED)) | more
    return {name: value for name, value in made.items() if value is not None}


def test_what_is_written_is_read_and_signed() -> None:
    found = attestation.read(written())
    assert found.evidence == MADE
    assert found.begins == MADE.issued
    assert ed25519.holds(ed25519.public_of(SEED), found.signed(), found.signature)
    assert written()["issued_at"] == "2023-11-14T22:13:20.000Z"
    plain = attestation.write(
        Evidence(subject="a", issuer="b", method="c", audience=("d",), id="number-1"),
        kid="k1",
        sign=ed25519.signer(SEED),
    )
    assert "on_behalf_of" not in plain


def test_moments_may_be_counted_and_an_end_may_be_left_out() -> None:
    found = attestation.read(written(issued_at=1_700_000_000.0, expires_at=None, on_behalf_of=[]))
    assert (found.evidence.expires, found.evidence.on_behalf_of) == (1_700_000_600, ())
    later = attestation.read(written(not_before=1_700_000_100))
    assert later.begins == 1_700_000_100


PROOF: dict[str, Any] = written()["proof"]
FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"proof": None}, "malformed"),
    ({"proof": PROOF | {"type": "bearer-token"}}, "unsupported_profile"),
    ({"proof": PROOF | {"alg": "none"}}, "unsupported_cryptosuite"),
    ({"proof": PROOF | {"canonicalization": "own"}}, "unsupported_cryptosuite"),
    ({"proof": PROOF | {"kid": "../x"}}, "malformed"),
    ({"proof": PROOF | {"value": "short"}}, "malformed"),
    ({"proof": PROOF | {"value": "_" * 86}}, "malformed"),
    ({"issued_at": "2026-02-30T10:00:00Z"}, "malformed"),
    ({"issued_at": True}, "malformed"),
    ({"issued_at": "2026-W10"}, "malformed"),
    ({"expires_at": 1_600_000_000}, "malformed"),
    ({"expires_at": 1_700_003_600}, "limit_exceeded"),
    ({"subject": ""}, "malformed"),
    ({"subject": "a b"}, "malformed"),
    ({"subject": 7}, "malformed"),
    ({"subject": "x" * 513}, "limit_exceeded"),
    ({"method": "x" * 257}, "limit_exceeded"),
    ({"audience": []}, "malformed"),
    ({"audience": ["x"] * 9}, "limit_exceeded"),
    ({"audience": {}}, "malformed"),
    ({"on_behalf_of": "x"}, "malformed"),
    ({"on_behalf_of": ["x"] * 33}, "limit_exceeded"),
    ({"id": None}, "malformed"),
    ({"claims": []}, "malformed"),
    ({"claims": {"x": "y" * 9000}}, "limit_exceeded"),
    ({"other": 2**60}, "malformed"),
]


@pytest.mark.parametrize(("more", "fault"), FAULTS, ids=str)
def test_what_is_not_right_is_told_in_a_word(more: dict[str, Any], fault: str) -> None:
    with pytest.raises(EvidenceInvalid) as caught:
        attestation.read(written(**more)).signed()
    assert caught.value.fault == fault


def test_a_carrier_is_a_short_list() -> None:
    assert attestation.read_carrier([1]) == [1]
    for value, fault in (
        ({}, "malformed"),
        ([1] * 9, "limit_exceeded"),
        (["x" * 70_000], "limit_exceeded"),
    ):
        with pytest.raises(EvidenceInvalid) as caught:
            attestation.read_carrier(value)
        assert caught.value.fault == fault


ANY: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(ANY)
def test_whatever_the_value_it_is_refused_in_a_word(value: Any) -> None:
    with pytest.raises(EvidenceInvalid):
        attestation.read(value)
