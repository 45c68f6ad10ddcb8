"""Mentionable cards: ours lead back to where we are called, others' are judged."""

import json
from typing import Any

import pytest

from carnet.core.people.address import Address
from carnet.core.people.identity import CHAT
from carnet.errors import PeerUnreachable
from carnet.wire.dialects.a2a.card import A2aFacts, DeclaredExtension
from carnet.wire.mentions.card import read_card, write_card

FOO = Address("foo", "bar.test")
FACTS = A2aFacts(
    name="foo",
    version="1.0.0",
    description="Says it again.",
    url="https://bar.test/agents/foo",
    organization="bar.test",
    organization_url="https://bar.test",
    permission="call:foo",
    skills=(CHAT,),
    extensions=(
        DeclaredExtension(uri="urn:x", description="X", required=True, params={"a": 1}),
        DeclaredExtension(uri="urn:y"),
    ),
)


def card(**a2a: Any) -> dict[str, Any]:
    given = {"endpoint": "https://bar.test/a2a", "transport": "https+jsonrpc", **a2a}
    return {"address": "@foo@bar.test", "name": "foo", "version": "1.0.0", "a2a": given}


def read(page: object) -> Any:
    return read_card(json.dumps(page).encode(), FOO)


def test_what_is_written_leads_back() -> None:
    found = read(write_card(FACTS, "@foo@bar.test", a2a_card="https://bar.test/c.json"))
    (interface,) = found.interfaces
    assert (interface.url, interface.binding) == ("https://bar.test/agents/foo/a2a", "JSONRPC")
    assert (found.name, found.streaming, found.push_notifications) == ("foo", True, True)
    assert [each.uri for each in found.extensions] == ["urn:x", "urn:y"]
    assert (found.required, found.extensions[0].params) == (("urn:x",), {"a": 1})
    assert [each.id for each in found.skills] == ["chat"]


@pytest.mark.parametrize(
    ("transport", "binding", "streams"),
    [
        ("https+sse", "JSONRPC", True),
        ("https+jsonrpc", "JSONRPC", False),
        ("https+json", "HTTP+JSON", False),
    ],
)
def test_the_transport_says_how_it_is_called(
    transport: str,
    binding: str,
    streams: bool,  # noqa: FBT001
) -> None:
    found = read(card(transport=transport))
    assert (found.interfaces[0].binding, found.streaming) == (binding, streams)
    assert read(card(capabilities={"streaming": True})).streaming is True


def test_members_that_are_not_known_pass_and_those_without_a_name_are_left_out() -> None:
    able = {"extensions": [{"uri": "urn:x", "params": 5}, {"uri": 5}, "x"], "more": 1}
    found = read(card(capabilities=able, skills=[{"id": "a"}, {}, 5], more={}) | {"ext": {}})
    assert [(each.uri, each.params) for each in found.extensions] == [("urn:x", {})]
    assert [each.id for each in found.skills] == ["a"]
    assert read(card(capabilities=5, skills=5) | {"name": 5}).name == "foo"


@pytest.mark.parametrize(
    "page",
    [
        *([], {}, {"address": "@foo@bar.test"}, card() | {"address": "@foo@evil.test"}),
        *(card() | {"address": 5}, card() | {"address": "foo"}, card() | {"a2a": []}),
        *(card(endpoint="ftp://x"), card(endpoint=None), card(endpoint="https://a b/")),
        *(card(transport="grpc"), card(transport=None)),
        card(skills=[{"id": "a"}] * 300),
        card(capabilities={"extensions": [{"uri": "a"}] * 200}),
    ],
)
def test_a_card_that_leads_nowhere_or_is_anothers_is_refused(page: object) -> None:
    with pytest.raises(PeerUnreachable):
        read(page)
    with pytest.raises(PeerUnreachable):
        read_card(b"no json", FOO)
