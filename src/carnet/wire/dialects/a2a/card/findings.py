"""What is wrong with anybody's card, and what to do about it.

Law 1. What is wrong is told by field and constraint; no value of the card is repeated.
Law 2. A failure is what the specification forbids or others refuse; a doubt makes them stumble.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from carnet.errors import InvalidJson, PeerUnreachable
from carnet.wire.dialects.a2a.card.presence import NotCovered, payload_of
from carnet.wire.dialects.a2a.card.reader import HTTP_BINDINGS, A2aCard, read_card
from carnet.wire.dialects.a2a.card.signature import CardVerdict
from carnet.wire.grammar import json

NEWEST: Final = "1.0"
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_CARD: Final = ("name", "description", "version", "capabilities", "supportedInterfaces", "skills")
_MODES: Final = ("defaultInputModes", "defaultOutputModes")
_SKILL: Final = ("id", "name", "description", "tags")
_INTERFACE: Final = ("url", "protocolBinding", "protocolVersion")


class CardFinding(Struct, frozen=True):
    """One thing that is wrong, and what to do about it."""

    status: Literal["fail", "warn"]
    message: str
    fix: str


def findings_of(body: bytes, *, url: str) -> tuple[A2aCard | None, list[CardFinding]]:
    """The card, if it can be read at all, and what is wrong with it; it was read at `url`."""
    try:
        members = json.read_object(body)
    except InvalidJson as error:
        return None, [CardFinding("fail", error.safe_text, "Serve one JSON object, in UTF-8.")]
    missing = list(_missing(members))
    try:
        card = read_card(body)
    except PeerUnreachable as error:
        message = f"{error.detail[:1].upper()}{error.detail[1:]}."
        fix = "Correct it: clients that validate refuse the whole card."
        return None, [*missing, CardFinding("fail", message, fix)]
    return card, [*missing, *_faults(card), *_doubts(card, url)]


def signature_finding(verdict: CardVerdict) -> CardFinding | None:
    """What the signatures leave to be done; None where one holds."""
    message = verdict.detail
    match verdict.state:
        case "verified":
            return None
        case "broken":
            fix = "Sign the card after its last change, over its canonical form (RFC 8785)."
            return CardFinding("fail", f"Field 'signatures': {message}.", fix)
        case "unsigned":
            fix = "Sign it (JWS), so that clients can tell that nobody changed it."
            return CardFinding("warn", f"Field 'signatures': {message}.", fix)
        case "key-unknown":
            fix = "Publish the key at the card's own host (jku), or give it to who is to pin it."
            return CardFinding("warn", f"Field 'signatures': {message}.", fix)
        case "not-verifiable":
            fix = (
                "Nothing is known to be wrong; add a signature with EdDSA to have it verified here."
            )
            return CardFinding("warn", f"Field 'signatures': {message}.", fix)


def _missing(members: dict[str, Any]) -> Iterator[CardFinding]:
    """Required fields that are not there, or hold nothing."""
    is_legacy = "supportedInterfaces" not in members and "url" in members
    wanted = [name for name in _CARD if not (is_legacy and name == "supportedInterfaces")]
    places: list[tuple[str, Any, Sequence[str]]] = [("", members, (*wanted, *_MODES))]
    for field, inner in (("skills", _SKILL), ("supportedInterfaces", _INTERFACE)):
        listed = members.get(field)
        entries = listed if isinstance(listed, list) else []
        places += [(f"{field}[{n}].", one, inner) for n, one in enumerate(entries)]
    for place, holder, names in places:
        for name in names:
            value = holder.get(name) if isinstance(holder, dict) else None
            if value in (None, "", []):
                fix = "Required fields must be set, and required lists must not be empty."
                yield CardFinding("fail", f"Field '{place}{name}' is not there, or empty.", fix)


def _faults(card: A2aCard) -> Iterator[CardFinding]:
    twice = [id for id, count in Counter(skill.id for skill in card.skills).items() if count > 1]
    if twice:
        fix = "Give each skill an id of its own: callers ask for it by that."
        yield CardFinding("fail", f"Field 'skills': {len(twice)} id(s) stand there twice.", fix)
    needed = {name for need in card.requirements for name in need}
    if needed - card.schemes.keys():
        fix = "Describe each scheme that is required in 'securitySchemes'."
        yield CardFinding("fail", "Field 'securityRequirements' names an unknown scheme.", fix)
    if any(not scheme.kind for scheme in card.schemes.values()):
        fix = "Use apiKey, http, oauth2, openIdConnect or mtls; other kinds are read by nobody."
        yield CardFinding("fail", "Field 'securitySchemes' has a scheme of no known kind.", fix)


def _doubts(card: A2aCard, url: str) -> Iterator[CardFinding]:
    there = urlsplit(url)
    reached = [urlsplit(each.url) for each in card.interfaces if each.binding in HTTP_BINDINGS]
    if not reached:
        fix = "Offer JSONRPC or HTTP+JSON beside it; fewer clients speak anything else."
        yield CardFinding("warn", "Field 'supportedInterfaces' has neither of these bindings.", fix)
    if not any(each.version == NEWEST for each in card.interfaces):
        fix = f"Offer an interface of {NEWEST}; newer clients may not fall back."
        yield CardFinding("warn", f"No interface is of version {NEWEST}.", fix)
    if any(each.scheme != "https" and each.hostname not in _LOOPBACK for each in reached):
        fix = "Serve it over https: tokens travel with every request."
        yield CardFinding("warn", "An interface is not https.", fix)
    if any(each.hostname != there.hostname for each in reached):
        fix = "Check that it is meant: callers send their tokens there."
        yield CardFinding("warn", "An interface is at another host than the card.", fix)
    if card.required:
        fix = "Mark an extension as required only if nothing works without it."
        yield CardFinding("warn", "Clients without an extension that is required are refused.", fix)
    yield from _written_doubts(card)


def _written_doubts(card: A2aCard) -> Iterator[CardFinding]:
    listed = card.members.get("supportedInterfaces") or ()
    if any(str(each.get("protocolVersion")).count(".") > 1 for each in listed):
        fix = "Write major and minor alone, such as 1.0."
        yield CardFinding("warn", "Field 'protocolVersion' has a patch version.", fix)
    try:
        is_one = payload_of(card.members, "proto") == payload_of(card.members, "sdk")
    except NotCovered:
        fix = "Give each field the type that the specification says."
        yield CardFinding("fail", "A field is of another type than the specification says.", fix)
        return
    if card.signatures and not is_one:
        fix = "Leave out what is empty: the SDKs and the specification sign it differently."
        yield CardFinding("warn", "The card is signed, and something in it is empty.", fix)
