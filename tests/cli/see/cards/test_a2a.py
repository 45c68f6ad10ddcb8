"""`carnet agents inspect` and `lint` of A2A cards: ours, one that the SDK signed, and bad ones."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from a2a.client.card_resolver import parse_agent_card
from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.utils.signing import create_agent_card_signer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from carnet.cli.see.cards.a2a import card_place
from carnet.wire.crypto.jwks import write_keys
from tests.support.a2a.pages import CARD, PageHost
from tests.support.organisation import Organisation

JWKS = "/keys.json"


@pytest.fixture(scope="module")
def acme(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Organisation]:
    gateway = Organisation(tmp_path_factory.mktemp("acme"), "acme.example")
    gateway.configure("")
    gateway.start()
    yield gateway
    assert gateway.stop() == 0


@pytest.fixture(scope="module")
def host() -> Iterator[PageHost]:
    with PageHost().serving() as serving:
        yield serving


def foreign(host: PageHost, **changed: Any) -> dict[str, Any]:
    """The card of another agent, without a scope for its token, signed by the SDK."""
    private = Ed25519PrivateKey.generate()
    card = parse_agent_card(
        {
            "name": "foreign",
            "description": "An agent of somebody else.",
            "version": "2",
            "supportedInterfaces": [
                {"url": host.url + "/rpc", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
            ],
            "capabilities": {"streaming": True},
            "securitySchemes": {"token": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
            "securityRequirements": [{"schemes": {"token": {}}}],
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "say", "name": "say", "description": "Says it.", "tags": ["x"]}],
        }
    )
    header = {"alg": "EdDSA", "kid": "theirs", "typ": "JOSE", "jku": host.url + JWKS}
    signed = create_agent_card_signer(private, header)(card)  # type: ignore[arg-type]
    public = private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    host.pages[JWKS] = write_keys({"theirs": public})
    return {**agent_card_to_dict(signed), **changed}


def inspected(acme: Organisation, *arguments: str) -> dict[str, Any]:
    page: dict[str, Any] = json.loads(
        acme.carnet("agents", "inspect", *arguments, "--format", "json").stdout
    )
    return page


def test_our_own_a2a_card_is_shown_with_its_signature(acme: Organisation) -> None:
    page = inspected(acme, "echo", "--dialect", "a2a")
    assert (page["name"], page["protocol"]) == ("echo", "a2a")
    assert page["signature"]["state"] == "verified"
    assert page["signature"]["key_from"] == "carnet.json"
    assert page["interfaces"][0]["url"] == acme.url + "/a2a"
    text = acme.carnet("agents", "inspect", acme.url + CARD).stdout
    assert "echo 1.0.0  (A2A 1.0, 0.3)" in text
    assert "Signature: holds, by a key that its own host shows in carnet.json" in text
    assert "Callers need bearer (call:echo)." in text
    assert "urn:carnet:a2a:terms:v1" in text


def test_samvads_card_is_shown_where_there_are_both(acme: Organisation) -> None:
    assert inspected(acme, "echo")["protocol_version"] == "1.2"
    assert inspected(acme, acme.url)["is_carnet"] is True


def test_a_card_that_the_sdk_signed_is_verified(acme: Organisation, host: PageHost) -> None:
    url = host.show(foreign(host), "/foreign")
    page = inspected(acme, url)  # it has no other card
    assert (page["name"], page["signature"]["state"]) == ("foreign", "verified")
    assert page["signature"]["key_from"] == "jku"
    assert page["needs"] == [{"token": []}]
    assert judged(acme, url)[0] == 0


def test_a_card_that_was_changed_since_is_told(acme: Organisation, host: PageHost) -> None:
    url = host.show(foreign(host, name="other"), "/changed")
    assert inspected(acme, url)["signature"]["state"] == "broken"
    assert "Signature: does NOT hold" in acme.carnet("agents", "inspect", url).stdout
    code, lines = judged(acme, url)
    assert code == 2
    assert any(line.startswith("fail  A2A: Field 'signatures'") for line in lines)


def judged(acme: Organisation, url: str) -> tuple[int, list[str]]:
    ran = acme.try_carnet("agents", "lint", url)
    assert ran.stderr == ""
    return ran.returncode, ran.stdout.splitlines()


def test_both_cards_of_an_agent_are_judged_or_the_one_that_is_named(acme: Organisation) -> None:
    code, lines = judged(acme, acme.url)
    assert code == 0
    assert "ok    A2A: The card has no fault." in lines
    assert any(line.startswith("warn  SAMVAD: ") for line in lines)
    assert judged(acme, acme.url + CARD) == (0, ["ok    A2A: The card has no fault."])
    assert judged(acme, acme.url + "/agents/echo" + CARD)[0] == 0


def test_each_finding_says_what_to_do(acme: Organisation, host: PageHost) -> None:
    url = host.show({"name": "x", "version": "1", "url": "http://a.example/"}, "/poor")
    ran = acme.try_carnet("agents", "lint", url, "--format", "json")
    page = json.loads(ran.stdout)
    assert (ran.returncode, page["ok"], page["cards"]) == (2, False, ["a2a"])
    assert all(problem["fix"] for problem in page["problems"])
    assert {"fail", "warn"} == {problem["status"] for problem in page["problems"]}


def test_a_card_at_the_place_of_older_versions_is_recognised(
    acme: Organisation, host: PageHost
) -> None:
    host.pages["/old/.well-known/agent.json"] = json.dumps(foreign(host)).encode()
    code, lines = judged(acme, host.url + "/old")
    assert code == 2
    assert lines[0] == "fail  A2A: The card lies at /.well-known/agent.json."


def test_an_agent_without_a_card_is_told_as_such(acme: Organisation, host: PageHost) -> None:
    code, lines = judged(acme, host.url + "/nobody")
    assert (code, "Nothing is published at" in lines[0]) == (2, True)
    for arguments in ((host.url + "/nobody" + CARD,), (host.url + "/nobody", "--dialect", "a2a")):
        ran = acme.try_carnet("agents", "inspect", *arguments)
        assert ran.returncode == 1
        assert f"there is no card at {host.url}/nobody{CARD}" in ran.stderr


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://a.example" + CARD, ("https://a.example", CARD)),
        ("https://a.example/x" + CARD + "/", ("https://a.example/x", CARD)),
        (
            "https://a.example/.well-known/agent-card/critic",
            ("https://a.example", "/.well-known/agent-card/critic"),
        ),
        ("https://a.example/.well-known/agent.json", None),
        ("echo", None),
    ],
)
def test_the_url_of_a_card_is_recognised(url: str, place: tuple[str, str] | None) -> None:
    assert card_place(url) == place
