"""The card: what an agent says about itself. Ours is written, a peer's is read.

Law 1. What we write holds all fourteen fields, so that the protocol's own clients can read it too.
       What it has no words for, such as a price, stands in one member of ours, `carnet` (R31).
Law 2. Of a peer's card the identity, the URL and the keys are judged strictly: keys that are weak,
       or two of one name, make the whole card worthless (A21). Fields that we do not know pass.
Law 3. `read_card(write_card(facts))` tells what the facts told.
Law 4. What cannot be read raises `PeerUnreachable`, with nothing of the peer's in its safe text.
"""

import re
from typing import Any, Final, get_args

import msgspec
from msgspec import Struct

from carnet.core.people.address import check_identity
from carnet.core.people.identity import Mode, Skill, Trust
from carnet.errors import AddressInvalid, InvalidJson, KeyInvalid, PeerUnreachable
from carnet.wire.crypto.ed25519 import read_public_key, write_public_key
from carnet.wire.dialects.dialect import AgentKey as CardKey
from carnet.wire.dialects.dialect import Terms
from carnet.wire.grammar import json

PROTOCOL_VERSION: Final = "1.2"
DEFAULT_TTL: Final = 300
MOST_TTL_SECONDS: Final = 7 * 24 * 3600
MOST_KEYS: Final = 32
MOST_SKILLS: Final = 256

# In full: an agent below a prefix could not be found by a bare path.
ENDPOINTS: Final = {
    "intro": "/agent/intro",
    "message": "/agent/message",
    "task": "/agent/task",
    "taskStatus": "/agent/task/{taskId}",
    "stream": "/agent/stream",
    "health": "/agent/health",
}

LIMITS: Final = ("requestsPerMinute", "requestsPerSender", "tokensPerSenderPerDay")

_MODES: Final[dict[str, Mode]] = {mode: mode for mode in get_args(Mode)}
_TRUSTS: Final[dict[object, Trust]] = {trust: trust for trust in get_args(Trust)}
_KID: Final = re.compile(r"[ -~]{1,128}", re.ASCII)
_URL: Final = re.compile(
    r"https?://(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?"
    r"(?:/[A-Za-z0-9._~!$&'()*+,;=:@%/-]{0,1024})?",
    re.ASCII,
)


class Model(Struct, frozen=True):
    """A language model that an agent uses."""

    provider: str
    model: str


class CardFacts(Struct, frozen=True, kw_only=True):
    """What a card of ours tells."""

    id: str
    name: str
    version: str
    description: str
    url: str
    skills: tuple[Skill, ...]
    keys: tuple[CardKey, ...]
    trust: Trust = "public"  # of skills that do not say
    require_auth: bool = False  # every caller must bring a token
    specializations: tuple[str, ...] = ()
    models: tuple[Model, ...] = ()
    requests_per_minute: int
    requests_per_sender: int
    tokens_per_sender_per_day: int | None = None
    ttl: int = DEFAULT_TTL  # seconds for which readers may keep it
    terms: Terms | None = None  # what is told beside the fields of the protocol


def write_card(facts: CardFacts) -> bytes:
    """The card as it is served."""
    base = facts.url.rstrip("/")
    limits = {
        "requestsPerMinute": facts.requests_per_minute,
        "requestsPerSender": facts.requests_per_sender,
        "tokensPerSenderPerDay": facts.tokens_per_sender_per_day,
    }
    return json.write(
        {
            "id": facts.id,
            "name": facts.name[:100],
            "version": facts.version,
            "description": facts.description[:500],
            "url": facts.url,
            "protocolVersion": PROTOCOL_VERSION,
            "specializations": facts.specializations,
            "models": facts.models,
            "skills": [_skill_member(skill, facts.trust) for skill in facts.skills],
            "publicKeys": [
                {"kid": key.kid, "key": write_public_key(key.public), "active": key.active}
                for key in facts.keys
            ],
            "auth": {"schemes": _schemes(facts)},
            "rateLimit": {name: most for name, most in limits.items() if most is not None},
            "cardTTL": facts.ttl,
            "endpoints": {name: base + path for name, path in ENDPOINTS.items()},
            **({} if facts.terms is None else {"carnet": facts.terms.page()}),
        }
    )


def _schemes(facts: CardFacts) -> list[str]:
    if facts.require_auth:
        return ["bearer"]
    trusts = {skill.trust or facts.trust for skill in facts.skills}
    return ["bearer", "none"] if "authenticated" in trusts else ["none"]


def _skill_member(skill: Skill, trust: Trust) -> dict[str, Any]:
    member: dict[str, Any] = {
        "id": skill.id,
        "name": skill.name,
        "description": skill.description,
        "inputSchema": skill.input_schema,
        "outputSchema": skill.output_schema,
        "modes": skill.modes,
        "trust": skill.trust or trust,
    }
    if skill.allowed_peers is not None:
        member["allowedPeers"] = skill.allowed_peers
    return member


