"""Anybody's card."""

from typing import Any

import pytest

from carnet.errors import PeerUnreachable
from carnet.wire.dialects.a2a.card import CardInterface, read_card
from carnet.wire.dialects.a2a.card.reader import MOST_EXTENSIONS, MOST_INTERFACES, MOST_SKILLS
from carnet.wire.grammar import json
from tests.wire.dialects.a2a.card.scene import signed

INTERFACE = {"url": "https://a.example/x", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
LEAST: dict[str, Any] = {"name": "a", "version": "1", "supportedInterfaces": [INTERFACE]}
LEGACY: dict[str, Any] = {
    "name": "old",
    "version": "1",
    "url": "https://a.example/rpc",
    "protocolVersion": "0.3.0",
    "capabilities": {"streaming": True},
    "additionalInterfaces": [
        {"url": "https://a.example/rpc", "transport": "JSONRPC"},
        {"url": "a.example:50051", "transport": "GRPC"},
        {"url": "https://a.example/rest", "transport": "HTTP+JSON"},
    ],
    "securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "x-key"}},
    "security": [{"key": []}],
    "supportsAuthenticatedExtendedCard": True,
}


def read(**changed: Any) -> Any:
    return read_card(json.write({**LEAST, **changed}))


def test_the_first_interface_that_is_spoken_is_chosen() -> None:
    card = read_card(json.write(signed()))
    chosen = card.interface("HTTP+JSON", "JSONRPC", versions=("1.0",))
    assert chosen is not None
    assert (chosen.binding, chosen.version, chosen.tenant) == ("JSONRPC", "1.0", None)
    assert card.interface("GRPC", versions=("1.0",)) is None
    old = card.interface("HTTP+JSON", versions=("0.3",))
    assert old is not None
    assert (old.binding, old.version) == ("HTTP+JSON", "0.3")


def test_a_card_of_the_former_version_is_read_in_its_words() -> None:
    card = read_card(json.write(LEGACY))
    assert card.is_legacy
    assert card.extended
    assert card.interfaces == (
        CardInterface(url="https://a.example/rpc", binding="JSONRPC", version="0.3"),
        CardInterface(url="a.example:50051", binding="GRPC", version="0.3"),
        CardInterface(url="https://a.example/rest", binding="HTTP+JSON", version="0.3"),
    )
    assert card.schemes["key"].kind == "apiKey"
    assert card.requirements == ({"key": ()},)


def test_a_patch_version_counts_for_nothing() -> None:
    card = read(supportedInterfaces=[{**INTERFACE, "protocolVersion": "1.0.1"}])
    assert card.interfaces[0].version == "1.0"


def test_a_tenant_is_kept_to_be_repeated() -> None:
    card = read(supportedInterfaces=[{**INTERFACE, "tenant": "blue"}])
    assert card.interfaces[0].tenant == "blue"


def test_members_that_nobody_knows_pass() -> None:
    card = read(later={"a": [1]}, securitySchemes={"odd": {"laterScheme": {}}})
    assert card.schemes["odd"].kind == ""


def test_what_a_client_must_take_part_in_is_told() -> None:
    extensions = [{"uri": "urn:a", "required": True}, {"uri": "urn:b", "params": {"x": 1}}]
    card = read(capabilities={"extensions": extensions})
    assert card.required == ("urn:a",)
    assert card.extensions[1].params == {"x": 1}


@pytest.mark.parametrize(
    "changed",
    [
        {"name": 1},
        {"name": None},
        {"supportedInterfaces": []},
        {"supportedInterfaces": None},
        {"supportedInterfaces": [INTERFACE] * (MOST_INTERFACES + 1)},
        {"supportedInterfaces": [{**INTERFACE, "protocolVersion": "one"}]},
        {"supportedInterfaces": [{"url": "https://a.example"}]},
        {"skills": [{"id": "s"}] * (MOST_SKILLS + 1)},
        {"skills": [{"name": "s"}]},
        {"signatures": [{"protected": "a", "signature": "b"}] * 9},
        {"capabilities": {"extensions": [{"uri": "u"}] * (MOST_EXTENSIONS + 1)}},
        {"capabilities": {"streaming": "yes"}},
    ],
)
def test_a_card_that_lacks_what_it_must_have_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(PeerUnreachable):
        read(**changed)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/a2a",
        "ftp://a.example",
        "https://user:secret@a.example/",
        "https://a.example/x y",
        "https://a.example/x#y",
        "https://a.example/x?y",
        "https://a.example:99999999/",
        "javascript:alert(1)",
        "https://a.example/\n",
    ],
)
def test_an_interface_that_leads_nowhere_makes_the_card_worthless(url: str) -> None:
    with pytest.raises(PeerUnreachable):
        read(supportedInterfaces=[{**INTERFACE, "url": url}])
    with pytest.raises(PeerUnreachable):
        read_card(json.write({**LEGACY, "url": url}))


@pytest.mark.parametrize("body", [b"", b"[]", b'{"name":"a","name":"b"}', b"{"])
def test_what_is_no_object_is_no_card(body: bytes) -> None:
    with pytest.raises(PeerUnreachable) as refused:
        read_card(body)
    assert "name" not in refused.value.safe_text
