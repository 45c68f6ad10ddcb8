"""Who could not be admitted whatever it asks is refused before that is read (A75)."""

import pytest

from carnet.core.people.identity import Secret
from carnet.core.people.proof import Proof
from carnet.errors import (
    CarnetError,
    KeyUnknown,
    SignatureInvalid,
    TimestampOutOfWindow,
    TokenInvalid,
    TokenMissing,
)
from carnet.ports.trust.trust import NewToken
from tests.guards.admission.test_gate import Scene
from tests.guards.scene import PLAIN
from tests.guards.signed_scene import (
    NOW,
    PUBLIC,
    SignedScene,
    document,
    proof,
    signed_claim,
    travelled,
)

FORGED = bytes(64)
UNKNOWN = "agent://unknown.example"


def bearer(token: str) -> Secret:
    return Secret(f"Bearer {token}")


async def test_who_shows_a_live_token_may_go_on() -> None:
    scene = SignedScene()
    await scene.gate.vouch(bearer("ck_alice"), None)
    assert (scene.turns.turns, scene.tokens.uses, scene.concurrency.total) == ({}, [], 0)


@pytest.mark.parametrize(
    ("shown", "error"),
    [(None, TokenMissing), (bearer("ck_never"), TokenInvalid), (bearer("ck_old"), TokenInvalid)],
)
async def test_who_shows_none_may_not(shown: Secret | None, error: type[CarnetError]) -> None:
    with pytest.raises(error):
        await SignedScene().gate.vouch(shown, None)


async def test_a_token_made_a_moment_ago_is_found_and_one_that_is_none_is_looked_for_once() -> None:
    scene = Scene()
    scene.learns = lambda: scene.tokens.add("ck_fresh", NewToken(name="fresh", scopes=PLAIN))
    await scene.gate.vouch(bearer("ck_fresh"), None)
    looks: list[bool] = []
    signed = SignedScene()
    signed.learns = lambda: looks.append(True)
    with pytest.raises(TokenInvalid):
        await signed.gate.vouch(bearer("ck_never"), None)
    assert looks == [True]


async def test_a_signature_that_holds_may_go_on_and_is_no_replay_when_all_of_it_came() -> None:
    scene = SignedScene()
    await scene.gate.vouch(None, proof())
    await scene.gate.vouch(None, travelled(document=document()))
    assert scene.turns.nonces == {}
    assert not (await scene.gate.admit(signed_claim())).known


@pytest.mark.parametrize(
    ("shown", "error"),
    [
        (proof(signature=FORGED), SignatureInvalid),
        (proof(at=NOW - 3600 * 1_000_000), TimestampOutOfWindow),
        (proof(sender=UNKNOWN), KeyUnknown),
        (travelled(document=document(signature=FORGED)), SignatureInvalid),
        (travelled(document=document(issuer="c.example")), SignatureInvalid),
    ],
)
async def test_a_proof_that_proves_nothing_may_not(shown: Proof, error: type[CarnetError]) -> None:
    with pytest.raises(error):
        await SignedScene().gate.vouch(
            bearer("ck_alice"), shown
        )  # a token beside it changes nothing


async def test_a_key_pinned_a_moment_ago_is_found() -> None:
    scene = SignedScene()
    scene.learns = lambda: scene.ring.pin(UNKNOWN, "k1", PUBLIC)
    await scene.gate.vouch(None, proof(sender=UNKNOWN))


async def test_a_gate_that_knows_no_keys_believes_no_signature() -> None:
    with pytest.raises(SignatureInvalid):
        await Scene().gate.vouch(bearer("ck_alice"), proof())
