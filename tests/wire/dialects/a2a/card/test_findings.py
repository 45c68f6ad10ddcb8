"""What is wrong with a card."""

from typing import Any

import pytest

from carnet.wire.dialects.a2a.card import CardVerdict, write_members
from carnet.wire.dialects.a2a.card.findings import findings_of, signature_finding
from carnet.wire.grammar import json
from tests.wire.dialects.a2a.card.scene import FACTS, signed

URL = "https://gw.acme.example/agents/critic"
INTERFACE = {"url": URL + "/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
SECRET = "canary-7"
TWICE = {"id": SECRET, "name": "a", "description": "a", "tags": ["a"]}


def messages(**changed: Any) -> list[tuple[str, str]]:
    _, found = findings_of(json.write({**write_members(FACTS), **changed}), url=URL)
    assert all(each.fix.endswith(".") for each in found)
    return [(each.status, each.message) for each in found]


def test_our_own_card_has_no_fault() -> None:
    assert messages() == []


@pytest.mark.parametrize(
    ("changed", "status", "words"),
    [
        ({"name": ""}, "fail", "'name' is not there"),
        ({"description": None}, "fail", "'description' is not there"),
        ({"defaultInputModes": []}, "fail", "'defaultInputModes' is not there"),
        ({"skills": [{"id": "a", "name": "a", "description": "a"}]}, "fail", "'skills[0].tags'"),
        ({"skills": []}, "fail", "'skills' is not there"),
        ({"supportedInterfaces": []}, "fail", "names no interface"),
        ({"supportedInterfaces": [{**INTERFACE, "protocolVersion": "x"}]}, "fail", "a version"),
        ({"securityRequirements": [{"schemes": {"k": {}}}]}, "fail", "an unknown scheme"),
        ({"securitySchemes": {"bearer": {"odd": {}}}}, "fail", "of no known kind"),
        ({"iconUrl": 1}, "fail", "of another type"),
        ({"supportedInterfaces": [{**INTERFACE, "protocolVersion": "1.0.1"}]}, "warn", "a patch"),
        ({"supportedInterfaces": [{**INTERFACE, "protocolVersion": "0.3"}]}, "warn", "version 1.0"),
        ({"supportedInterfaces": [{**INTERFACE, "url": "http://a.example/"}]}, "warn", "not https"),
        (
            {"supportedInterfaces": [{**INTERFACE, "url": "https://b.example/"}]},
            "warn",
            "another host",
        ),
        ({"supportedInterfaces": [{**INTERFACE, "protocolBinding": "GRPC"}]}, "warn", "neither"),
        ({"capabilities": {"extensions": [{"uri": SECRET, "required": True}]}}, "warn", "required"),
        (
            {"skills": [{"id": SECRET, "name": "a", "description": "a", "tags": ["a"]}] * 2},
            "fail",
            "twice",
        ),
    ],
)
def test_a_fault_is_told_by_field_and_constraint(
    changed: dict[str, Any], status: str, words: str
) -> None:
    found = messages(**changed)
    assert [each for each in found if each[0] == status and words in each[1]], found
    assert SECRET not in str(found)


def test_a_signed_card_with_something_empty_in_it_is_doubtful() -> None:
    body = json.write({**signed(), "securityRequirements": [{"schemes": {"bearer": {}}}]})
    _, found = findings_of(body, url=URL)
    assert [each.status for each in found if "something in it is empty" in each.message] == ["warn"]


def test_what_is_no_card_is_told_as_such() -> None:
    card, found = findings_of(b"no", url=URL)
    assert card is None
    assert [each.status for each in found] == ["fail"]
    card, found = findings_of(b'{"name":1}', url=URL)
    assert card is None
    assert found[-1].status == "fail"


@pytest.mark.parametrize(
    ("state", "status"),
    [
        ("verified", None),
        ("broken", "fail"),
        ("unsigned", "warn"),
        ("key-unknown", "warn"),
        ("not-verifiable", "warn"),
    ],
)
def test_what_a_signature_is_worth_says_what_to_do(state: Any, status: str | None) -> None:
    found = signature_finding(CardVerdict(state=state, detail="so it is"))
    assert (found.status if found else None) == status
