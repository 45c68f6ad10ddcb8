"""An agent of ours whose card is written, and the key that signs it."""

from typing import Any

from carnet.core.call import Price
from carnet.core.people.identity import CHAT, Skill
from carnet.wire.crypto import ed25519
from carnet.wire.dialects.a2a.card import A2aFacts, DeclaredExtension, sign_card, write_members
from carnet.wire.dialects.dialect import Terms

SEED = b"\x05" * 32
PUBLIC = ed25519.public_of(SEED)
KID = "key-1"
JKU = "https://gw.acme.example/.well-known/jwks.json"

REVIEW = Skill(
    id="review-code",
    name="Review code",
    description="Reads code and says what is wrong.",
    input_schema={"type": "object", "properties": {"code": {"type": "string"}}},
    output_schema={"type": "object"},
    tags=("code", "review"),
    examples=("Is this loop right?",),
)
CHAIN = DeclaredExtension(uri="urn:example:chain:v1", description="Where a call comes from.")
FACTS = A2aFacts(
    name="critic",
    version="1.4.0",
    description="Says what is wrong.",
    url="https://gw.acme.example/agents/critic",
    organization="acme.example",
    organization_url="https://gw.acme.example",
    permission="call:critic",
    skills=(CHAT, REVIEW),
    terms=Terms(
        currency="credits",
        price=Price(per_call=200),
        max_depth=4,
        calls_per_minute=20,
        body_bytes=1_048_576,
    ),
    extensions=(CHAIN,),
)


def signed(facts: A2aFacts = FACTS) -> dict[str, Any]:
    """The card, signed."""
    return sign_card(write_members(facts), kid=KID, jku=JKU, sign=ed25519.signer(SEED))