def write_intro(facts: CardFacts) -> bytes:
    """The card as a page for people, in Markdown."""
    lines = [
        f"# {_line(facts.name)}",
        "",
        _line(facts.description),
        "",
        f"**Protocol:** SAMVAD v{PROTOCOL_VERSION}",
        f"**Agent ID:** {facts.id}",
        f"**URL:** {facts.url}",
        "",
        "## Skills",
        "",
        *(
            f"- **{_line(skill.name)}** (`{skill.id}`, {skill.trust or facts.trust}, "
            f"{', '.join(skill.modes)}): {_line(skill.description)}"
            for skill in facts.skills
        ),
        "",
    ]
    return "\n".join(lines).encode()


def _line(text: str) -> str:
    return " ".join(text.split())


def write_health(*, version: str, uptime: int, active: int, queued: int) -> bytes:
    """Whether the agent is up, since how many seconds, and how much it has to do."""
    return json.write(
        {
            "status": "ok",
            "protocolVersion": PROTOCOL_VERSION,
            "agentVersion": version,
            "uptime": uptime,
            "load": {"activeRequests": active, "queuedTasks": queued},
        }
    )


# ------------------------------------------------------------------ reading


class Card(Struct, frozen=True, kw_only=True):
    """What a peer's card tells, as far as we use it."""

    id: str
    url: str  # without a slash at its end
    name: str
    description: str
    protocol_version: str
    keys: tuple[CardKey, ...]
    skills: tuple[Skill, ...]
    ttl: int
    limits: dict[str, int] = {}  # `rateLimit`, by the names of the card; those that it has


class _Key(Struct):
    kid: str
    key: str
    active: bool


class _Skill(Struct, rename="camel"):
    id: str
    name: str = ""
    description: str = ""
    input_schema: dict[str, Any] = {}
    output_schema: dict[str, Any] = {}
    modes: list[str] = []
    trust: object = None
    allowed_peers: list[str] | None = None


class _Card(Struct, rename="camel"):
    id: str
    url: str
    public_keys: list[_Key]
    protocol_version: str
    skills: list[_Skill] = []
    name: str = ""
    description: str = ""
    card_ttl: int = msgspec.field(name="cardTTL", default=DEFAULT_TTL)
    rate_limit: object = None  # shown, and never believed


def read_card(body: bytes) -> Card:
    """Read a peer's card; whoever fetched it has bounded its size."""
    try:
        card = msgspec.convert(json.read_object(body), _Card)
        _check(card)  # before any of its keys, which take a while
        identity = check_identity(card.id)
        keys = tuple(
            CardKey(key.kid, read_public_key(key.key), key.active) for key in card.public_keys
        )
    except InvalidJson as error:
        raise PeerUnreachable(f"the card is not JSON: {error.safe_text}") from None
    except msgspec.ValidationError as error:
        raise PeerUnreachable(f"the card lacks what it must have: {error}") from None
    except (AddressInvalid, KeyInvalid) as error:
        raise PeerUnreachable(f"the card is refused: {error.safe_text}") from None
    return Card(
        id=identity,
        url=card.url.rstrip("/"),
        name=card.name,
        description=card.description,
        protocol_version=card.protocol_version,
        keys=keys,
        skills=tuple(_read_skill(skill) for skill in card.skills),
        ttl=min(max(card.card_ttl, 0), MOST_TTL_SECONDS),
        limits=_read_limits(card.rate_limit),
    )


def _read_limits(limits: object) -> dict[str, int]:
    """The limits that are numbers; what is none of them is not refused: nothing hangs on it."""
    found = limits if isinstance(limits, dict) else {}
    known = {name: found.get(name) for name in LIMITS}
    return {name: most for name, most in known.items() if type(most) is int and most >= 0}


def _check(card: _Card) -> None:
    kids = [key.kid for key in card.public_keys]
    if not 1 <= len(kids) <= MOST_KEYS or len(set(kids)) != len(kids):
        raise PeerUnreachable("the card has no keys, too many, or two of one name")
    if not all(_KID.fullmatch(kid) for kid in kids):
        raise PeerUnreachable("the card names a key in characters that no signature can carry")
    if _URL.fullmatch(card.url) is None:
        raise PeerUnreachable("the url of the card is not an absolute http or https URL")
    if len(card.skills) > MOST_SKILLS:
        raise PeerUnreachable(f"the card has more than {MOST_SKILLS} skills")


def _read_skill(skill: _Skill) -> Skill:
    return Skill(
        id=skill.id,
        name=skill.name,
        description=skill.description,
        input_schema=skill.input_schema,
        output_schema=skill.output_schema,
        modes=tuple(_MODES[mode] for mode in skill.modes if mode in _MODES),
        trust=_TRUSTS.get(skill.trust) if isinstance(skill.trust, str) else None,
        allowed_peers=None if skill.allowed_peers is None else tuple(skill.allowed_peers),
    )
