"""Was a signed request made just now, does its signature hold, and is it meant for this agent?"""

from typing import Any

import pytest

from carnet.core.call import Claim
from carnet.core.people.proof import SECOND_US
from carnet.errors import (
    DestinationMismatch,
    Internal,
    SignatureExpired,
    SignatureInvalid,
    SignatureMissing,
    TimestampOutOfWindow,
)
from carnet.guards.candidate import Candidate
from carnet.guards.proof.signature import Addressed, in_time, signed
from carnet.wire.crypto import ed25519
from tests.guards.scene import DOMAIN
from tests.guards.scene import claim as token_claim
from tests.guards.signed_scene import (
    BASE,
    NOW,
    PUBLIC,
    SEED,
    candidate,
    document,
    identities,
    proof,
    signed_claim,
    travelled,
)


def judged(claim: Claim, key: bytes = PUBLIC) -> Candidate:
    found = candidate(claim)
    found.key = key
    signed(found)
    return found


def test_a_signature_holds_for_one_of_the_texts_it_may_cover() -> None:
    assert judged(signed_claim()).key == PUBLIC
    judged(signed_claim(bases=(b"not this", BASE), signature=ed25519.sign(SEED, BASE)))


@pytest.mark.parametrize(
    "signature", [b"", bytes(63), bytes(64), bytes(65), ed25519.sign(SEED, b"another text")]
)
def test_a_signature_of_nothing_we_received_is_refused(signature: bytes) -> None:
    with pytest.raises(SignatureInvalid):
        judged(signed_claim(signature=signature))


def test_a_signature_of_somebody_else_is_refused() -> None:
    other = ed25519.public_of(bytes(32))
    with pytest.raises(SignatureInvalid):
        judged(signed_claim(), other)


def test_no_key_verifies_before_one_was_found() -> None:
    with pytest.raises(Internal):
        signed(candidate())


def test_a_claim_without_a_signature_has_no_proof() -> None:
    with pytest.raises(SignatureMissing):
        signed(Candidate(token_claim(), NOW))


@pytest.mark.parametrize(
    ("profile", "seconds"),
    [("samvad", -300), ("samvad", 59), ("samvad", 60), ("carnet", -60), ("carnet", 30)],
)
def test_a_time_within_the_window_is_taken(profile: str, seconds: int) -> None:
    in_time(candidate(signed_claim(profile=profile, at=NOW + seconds * SECOND_US)))


@pytest.mark.parametrize(
    ("profile", "seconds"),
    [("samvad", -301), ("samvad", 61), ("samvad", 360), ("carnet", -61), ("carnet", 31)],
)
def test_a_time_outside_the_window_is_refused(profile: str, seconds: int) -> None:
    with pytest.raises(TimestampOutOfWindow):
        in_time(candidate(signed_claim(profile=profile, at=NOW + seconds * SECOND_US)))


def test_a_signature_holds_until_the_end_that_it_names() -> None:
    in_time(candidate(signed_claim(expires=NOW // SECOND_US + 1)))
    with pytest.raises(SignatureExpired):
        in_time(candidate(signed_claim(expires=NOW // SECOND_US)))


def test_a_signature_cannot_end_before_the_request_was_made() -> None:
    with pytest.raises(SignatureExpired):
        in_time(
            candidate(signed_claim(at=NOW + 20 * SECOND_US, expires=NOW // SECOND_US + 10)),
        )


ADDRESSED = Addressed(identities(), DOMAIN)


@pytest.mark.parametrize(
    ("agent", "recipient"),
    [
        ("", f"agent://{DOMAIN}"),
        ("echo", f"agent://{DOMAIN}"),
        ("desk", f"agent://desk.{DOMAIN}"),
        ("nobody", f"agent://nobody.{DOMAIN}"),  # that there is none is told later
    ],
)
def test_a_request_names_the_agent_that_it_was_sent_to(agent: str, recipient: str) -> None:
    ADDRESSED(candidate(signed_claim(agent, recipient=recipient)))


@pytest.mark.parametrize(
    ("agent", "recipient"),
    [
        ("", "agent://other.example"),
        ("", f"agent://desk.{DOMAIN}"),
        ("desk", f"agent://{DOMAIN}"),
        ("desk", f"agent://vault.{DOMAIN}"),
        ("@critic@b.example", f"agent://{DOMAIN}"),
        ("a b", f"agent://{DOMAIN}"),
    ],
)
def test_signed_bytes_are_good_for_one_recipient(agent: str, recipient: str) -> None:
    with pytest.raises(DestinationMismatch):
        ADDRESSED(candidate(signed_claim(agent, recipient=recipient)))


def test_a_travel_document_is_good_for_one_organisation() -> None:
    ADDRESSED(candidate(signed_claim(proof=travelled(document=document()))))
    with pytest.raises(DestinationMismatch):
        ADDRESSED(candidate(signed_claim(proof=travelled(document=document(audience="b.example")))))


@pytest.mark.parametrize(
    "fields",
    [
        {"recipient": None},
        {"recipient": None, "profile": "carnet"},
        {"document": document(audience="b.example")},
        {"document": document(), "recipient": "agent://other.example"},
    ],
)
def test_what_names_nobody_or_somebody_else_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(DestinationMismatch):
        ADDRESSED(candidate(signed_claim(proof=proof(**fields))))
