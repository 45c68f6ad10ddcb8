"""The A2A cards of a real gateway, on each store."""

import json
import re
import socket
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest

from carnet.core.people.identity import Actor, Caller
from carnet.gateway.cards.a2a import A2aCardPages, is_known
from carnet.ports.calls.agent import Target
from carnet.runtime.system import SystemClock
from carnet.wire.crypto.jwks import read_keys
from carnet.wire.dialects.a2a.card import ORIGIN_URI, TERMS_URI, OriginCard, read_card, verify_card
from tests.support.house import housed
from tests.support.http import Reply, request
from tests.support.organisation import Organisation

CARD = "/.well-known/agent-card.json"
ORIGIN = b'{"name": "behind", "version": "1"}'


def get(acme: Organisation, path: str, **headers: str) -> Reply:
    fields = [(name.replace("_", "-"), value) for name, value in headers.items()]
    return request("GET", acme.url + path, fields)


def test_the_default_agent_is_at_the_root_and_others_by_their_path(
    acme: Organisation,
) -> None:
    root = get(acme, CARD)
    assert (root.status, root.headers["content-type"]) == (200, "application/json")
    assert root.json["name"] == "echo"
    assert root.json["supportedInterfaces"][0]["url"] == acme.url + "/a2a"
    words = get(acme, "/agents/words" + CARD)
    assert words.json["name"] == "words"
    assert words.json["supportedInterfaces"][0]["url"] == acme.url + "/agents/words/a2a"


def asked_at(acme: Organisation, host: str) -> Any:
    with socket.create_connection(("127.0.0.1", acme.port), timeout=10) as line:
        head = f"GET {CARD} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
        line.sendall(head.encode())
        answer = b"".join(iter(lambda: line.recv(65536), b""))
    return json.loads(answer.partition(b"\r\n\r\n")[2])


def test_at_the_root_the_host_names_the_agent(acme: Organisation) -> None:
    named = {"words.acme.example": "words", "acme.example": "echo", "nobody.example": "echo"}
    assert {host: asked_at(acme, host)["name"] for host in named} == named


def test_an_agent_that_is_not_served_has_no_card(acme: Organisation) -> None:
    unknown = get(acme, "/agents/nobody" + CARD)
    assert (unknown.status, unknown.json["code"]) == (404, "agent_not_found")


def test_a_card_may_be_kept_and_is_not_sent_twice(acme: Organisation) -> None:
    first = get(acme, CARD)
    assert first.headers["cache-control"] == "public, max-age=300"
    assert parsedate_to_datetime(first.headers["last-modified"]).tzinfo is not None
    etag = first.headers["etag"]
    assert re.fullmatch(r'"[0-9a-f]{32}"', etag)
    again = get(acme, CARD, if_none_match=f'"other", W/{etag}')
    assert (again.status, again.body) == (304, b"")
    assert (again.headers["etag"], again.headers["cache-control"]) == (
        etag,
        first.headers["cache-control"],
    )
    assert get(acme, CARD, if_none_match='"other"').body == first.body
    assert get(acme, "/agents/words" + CARD, if_none_match=etag).status == 200


def test_a_card_is_signed_with_a_key_that_the_gateway_shows(acme: Organisation) -> None:
    card = read_card(get(acme, CARD).body)
    keys = read_keys(get(acme, "/.well-known/jwks.json").body)
    verdict = verify_card(card.members, card.signatures, keys)
    assert (verdict.state, verdict.jku) == ("verified", acme.url + "/.well-known/jwks.json")
    shown = get(acme, "/.well-known/carnet.json").json["keys"]
    assert verdict.kid in {key["kid"] for key in shown}


def test_what_a_call_costs_and_is_bounded_by_is_told_before_it(acme: Organisation) -> None:
    """R31."""
    card = read_card(get(acme, "/agents/paid" + CARD).body)
    (terms,) = [each for each in card.extensions if each.uri == TERMS_URI]
    assert (terms.params["price"], terms.params["max_depth"]) == ("0.0002", 4)


@pytest.mark.parametrize(
    ("given", "known"),
    [(None, False), ("*", True), ('"a"', True), ('W/"a"', True), ('"b","a"', True), ("a", False)],
)
def test_if_none_match_names_tags(given: str | None, known: bool) -> None:  # noqa: FBT001
    assert is_known(given, '"a"') is known


def test_cards_hold_members_of_one_version_where_the_operator_wants_it(tmp_path: Path) -> None:
    strict = Organisation(tmp_path, "strict.example")
    file = tmp_path / "carnet.toml"
    file.write_text(file.read_text().replace("[gateway]", "[gateway]\nlegacy_cards = false", 1))
    strict.start()
    try:
        card = get(strict, CARD).json
    finally:
        assert strict.stop() == 0
    assert "protocolVersion" not in card
    assert card["supportedInterfaces"][-1]["protocolVersion"] == "0.3"


async def test_the_card_behind_an_agent_is_embedded_as_it_came(tmp_path: Path) -> None:
    """R22: ours is signed anew, and the origin's own signature is not touched."""
    async with housed(tmp_path) as house:
        cards = made(house.gateway, origin=OriginCard(url="https://origin.example/c", body=ORIGIN))
        card = read_card(json.dumps(cards.extended("echo", caller("call:echo"))).encode())
        (found,) = [each for each in card.extensions if each.uri == ORIGIN_URI]
        assert found.params["card"].encode() == ORIGIN


async def test_an_extended_card_names_the_agents_that_its_reader_may_call(tmp_path: Path) -> None:
    async with housed(tmp_path) as house:
        cards = made(house.gateway)
        assert reached(cards, "call:echo") == {"echo"}
        assert reached(cards, "call:*") == {"echo", "onward", "broken"}
        assert reached(cards, "run:read") == set()


def made(gateway: Any, origin: OriginCard | None = None) -> A2aCardPages:
    def behind(target: Target) -> OriginCard | None:
        return origin if target.name == "echo" else None

    keys, clock = gateway.store.keys, SystemClock()
    return A2aCardPages(gateway.published, keys, domain="acme.example", clock=clock, origins=behind)


def caller(*scopes: str) -> Caller:
    return Caller(actor=Actor(name="token:alice"), scopes=frozenset(scopes))


def reached(cards: A2aCardPages, *scopes: str) -> set[str]:
    page = cards.extended("echo", caller(*scopes))
    card = read_card(json.dumps(page).encode())
    (terms,) = [each for each in card.extensions if each.uri == TERMS_URI]
    return {agent["name"] for agent in terms.params.get("agents", [])}


def test_who_has_shown_a_token_is_given_the_extended_card_and_nobody_else(
    acme: Organisation,
) -> None:
    fields = [("content-type", "application/json"), ("a2a-version", "1.0")]
    shown = [*fields, ("authorization", f"Bearer {acme.token}")]
    over_http = request("GET", acme.url + "/a2a/extendedAgentCard", shown)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "GetExtendedAgentCard"}).encode()
    over_rpc = request("POST", acme.url + "/a2a", shown, body)
    assert over_rpc.json["result"] == over_http.json
    card = read_card(over_http.body)
    (terms,) = [each for each in card.extensions if each.uri == TERMS_URI]
    assert "words" in {agent["name"] for agent in terms.params["agents"]}
    keys = read_keys(get(acme, "/.well-known/jwks.json").body)
    assert verify_card(card.members, card.signatures, keys).state == "verified"
    assert request("GET", acme.url + "/a2a/extendedAgentCard", fields).status == 401
    refused = request("POST", acme.url + "/a2a", fields, body)
    assert "result" not in refused.json
    assert "no-store" in over_http.headers["cache-control"]
