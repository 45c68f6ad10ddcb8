"""Tokens that a server elsewhere gives for assertions of ours, by a real exchange."""

import json
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from nacl.signing import VerifyKey

from tests.faults.stores import move_to
from tests.interop.conftest import Databases
from tests.interop.identity.issuer import Issuer
from tests.interop.identity.platform import from_base58
from tests.interop.identity.test_federation import CLIENT, CONTINUATION, GRANT, SUBJECT, URI
from tests.support.model import Answer, Asked, Model
from tests.support.organisation import Organisation


class Abroad(NamedTuple):
    """A gateway, an agent elsewhere, and the server that gives tokens for it."""

    acme: Organisation
    there: Model
    server: Issuer

    @property
    def resource(self) -> str:
        return f"{self.there.url}/one"

    def forms(self) -> list[dict[str, list[str]]]:
        return [form for path, _, form in self.server.asked if path == "/token"]

    def shown(self, operation: str) -> list[str]:
        """What was shown to the agent with this operation."""
        return [
            str(each.headers["authorization"])
            for each in self.there.asked
            if each.body.get("method") == operation
        ]


@pytest.fixture(scope="module")
def abroad(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Abroad]:
    acme, server = Organisation(tmp_path_factory.mktemp("acme"), "acme.example"), Issuer()
    if url := database():
        move_to(acme, url)
    with Model().serving() as there:
        there.reply = _Agent(there.url, server)
        acme.configure(
            "".join(
                f'[agents.{name}]\nkind = "a2a"\nurl = "{there.url}/{name}"\nauth = "federation"\n'
                for name in ("one", "slow", "strange", "mixed")
            )
            + f'[egress]\nallow = ["{server.url.removeprefix("http://")}"]\n'
        )
        acme.start()
        yield Abroad(acme, there, server)
        acme.stop()
    server.close()


class _Agent:
    """Answers at once, or works until somebody asks about its task with another token."""

    def __init__(self, url: str, server: Issuer) -> None:
        self._url = url
        server.keys["/meta"] = json.dumps(
            {
                "issuer": server.url,
                "token_endpoint": f"{server.url}/token",
                "grant_types_supported": [GRANT],
            }
        ).encode()
        self._server = server.url

    def __call__(self, asked: Asked) -> Answer:
        name = asked.path.split("/")[1]
        if "agent-card" in asked.path:
            return Answer(body=json.dumps(self._card(name)).encode())
        spoken = {"messageId": "m-1", "role": "ROLE_AGENT", "parts": [{"text": "well"}]}
        result: dict[str, Any] = {"message": spoken}
        if name == "slow":
            is_sent = asked.body["method"] == "SendMessage"
            state = "WORKING" if is_sent or self._began_with(asked) else "COMPLETED"
            if is_sent:
                self._first = asked.headers["authorization"]
            task: dict[str, Any] = {
                "id": "t-1",
                "contextId": "c-1",
                "status": {"state": f"TASK_STATE_{state}"},
            }
            task |= {"artifacts": [{"artifactId": "a", "parts": [{"text": "at last"}]}]}
            result = {"task": task} if is_sent else task
        body = {"jsonrpc": "2.0", "id": asked.body["id"], "result": result}
        return Answer(body=json.dumps(body).encode())

    def _began_with(self, asked: Asked) -> bool:
        return bool(asked.headers["authorization"] == self._first)

    def _card(self, name: str) -> dict[str, Any]:
        server = "http://127.0.0.1:9" if name == "strange" else self._server
        # A server that is listed, and the resource of an agent there that is not this one.
        host = self._server if name == "mixed" else self._url
        params = {"authorization_server": f"{server}/meta", "resource": f"{host}/{name}"}
        return {
            "name": name,
            "version": "1",
            "capabilities": {"streaming": False, "extensions": [{"uri": URI, "params": params}]},
            "supportedInterfaces": [
                {
                    "url": f"{self._url}/{name}",
                    "protocolBinding": "JSONRPC",
                    "protocolVersion": "1.0",
                }
            ],
            "securitySchemes": {"bearer": {"httpAuthSecurityScheme": {"scheme": "bearer"}}},
            "securityRequirements": [{"schemes": {"bearer": {"list": []}}}],
            "skills": [],
        }


