"""Access tokens of OAuth: taken of configured issuers, and obtained for calls of ours."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from msgspec import Struct

from tests.faults.stores import move_to
from tests.interop.conftest import Databases
from tests.interop.identity.issuer import Issuer
from tests.interop.identity.scene import (
    AGENTS,
    Elsewhere,
    b64url,
    caller_of,
    code_of,
    elsewhere,
    now,
)
from tests.support.a2a.wire import BINDINGS, JSON, VERSION, message, result_of, written
from tests.support.http import Reply, request
from tests.support.organisation import Organisation

NAMED = "https://login.example"
AT_GLOBEX = """
[identity.oauth."https://login.example"]
jwks_url = "{issuer}/keys"
[identity.oauth."https://login.example".scopes]
"a2a:message.send" = ["call:who", "call:asks", "pay"]
"a2a:task.read" = ["run:read"]

[identity.oauth."https://login.example/realms/b"]
jwks_url = "{issuer}/keys"
scopes = {{ "a2a:message.send" = ["call:who"], "a2a:task.read" = ["run:read"] }}

[identity.oauth."{issuer}"]
introspection_url = "{issuer}/introspect"
client_id = "globex"
client_secret = {{ file = "../client.secret" }}
audience = ["https://globex.example/who"]
scopes = {{ "a2a:message.send" = ["call:who"] }}

[agents.who]
kind = "python"
target = "agents:who"

[agents.asks]
kind = "python"
target = "agents:asks"

[agents.paid]
kind = "python"
target = "agents:who"
price = "0.01"

[limits]
waiting_per_caller = 2
"""
AT_ACME = """
[agents.there]
kind = "a2a"
url = "{globex}/agents/who"

