"""Does the signature hold, and for what."""

import pytest

from carnet.core.call import Claim
from carnet.errors import Internal, SignatureInvalid, SignatureMissing
from carnet.guards.candidate import Candidate
from carnet.guards.proof.signature import signed
from carnet.wire.crypto import ed25519
from tests.guards.scene import claim as token_claim
from tests.guards.signed_scene import BASE, NOW, PUBLIC, SEED, candidate, signed_claim


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
