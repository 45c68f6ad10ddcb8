"""What a signature between Carnets covers, and what a request without all of it is told."""

from typing import Any

import pytest

from carnet.core.people.proof import Proof
from carnet.errors import (
    CarnetError,
    DigestInvalid,
    DigestMismatch,
    HeaderNotSigned,
    InsufficientCoverage,
    NonceInvalid,
    SignatureExpired,
    SignatureInvalid,
    SignatureMissing,
    TimestampInvalid,
    TravelDocumentInvalid,
)
from carnet.wire import travel
from carnet.wire.crypto import ed25519
from carnet.wire.stamps import STAMPS
from tests.wire.travel.scene import BODY, FIELDS, KID, NOW, PUBLIC, but, request, signed

NO_NONCE: dict[str, Any] = {"nonce": None}


def proof(fields: dict[str, str], body: bytes = BODY, **parts: Any) -> Proof:
    found = travel.read_proof(request(fields, **parts), body, STAMPS)
    assert found is not None
    return found


def holds(found: Proof) -> bool:
    (base,) = found.bases
    return ed25519.holds(PUBLIC, base, found.signature)


def test_a_signed_request_is_read_with_its_document_as_its_sender() -> None:
    found = proof(signed())
    assert holds(found)
    assert (found.profile, found.sender, found.keyid) == ("carnet", "agent://a.example", KID)
    assert (found.nonce, found.at, found.expires) == ("nonce-0001", NOW * 1_000_000, None)
    assert found.document is not None
    assert found.document.audience == "b.example"


def test_everything_that_decides_about_a_call_is_covered() -> None:
    covered = travel.cover(request(signed(), query="a=b"), STAMPS)
    assert covered[:6] == (
        *("@method", "@authority", "@path", "content-digest", "content-type"),
        "@query",
    )
    assert set(covered[6:]) == {"x-tangle-runid", "x-tangle-forwarded-depth", "carnet"}


def test_a_trace_that_a_proxy_wrote_on_the_way_breaks_no_signature() -> None:
    """A93: nor one that it took away."""
    fields = signed()
    assert holds(proof(fields | {"traceparent": f"00-{'9' * 32}-{'8' * 16}-01"}))
    assert holds(proof({name: fields[name] for name in fields if name != "traceparent"}))


@pytest.mark.parametrize(
    "parts", [{"method": "PUT"}, {"authority": "c.example"}, {"path": "/v1/other"}]
)
def test_a_signature_holds_for_one_destination(parts: dict[str, Any]) -> None:
    assert not holds(proof(signed(), **parts))


@pytest.mark.parametrize(
    ("name", "value"),
    [("x-tangle-forwarded-depth", "0"), ("x-tangle-runid", "conv_2"), ("content-type", "text/x")],
)
def test_a_signature_does_not_hold_for_changed_headers(name: str, value: str) -> None:
    assert not holds(proof(signed() | {name: value}))


def test_a_query_must_be_covered_where_there_is_one() -> None:
    assert holds(proof(signed(parts={"query": "a=b"}), query="a=b"))
    assert not holds(proof(signed(parts={"query": "a=b"}), query="a=c"))
    with pytest.raises(HeaderNotSigned):
        proof(signed(), query="a=b")


def test_without_a_signature_of_ours_and_without_a_document_there_is_no_proof() -> None:
    assert travel.read_proof(request(FIELDS), BODY, STAMPS) is None
    others = signed(document=None, tag="web-bot-auth")
    assert travel.read_proof(request(others), BODY, STAMPS) is None


def without(name: str, fields: dict[str, str] | None = None) -> dict[str, str]:
    return {field: value for field, value in (fields or signed()).items() if field != name}


REFUSED: list[tuple[dict[str, str], type[CarnetError]]] = [
    (without("carnet"), SignatureInvalid),  # covered, and gone
    (without("signature"), SignatureMissing),
    (without("signature-input"), SignatureMissing),
    (without("signature", without("signature-input")), SignatureMissing),
    (without("x-tangle-runid"), SignatureInvalid),
    (without("content-digest"), SignatureInvalid),
    (signed() | {"x-tangle-speaker": "x"}, HeaderNotSigned),  # A07
    (signed() | {"x-actor-id": "root"}, HeaderNotSigned),
    (signed() | {"x-agents-api-chain-depth": "0"}, HeaderNotSigned),
    (signed() | {"carnet-resolution": "x"}, HeaderNotSigned),
    (signed(components=("@method", "@path", "content-digest")), InsufficientCoverage),  # A06
    (signed(components=()), InsufficientCoverage),
    (signed(document=None), InsufficientCoverage),
    (signed(tag="other"), SignatureInvalid),
    (signed(tag=None), SignatureInvalid),
    (signed(keyid=""), SignatureInvalid),
    (signed(nonce=None), NonceInvalid),
    (signed(nonce="short"), NonceInvalid),
    (signed(nonce="x" * 65), NonceInvalid),
    (signed(nonce="with a space"), NonceInvalid),
    (signed(expires=NOW - 1), SignatureExpired),
    (signed(FIELDS | {"content-digest": "sha-256=:eA==:"}), DigestInvalid),
    (signed(FIELDS | {"carnet": "x.y.z"}, document=None), TravelDocumentInvalid),
    (signed(document=but(digest="sha-256=:" + "A" * 43 + "=:")), DigestMismatch),
]


@pytest.mark.parametrize(("fields", "error"), REFUSED)
def test_half_a_proof_is_refused(fields: dict[str, str], error: type[CarnetError]) -> None:
    with pytest.raises(error):
        travel.read_proof(request(fields), BODY, STAMPS)


def test_a_signature_without_a_time_is_refused() -> None:
    fields = signed()
    fields["signature-input"] = fields["signature-input"].replace(f";created={NOW}", "")
    with pytest.raises(TimestampInvalid):
        travel.read_proof(request(fields), BODY, STAMPS)


def test_another_body_is_told_as_that() -> None:
    with pytest.raises(DigestMismatch):
        travel.read_proof(request(signed()), BODY + b" ", STAMPS)


def test_an_end_that_lies_ahead_is_kept_for_the_guards() -> None:
    assert proof(signed(expires=NOW + 5)).expires == NOW + 5


def test_the_head_alone_proves_who_sent_it_before_the_body_has_come() -> None:
    found = travel.read_proof(request(signed()), None, STAMPS)
    assert found == proof(signed())
    with pytest.raises(InsufficientCoverage):
        travel.read_proof(request(signed(document=None)), None, STAMPS)