[agents.there.oauth]
token_url = "{issuer}/token"
client_id = "acme id"
client_secret = {{ file = "../client.secret" }}
scope = "a2a:message.send"
resource = "https://globex.example/who"
"""
SECRET = "s3cret/with:signs"


class Scene(Struct, frozen=True):
    """Acme obtains tokens for calls to Globex, which takes those of two issuers."""

    acme: Organisation
    globex: Organisation
    issuer: Issuer
    key: Elsewhere
    rsa: rsa.RSAPrivateKey

    def ask(
        self,
        bearer: str,
        operation: str = "SendMessage",
        *,
        agent: str = "who",
        binding: str = "JSONRPC",
        **given: Any,
    ) -> Reply:
        method, path, body = written(binding, operation, **(given or message()))
        own = [("authorization", f"Bearer {bearer}"), VERSION, *([JSON] if body else [])]
        return request(method, f"{self.globex.url}/agents/{agent}/a2a{path}", own, body)

    def jwt(self, *, header: dict[str, Any] | None = None, **claims: Any) -> str:
        """An access token of the issuer whose keys are known."""
        head = {"alg": "EdDSA", "kid": self.key.kid, "typ": "at+jwt"} | (header or {})
        given = {
            "iss": NAMED,
            "sub": "user-1",
            "aud": "@who@globex.example",
            "exp": now() + 300,
            "scope": "a2a:message.send a2a:task.read unknown",
        } | claims
        return self.key.signed(json.dumps(head), json.dumps(given))

    def rs256(self, **claims: Any) -> str:
        token = self.jwt(header={"alg": "RS256", "kid": "rsa-1", "typ": "JWT"}, **claims)
        text = token.rpartition(".")[0]
        signature = self.rsa.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{text}.{b64url(signature)}"

    def shown(self) -> bytes:
        """The keys of the issuer."""
        numbers = self.rsa.public_key().public_numbers()
        jwk = {
            "kty": "RSA",
            "kid": "rsa-1",
            "alg": "RS256",
            "n": b64url(numbers.n.to_bytes(256)),
            "e": b64url(numbers.e.to_bytes(3)),
        }
        keys = json.loads(self.key.keys())["keys"]
        return json.dumps({"keys": [*keys, jwk, {"kty": "EC", "kid": "ec"}]}).encode()


@pytest.fixture(scope="module")
def scene(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder, issuer = tmp_path_factory.mktemp("oauth"), Issuer()
    (folder / "client.secret").write_text(SECRET)
    (folder / "client.secret").chmod(0o600)
    made = []
    for domain in ("acme.example", "globex.example"):
        (folder / domain).mkdir()
        gateway = Organisation(folder / domain, domain)
        url = database()
        if url:
            move_to(gateway, url)
        made.append(gateway)
    acme, globex = made
    starter = (globex.folder / "agents.py").read_text()
    globex.configure(AT_GLOBEX.format(issuer=issuer.url), agents=f"{starter}\n{AGENTS}")
    acme.configure(AT_ACME.format(issuer=issuer.url, globex=globex.url))
    private = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    scene = Scene(acme, globex, issuer, elsewhere("login.example"), private)
    issuer.keys["/keys"] = scene.shown()
    for each in made:
        each.start()
    yield scene
    for each in made:
        each.stop()
    issuer.close()


@pytest.mark.parametrize("binding", BINDINGS)
def test_the_subject_of_an_access_token_is_who_calls(scene: Scene, binding: str) -> None:
    for token in (scene.jwt(), scene.rs256(aud=["x", "globex.example"])):
        found = caller_of(scene.ask(token, binding=binding))
        assert (found["how"], found["name"]) == ("a2a-oauth", "oauth:login.example#user-1")
    assert scene.issuer.times("/keys") == 1


REFUSED: dict[str, tuple[Any, str]] = {
    "for another audience": (
        lambda scene: scene.jwt(aud="@who@acme.example"),
        "credential_invalid",
    ),
    "for nobody": (lambda scene: scene.jwt(aud=[]), "credential_invalid"),
    "expired": (lambda scene: scene.jwt(exp=now() - 61), "credential_invalid"),
    "not yet valid": (lambda scene: scene.jwt(nbf=now() + 90), "credential_invalid"),
    "no end": (lambda scene: scene.jwt(exp=None), "credential_invalid"),
    "forged": (lambda scene: scene.jwt()[:-8] + "AAAAAAAA", "credential_invalid"),
    "forged with RSA": (lambda scene: scene.rs256()[:-8] + "AAAAAAAA", "credential_invalid"),
    "alg none": (lambda scene: scene.jwt(header={"alg": "none"}), "credential_invalid"),
    "alg HS256": (lambda scene: scene.jwt(header={"alg": "HS256"}), "credential_invalid"),
    "the key of another algorithm": (
        lambda scene: scene.jwt(header={"alg": "RS256"}),
        "credential_invalid",
    ),
    "a key that leads elsewhere": (
        lambda scene: scene.jwt(header={"jku": "http://127.0.0.1:1"}),
        "credential_invalid",
    ),
    "crit": (lambda scene: scene.jwt(header={"crit": []}), "credential_invalid"),
    "another type": (lambda scene: scene.jwt(header={"typ": "logout+jwt"}), "credential_invalid"),
    "an unknown key": (lambda scene: scene.jwt(header={"kid": "nobody"}), "credential_invalid"),
    "no subject": (lambda scene: scene.jwt(sub=""), "credential_invalid"),
    "an issuer that nobody configured": (
        lambda scene: scene.jwt(iss="https://evil.example"),
        "credential_invalid",
    ),
    "a token of nobody": (lambda _: "at-unknown", "token_invalid"),
    "no scope for it": (lambda scene: scene.jwt(scope=""), "permission_missing"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_an_access_token_that_is_not_right_is_refused(scene: Scene, case: str) -> None:
    make, code = REFUSED[case]
    token = make(scene)
    reply = scene.ask(token)
    assert code_of(reply) == code
    assert scene.issuer.times("/keys") <= 1
    assert token.encode() not in reply.body + scene.globex.written()


def test_scopes_permit_what_they_were_mapped_to_and_no_more(scene: Scene) -> None:
    other = scene.ask(scene.jwt(aud="globex.example"), agent="paid")
    assert code_of(other) == "permission_missing"
    task = result_of(scene.ask(scene.jwt()))["task"]["id"]
    assert result_of(scene.ask(scene.jwt(), "GetTask", id=task))["id"] == task
    hers = scene.ask(scene.jwt(sub="user-2"), "GetTask", id=task)
    assert code_of(hers) == "task_not_found"
    unread = scene.ask(scene.jwt(scope="a2a:message.send"), "GetTask", id=task)
    assert code_of(unread) == "permission_missing"


def test_the_users_of_two_issuers_at_one_host_are_not_the_same_callers(scene: Scene) -> None:
    """Realms of one server are as many issuers, and each names its users as it likes."""
    task = result_of(scene.ask(scene.jwt()))["task"]["id"]
    namesake = scene.jwt(iss=f"{NAMED}/realms/b")
    assert caller_of(scene.ask(namesake))["name"] == "oauth:login.example/realms/b#user-1"
    assert code_of(scene.ask(namesake, "GetTask", id=task)) == "task_not_found"
    assert result_of(scene.ask(scene.jwt(), "GetTask", id=task))["id"] == task


def test_names_that_would_be_one_are_refused_at_the_start(scene: Scene) -> None:
    config = scene.globex.folder / "carnet.toml"
    before = config.read_text()
    config.write_text(before.replace(f"{NAMED}/realms/b", f"{NAMED}/"))
    try:
        found = scene.globex.try_carnet("config", "check")
    finally:
        config.write_text(before)
    assert found.returncode == 2
    assert "an issuer 'login.example' with the name that another issuer has" in found.stderr


def test_what_one_user_leaves_waiting_costs_the_others_no_place(scene: Scene) -> None:
    """Those of one issuer are as many callers: none speaks for another."""

    def state_of(user: str) -> str:
        asked = scene.ask(scene.jwt(aud="@asks@globex.example", sub=user), agent="asks")
        return str(result_of(asked)["task"]["status"]["state"]).removeprefix("TASK_STATE_")

    waits = "INPUT_REQUIRED"
    assert [state_of("user-1") for _ in range(3)] == [waits, waits, "FAILED"]
    assert state_of("user-2") == waits


def test_an_issuer_is_asked_about_a_token_that_names_nobody(scene: Scene) -> None:
    scene.issuer.active["opaque-1"] = {
        "active": True,
        "sub": "user-9",
        "aud": "https://globex.example/who",
        "exp": now() + 300,
        "scope": "a2a:message.send",
    }
    before = scene.issuer.times("/introspect")
    for _ in range(3):
        found = caller_of(scene.ask("opaque-1"))
        assert (found["how"], found["name"].endswith("#user-9")) == ("a2a-oauth", True)
    assert scene.issuer.times("/introspect") == before + 1  # it is remembered
    for _ in range(3):
        assert code_of(scene.ask("opaque-2")) == "token_invalid"
    assert scene.issuer.times("/introspect") == before + 2  # and so is what nobody knows
    scene.issuer.active["opaque-3"] = scene.issuer.active["opaque-1"] | {"aud": "https://other"}
    assert code_of(scene.ask("opaque-3")) == "token_invalid"
    _, fields, form = next(
        each for each in scene.issuer.asked if each[2].get("token") == ["opaque-1"]
    )
    assert form["token_type_hint"] == ["access_token"]
    given = base64.b64decode(fields["authorization"].removeprefix("Basic ")).decode()
    assert given == "globex:s3cret%2Fwith%3Asigns"


def test_our_own_tokens_are_asked_about_nowhere(scene: Scene) -> None:
    before = scene.issuer.times("/introspect")
    assert caller_of(scene.ask(scene.globex.token))["how"] == "token"
    assert code_of(scene.ask("ck_wrong")) == "token_invalid"
    assert scene.issuer.times("/introspect") == before


def test_a_token_is_obtained_for_the_agent_that_is_called_and_used_until_its_end(
    scene: Scene,
) -> None:
    number = len(scene.issuer.asked) + 1
    for each in range(number, number + 3):
        scene.issuer.active[f"at-{each}"] = {
            "active": True,
            "sub": "acme",
            "aud": "https://globex.example/who",
            "exp": now() + 300,
            "scope": "a2a:message.send",
        }
    for _ in range(3):
        reply = scene.acme.chat("hello", "there")
        assert reply.status == 200, reply
        assert json.loads(reply.text)["how"] == "a2a-oauth"
    assert scene.issuer.times("/token") == 1
    _, fields, form = next(each for each in scene.issuer.asked if each[0] == "/token")
    assert form == {
        "grant_type": ["client_credentials"],
        "scope": ["a2a:message.send"],
        "resource": ["https://globex.example/who"],
    }
    given = base64.b64decode(fields["authorization"].removeprefix("Basic ")).decode()
    assert given == "acme%20id:s3cret%2Fwith%3Asigns"
    assert SECRET.encode() not in scene.acme.written()


def test_a_token_that_is_refused_is_obtained_anew(scene: Scene) -> None:
    scene.issuer.active.clear()
    before = scene.issuer.times("/token")
    scene.globex.kill()
    scene.globex.start()  # what it remembers of tokens is gone
    refused = scene.acme.chat("hello", "there")
    assert (refused.status, refused.code) == (502, "peer_refused")
    scene.acme.chat("hello", "there")
    assert scene.issuer.times("/token") > before


def test_each_user_has_a_rate(scene: Scene) -> None:
    scene.globex.stop()
    config = scene.globex.folder / "carnet.toml"
    limit = "[limits]\nsender_calls_per_minute = 3\n"
    config.write_text(config.read_text().replace("[limits]\n", limit))
    scene.globex.start()
    for _ in range(3):
        assert caller_of(scene.ask(scene.jwt(sub="user-3")))
    assert code_of(scene.ask(scene.jwt(sub="user-3"))) == "rate_limited"
    assert caller_of(scene.ask(scene.jwt(sub="user-4")))
