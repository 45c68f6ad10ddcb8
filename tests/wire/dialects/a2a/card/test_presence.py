"""What of a card is signed."""

from typing import Any

import pytest

from carnet.wire.dialects.a2a.card import write_members
from carnet.wire.dialects.a2a.card.presence import NotCovered, payload_of, proto_members
from tests.wire.dialects.a2a.card.scene import FACTS, signed


def test_the_worked_example_has_the_form_that_the_text_shows() -> None:
    """Required and optional fields stay, whatever they hold; an empty list that is neither goes."""
    card = {
        "name": "Example Agent",
        "description": "",
        "capabilities": {"streaming": False, "pushNotifications": False, "extensions": []},
        "skills": [],
    }
    assert payload_of(card, "proto") == (
        b'{"capabilities":{"pushNotifications":false,"streaming":false},"description":"",'
        b'"name":"Example Agent","skills":[]}'
    )


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"iconUrl": "", "documentationUrl": None}, {"iconUrl": ""}),
        ({"securityRequirements": [], "securitySchemes": {}}, {}),
        (
            {"provider": {"url": "", "organization": ""}},
            {"provider": {"url": "", "organization": ""}},
        ),
        (
            {"capabilities": {"extensions": [{"uri": "u", "required": False, "params": {}}]}},
            {"capabilities": {"extensions": [{"uri": "u", "params": {}}]}},
        ),
        (
            {"securityRequirements": [{"schemes": {"b": {"list": []}}}]},
            {"securityRequirements": [{"schemes": {"b": {}}}]},
        ),
        (
            {"supportedInterfaces": [{"url": "u", "protocolBinding": "JSONRPC", "tenant": ""}]},
            {"supportedInterfaces": [{"url": "u", "protocolBinding": "JSONRPC"}]},
        ),
        ({"protocolVersion": "0.3.0", "url": "u", "signatures": [1]}, {}),
    ],
)
def test_a_member_is_covered_by_the_rules_of_presence(
    given: dict[str, Any], kept: dict[str, Any]
) -> None:
    assert proto_members(given) == kept


def test_the_sdks_leave_out_whatever_is_empty_however_deep() -> None:
    card = {
        "name": "x",
        "description": "",
        "securityRequirements": [{"schemes": {"b": {"list": []}}}],
        "capabilities": {"extensions": [{"uri": "u", "params": {"a": None, "b": [], "c": 0}}]},
    }
    shown = b'{"capabilities":{"extensions":[{"params":{"c":0},"uri":"u"}]},"name":"x"}'
    assert payload_of(card, "sdk") == shown
    assert payload_of({"description": ""}, "sdk") == b"{}"


def test_the_whole_document_is_covered_without_its_signatures() -> None:
    card = {"url": "u", "name": "", "signatures": [{}]}
    assert payload_of(card, "whole") == b'{"name":"","url":"u"}'


def test_a_card_of_ours_is_one_text_in_the_form_of_the_protocol_and_of_its_sdks() -> None:
    card = signed()
    assert payload_of(card, "proto") == payload_of(card, "sdk")
    assert payload_of(card, "whole") == payload_of(write_members(FACTS), "whole")


@pytest.mark.parametrize(
    "broken",
    [
        {"name": 1},
        {"skills": {}},
        {"provider": []},
        {"capabilities": {"streaming": "yes"}},
        {"capabilities": {"extensions": [{"params": 1}]}},
        {"securitySchemes": [1]},
        {"capabilities": {"extensions": [{"params": {"n": 2**60}}]}},
    ],
)
def test_no_signature_covers_a_member_of_another_type(broken: dict[str, Any]) -> None:
    with pytest.raises(NotCovered):
        payload_of(broken, "proto")