def claims_of(acme: Organisation, token: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the claims of an assertion, which the document of its issuer verifies."""
    document = acme.get("/.well-known/did.json").json
    head, body, tail = token.split(".")
    header, claims = (json.loads(urlsafe_b64decode(part + "==")) for part in (head, body))
    (key,) = [
        each["publicKeyMultibase"]
        for each in document["verificationMethod"]
        if each["id"] == header["kid"]
    ]
    public = VerifyKey(from_base58(key).removeprefix(b"\xed\x01"))
    public.verify(f"{head}.{body}".encode(), urlsafe_b64decode(tail + "=="))
    return header, claims


def test_a_token_is_exchanged_for_whom_we_call_and_used_until_its_end(abroad: Abroad) -> None:
    acme, server = abroad.acme, abroad.server
    server.answers["expires_in"] = 300
    for _ in range(2):
        assert acme.chat("hello", "one").text == "well"
    (form,) = abroad.forms()
    assert form["grant_type"] == [GRANT]
    assert form["resource"] == [abroad.resource]
    assert "actor_token" not in form
    header, claims = claims_of(acme, form["subject_token"][0])
    assert (header["typ"], header["alg"]) == (SUBJECT, "EdDSA")
    assert claims["iss"] == "did:web:acme.example"
    assert claims["sub"] == "@owner@acme.example"
    assert claims["aud"] == f"{server.url}/token"
    assert claims["mentionable_method"] == "urn:carnet:auth:person:v1"
    assert claims["exp"] - claims["iat"] == 300
    header, client = claims_of(acme, form["client_assertion"][0])
    assert header["typ"] == CLIENT
    assert (client["iss"], client["sub"]) == ("did:web:acme.example", "did:web:acme.example")
    assert client["jti"] != claims["jti"]
    assert len(set(abroad.shown("SendMessage"))) == 1
    written = acme.written()
    assert form["subject_token"][0].encode() not in written
    assert b"Bearer at-" not in written


def test_a_task_that_outlives_its_token_is_gone_on_with_by_another(abroad: Abroad) -> None:
    abroad.server.answers["expires_in"] = 31  # which is used for a second
    before = len(abroad.forms())
    assert abroad.acme.chat("hello", "slow").text == "at last"
    first, *others = abroad.forms()[before:]
    assert "a2a:message.send" in first["scope"][0]
    assert others
    header, claims = claims_of(abroad.acme, others[0]["subject_token"][0])
    assert (header["typ"], claims["mentionable_task_id"]) == (CONTINUATION, "t-1")
    assert claims["sub"] == "@owner@acme.example"
    assert "mentionable_method" not in claims
    assert "message" not in others[0]["scope"][0]


def test_a_card_leads_us_to_no_other_host(abroad: Abroad) -> None:
    before = len(abroad.server.asked)
    reply = abroad.acme.chat("hello", "strange")
    assert reply.code == "peer_credential_missing"
    assert len(abroad.server.asked) == before


def test_a_card_is_shown_no_token_that_opens_another(abroad: Abroad) -> None:
    """The server is a listed one, which gives tokens for agents of its own too."""
    before = len(abroad.server.asked)
    reply = abroad.acme.chat("hello", "mixed")
    assert reply.code == "peer_credential_missing"
    assert len(abroad.server.asked) == before
    assert not [each for each in abroad.there.asked if each.path == "/mixed"]


def test_a_server_that_refuses_is_told_as_that(abroad: Abroad) -> None:
    abroad.server.answers["refuses"] = True
    abroad.acme.carnet("people", "add", "uma")
    uma = abroad.acme.new_token("uma-1", "--person", "uma")
    before = len(abroad.shown("SendMessage"))
    assert abroad.acme.chat("hello", "one", token=uma).code == "peer_credential_missing"
    assert len(abroad.shown("SendMessage")) == before
