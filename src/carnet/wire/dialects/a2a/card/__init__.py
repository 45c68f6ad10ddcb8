"""Cards of A2A: ours are written and signed, anybody's are read and verified."""

from carnet.wire.dialects.a2a.card.facts import (
    ORIGIN_URI,
    TERMS_URI,
    A2aFacts,
    DeclaredExtension,
    OriginCard,
    Reach,
    facts_of,
)
from carnet.wire.dialects.a2a.card.presence import NotCovered, payload_of
from carnet.wire.dialects.a2a.card.reader import (
    A2aCard,
    AuthScheme,
    CardInterface,
    CardSkill,
    read_card,
)
from carnet.wire.dialects.a2a.card.signature import (
    CardSignature,
    CardVerdict,
    named_keys,
    sign_card,
    verify_card,
)
from carnet.wire.dialects.a2a.card.writer import write_members

__all__ = [
    "ORIGIN_URI",
    "TERMS_URI",
    "A2aCard",
    "A2aFacts",
    "AuthScheme",
    "CardInterface",
    "CardSignature",
    "CardSkill",
    "CardVerdict",
    "DeclaredExtension",
    "NotCovered",
    "OriginCard",
    "Reach",
    "facts_of",
    "named_keys",
    "payload_of",
    "read_card",
    "sign_card",
    "verify_card",
    "write_members",
]
