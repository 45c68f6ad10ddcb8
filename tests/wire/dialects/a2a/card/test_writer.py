"""The card of an agent of ours."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carnet.wire.dialects.a2a.card import read_card, write_members
from carnet.wire.dialects.a2a.card.presence import proto_members
from carnet.wire.grammar import json
from tests.wire.dialects.a2a.card.scene import FACTS, REVIEW, signed

URL = "https://gw.acme.example/agents/critic/a2a"
TEXT = st.text(st.characters(codec="utf-8"), min_size=1, max_size=40)


def test_both_bindings_are_named_for_both_versions_the_newest_first() -> None:
    named = [
        (each["protocolBinding"], each["protocolVersion"], each["url"])
        for each in write_members(FACTS)["supportedInterfaces"]
    ]
    assert named == [
        ("JSONRPC", "1.0", URL),
        ("HTTP+JSON", "1.0", URL),
        ("JSONRPC", "0.3", URL),
        ("HTTP+JSON", "0.3", URL),
    ]


def test_what_a_client_of_the_former_version_reads_stands_beside_it() -> None:
    card = write_members(FACTS)
    assert (card["url"], card["preferredTransport"]) == (URL, "JSONRPC")
    assert card["protocolVersion"] == "0.3.0"
    assert {each["transport"] for each in card["additionalInterfaces"]} == {"JSONRPC", "HTTP+JSON"}
    assert card["security"] == [{"bearer": ["call:critic"]}]
    assert card["supportsAuthenticatedExtendedCard"] is True
    scheme = card["securitySchemes"]["bearer"]
    assert (scheme["type"], scheme["scheme"]) == ("http", "Bearer")
    assert scheme["httpAuthSecurityScheme"]["scheme"] == "Bearer"


def test_without_the_former_version_only_members_of_the_present_one_are_there() -> None:
    card = write_members(replace(FACTS, is_legacy=False))
    assert proto_members(card) == card
    assert len(signed(replace(FACTS, is_legacy=False))["signatures"]) == 1


def test_the_permission_that_a_token_must_hold_is_its_scope() -> None:
    needed = write_members(FACTS)["securityRequirements"]
    assert needed == [{"schemes": {"bearer": {"list": ["call:critic"]}}}]


def test_a_skill_has_tags_examples_and_modes() -> None:
    chat, review = write_members(FACTS)["skills"]
    assert (chat["tags"], "examples" in chat) == (["chat"], False)
    assert chat["inputModes"] == ["text/plain", "application/json"]
    assert (review["tags"], review["examples"]) == (["code", "review"], ["Is this loop right?"])
    assert review["inputModes"] == ["application/json"]


def test_the_terms_are_the_params_of_an_extension() -> None:
    """R31: what a caller would learn by being refused."""
    declared = {each["uri"]: each for each in write_members(FACTS)["capabilities"]["extensions"]}
    terms = declared["urn:carnet:a2a:terms:v1"]["params"]
    assert (terms["price"], terms["currency"], terms["max_depth"]) == ("0.0002", "credits", 4)
    assert (terms["calls_per_minute"], terms["body_bytes"]) == (20, 1_048_576)
    assert terms["signature_forms"] == ["carnet", "samvad"]
    assert "urn:example:chain:v1" in declared
    assert "required" not in declared["urn:example:chain:v1"]


def test_a_card_without_terms_declares_none() -> None:
    card = write_members(replace(FACTS, terms=None, extensions=()))
    assert "extensions" not in card["capabilities"]


@given(TEXT, TEXT, st.lists(TEXT, max_size=3), st.lists(TEXT, max_size=3))
def test_nothing_in_a_card_is_empty_and_it_is_read_as_it_was_meant(
    name: str, described: str, tags: list[str], examples: list[str]
) -> None:
    skill = replace(
        REVIEW, name="", description=described, tags=tuple(tags), examples=tuple(examples)
    )
    facts = replace(FACTS, name=name, description=described, skills=(skill,))
    written = write_members(facts)
    assert not list(empties(written))
    card = read_card(json.write(written))
    assert (card.name, card.description, card.version) == (name, described, "1.4.0")
    assert card.skills[0].tags == (tuple(tags) or ("review-code",))
    assert card.skills[0].examples == tuple(examples)
    assert (card.streaming, card.push_notifications, card.extended) == (True, True, True)
    assert card.requirements == ({"bearer": ("call:critic",)},)
    assert card.schemes["bearer"].kind == "http"
    assert card.organization == "acme.example"


def empties(value: Any) -> Any:
    """Whatever is empty or null in it."""
    if value in ("", None, [], {}):
        yield value
    for one in (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    ):
        yield from empties(one)
