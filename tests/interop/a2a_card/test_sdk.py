"""Our cards as the SDK of the protocol reads and verifies them, in both of its versions."""

from collections.abc import Iterator

import httpx
import jwt
import pytest
from a2a.client.card_resolver import A2ACardResolver
from a2a.compat.v0_3.types import AgentCard as LegacyCard
from a2a.types import AgentCard
from a2a.utils.signing import InvalidSignaturesError, create_signature_verifier

from tests.support.http import request
from tests.support.organisation import Organisation

CARD = "/.well-known/agent-card.json"


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    gateway = Organisation(tmp_path_factory.mktemp("acme"), "acme.example")
    gateway.configure("")
    gateway.start()
    yield gateway
    assert gateway.stop() == 0


def key_of(kid: str | None, jku: str | None) -> jwt.PyJWK:
    """The key where the card says that it lies; a test may believe it."""
    assert kid is not None
    assert jku is not None
    return jwt.PyJWKSet.from_dict(request("GET", jku).json)[kid]


async def resolved(url: str) -> AgentCard:
    verify = create_signature_verifier(key_of, ["EdDSA"])
    async with httpx.AsyncClient() as http:
        return await A2ACardResolver(http, url).get_agent_card(signature_verifier=verify)


async def test_the_sdk_reads_and_verifies_our_card(acme: Organisation) -> None:
    card = await resolved(acme.url)
    named = [(each.protocol_binding, each.protocol_version) for each in card.supported_interfaces]
    assert named == [
        ("JSONRPC", "1.0"),
        ("HTTP+JSON", "1.0"),
        ("JSONRPC", "0.3"),
        ("HTTP+JSON", "0.3"),
    ]
    assert card.capabilities.streaming
    assert card.capabilities.push_notifications
    assert card.capabilities.extended_agent_card
    assert card.security_schemes["bearer"].http_auth_security_scheme.scheme == "Bearer"
    assert list(card.security_requirements[0].schemes["bearer"].list) == ["call:echo"]
    assert [skill.id for skill in card.skills] == ["chat"]
    assert (await resolved(acme.url + "/agents/echo")).name == "echo"


async def test_the_sdk_refuses_our_card_when_a_word_of_it_is_changed(acme: Organisation) -> None:
    card = await resolved(acme.url)
    card.supported_interfaces[0].url = "https://evil.example/a2a"
    with pytest.raises(InvalidSignaturesError):
        create_signature_verifier(key_of, ["EdDSA"])(card)


def test_a_client_of_the_former_version_reads_our_card(acme: Organisation) -> None:
    card = LegacyCard.model_validate(request("GET", acme.url + CARD).json)
    assert (card.url, card.preferred_transport) == (acme.url + "/a2a", "JSONRPC")
    assert card.protocol_version == "0.3.0"
    assert card.security == [{"bearer": ["call:echo"]}]
    assert card.supports_authenticated_extended_card
    assert card.security_schemes is not None
    assert card.security_schemes["bearer"].root.type == "http"
