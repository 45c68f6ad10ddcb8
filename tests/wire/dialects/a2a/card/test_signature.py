"""Signatures of cards: ours hold, and whatever is changed in a card breaks them."""

import copy
from base64 import urlsafe_b64encode
from typing import Any

import pytest

from carnet.wire.crypto import ed25519, jws
from carnet.wire.dialects.a2a.card import (
    CardSignature,
    CardVerdict,
    named_keys,
    read_card,
    verify_card,
)
from carnet.wire.dialects.a2a.card.presence import Form, payload_of
from carnet.wire.dialects.a2a.card.signature import MOST_SIGNATURES
from carnet.wire.grammar import json
from tests.wire.dialects.a2a.card.scene import JKU, KID, PUBLIC, SEED, signed

KEYS = {KID: PUBLIC}


def judged(card: dict[str, Any], keys: dict[str, bytes] = KEYS) -> CardVerdict:
    read = read_card(json.write(card))
    return verify_card(read.members, read.signatures, keys)


def resigned(card: dict[str, Any], form: Form) -> dict[str, Any]:
    """The card with one signature of that form."""
    made = jws.write_detached(payload_of(card, form), kid=KID, jku=JKU, sign=ed25519.signer(SEED))
    protected, signature = made
    return {**card, "signatures": [{"protected": protected, "signature": signature}]}


def test_a_card_of_ours_is_verified_with_its_key() -> None:
    assert judged(signed()) == CardVerdict(state="verified", kid=KID, jku=JKU, form="proto")


@pytest.mark.parametrize("form", ["proto", "whole"])
def test_each_form_alone_is_verified(form: Form) -> None:
    assert judged(resigned(signed(), form)).form == form


def test_a_card_that_was_signed_without_what_is_empty_is_verified_as_the_sdks_do() -> None:
    card = {**signed(), "securityRequirements": [{"schemes": {"bearer": {}}}]}
    assert judged(resigned(card, "sdk")).form == "sdk"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("name",), "other"),
        (("description",), "other"),
        (("version",), "9"),
        (("supportedInterfaces", 0, "url"), "https://evil.example/a2a"),
        (("supportedInterfaces", 1, "protocolBinding"), "GRPC"),
        (("supportedInterfaces", 0, "tenant"), "t"),
        (("provider", "organization"), "evil.example"),
        (("capabilities", "streaming"), False),
        (("capabilities", "extensions", 0, "uri"), "urn:other"),
        (("capabilities", "extensions", 0, "required"), True),
        (("capabilities", "extensions", 1, "params", "price"), "9"),
        (("securitySchemes", "bearer", "httpAuthSecurityScheme", "scheme"), "Basic"),
        (("securityRequirements", 0, "schemes", "bearer", "list", 0), "call:*"),
        (("skills", 0, "description"), "other"),
        (("skills", 1, "tags", 0), "other"),
        (("defaultInputModes", 0), "image/png"),
        (("iconUrl",), "https://evil.example/icon"),
    ],
)
def test_whatever_is_changed_breaks_the_signature(path: tuple[Any, ...], value: object) -> None:
    card = copy.deepcopy(signed())
    place: Any = card
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    verdict = judged(card)
    assert (verdict.state, verdict.kid) == ("broken", KID)


def test_members_of_the_former_version_are_covered_by_the_second_signature() -> None:
    card = {**signed(), "url": "https://evil.example"}
    assert judged(card).form == "proto"  # who reads 1.0 does not look at it
    second = {**card, "signatures": card["signatures"][1:]}
    assert judged(second).state == "broken"


def test_what_signatures_are_worth_is_told_in_one_word() -> None:
    card = signed()
    assert judged({**card, "signatures": []}).state == "unsigned"
    assert judged(card, {}).state == "key-unknown"
    assert judged(card, {KID: ed25519.public_of(b"\x06" * 32)}).state == "broken"
    foreign = header({"alg": "ES256", "kid": KID, "typ": "JOSE"})
    assert judged({**card, "signatures": [foreign]}).state == "not-verifiable"
    assert judged({**card, "signatures": [foreign, *card["signatures"]]}).state == "verified"


def header(members: dict[str, Any]) -> dict[str, str]:
    """A signature of sixty-four zeros under a header."""
    return {"protected": encoded(json.write(members)), "signature": encoded(b"\0" * 64)}


def encoded(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "members",
    [
        {"alg": "none", "kid": KID},
        {"alg": "EdDSA"},
        {"alg": "EdDSA", "kid": "../x"},
        {"alg": "EdDSA", "kid": KID, "jwk": {}},
        {"alg": "EdDSA", "kid": KID, "x5c": []},
        {"alg": "EdDSA", "kid": KID, "crit": ["exp"]},
        {"alg": "EdDSA", "kid": KID, "b64": False},
        {"alg": "EdDSA", "kid": KID, "jku": "file:///etc/passwd"},
        {"alg": "EdDSA", "kid": KID, "jku": 1},
        {"kid": KID},
    ],
)
def test_a_header_that_asks_for_more_than_a_key_of_ours_is_broken(members: dict[str, Any]) -> None:
    assert judged({**signed(), "signatures": [header(members)]}).state == "broken"


@pytest.mark.parametrize("text", ["", "=", "a.b", "A" * 5000, "AB"])
def test_a_signature_has_one_spelling(text: str) -> None:
    good = signed()["signatures"][0]
    for member in ("protected", "signature"):
        assert judged({**signed(), "signatures": [{**good, member: text}]}).state == "broken"
    assert named_keys([CardSignature(text, text)]) == []


def test_where_a_key_is_said_to_lie_is_told_and_more_signatures_than_that_are_not_read() -> None:
    card = read_card(json.write(signed()))
    assert [(each.keyid, each.jku) for each in named_keys(card.signatures)] == [(KID, JKU)] * 2
    many = card.signatures * MOST_SIGNATURES
    assert len(named_keys(many)) == MOST_SIGNATURES
