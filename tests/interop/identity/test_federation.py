"""OAuth federation: assertions of a platform's users, exchanged for access tokens of an agent."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from msgspec.structs import replace
from nacl.signing import SigningKey

from tests.faults.stores import move_to
from tests.interop.conftest import Databases
from tests.interop.identity.platform import MEMBER, Connector, connector
from tests.interop.identity.scene import (
    AGENTS,
    Scene,
    build,
    caller_of,
    code_of,
    elsewhere,
    now,
)
from tests.support.a2a.pages import PageHost
from tests.support.a2a.wire import message, result_of
from tests.support.http import Reply, request
from tests.support.organisation import Organisation

SUBJECT = "mentionable-subject-assertion+jwt"
CONTINUATION = "mentionable-task-continuation-assertion+jwt"
CLIENT = "mentionable-client-assertion+jwt"
GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
JWT = "urn:ietf:params:oauth:token-type:jwt"
BEARER = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
URI = "https://mentionable.dev/ns/oauth-federation/v0.1"
RULE = f'issuer = "did:web:connector.example", methods = ["{MEMBER}"], subjects = ["slack:T123/*"]'
CONFIG = """
[identity]
federation = [{{ {rule}, agents = ["who", "asks"] }}]

[peers."connector.example"]
url = "{url}/connector"
"""
EVERY = "a2a:message.send a2a:task.read a2a:task.cancel"


class Federated(Scene, frozen=True):
    """A gateway that gives tokens to a connector."""

    platform: Connector

    @property
    def endpoint(self) -> str:
        return f"{self.gateway.url}/oauth/token"

    def resource(self, agent: str = "who") -> str:
        return f"{self.gateway.url}/agents/{agent}/a2a"

    def subject(self, **claims: Any) -> str:
        given = {"mentionable_method": MEMBER} | claims
        return self.platform.assertion(SUBJECT, given.pop("aud", self.endpoint), **given)

    def client(self, **claims: Any) -> str:
        given = {"sub": self.platform.did} | claims
        return self.platform.assertion(CLIENT, given.pop("aud", self.endpoint), **given)

    def exchange(self, *more: tuple[str, str], **given: str | None) -> Reply:
        """Ask for a token; every member can be another, or be left out."""
        form: dict[str, str | None] = {
            "grant_type": GRANT,
            "subject_token": None,
            "subject_token_type": JWT,
            "client_assertion": None,
            "client_assertion_type": BEARER,
            "resource": self.resource(),
            "scope": EVERY,
        }
        form |= {} if "subject_token" in given else {"subject_token": self.subject()}
        form |= {} if "client_assertion" in given else {"client_assertion": self.client()}
        form |= given
        pairs = [(name, value) for name, value in form.items() if value is not None]
        fields = [("content-type", "application/x-www-form-urlencoded")]
        return request("POST", self.endpoint, fields, urlencode([*pairs, *more]).encode())

    def token(self, **given: Any) -> str:
        reply = self.exchange(**given)
        assert reply.status == 200, reply
        return str(reply.json["access_token"])

    def fetched(self) -> int:
        return len([path for path in self.pages.asked if path.endswith("did.json")])


@pytest.fixture(scope="module")
def scene(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federated]:
    pages, peer, platform = PageHost(), elsewhere(), connector()
    gateway = build(
        tmp_path_factory.mktemp("acme"), peer, pages, CONFIG.format(url=pages.url, rule=RULE)
    )
    if url := database():
        move_to(gateway, url)
    with pages.serving():
        pages.pages["/connector/.well-known/did.json"] = platform.document()
        gateway.start()
        yield Federated(gateway, peer, pages, platform)
        gateway.stop()


def test_the_card_and_the_metadata_say_where_tokens_are_given(scene: Federated) -> None:
    card = scene.gateway.get("/agents/who/.well-known/agent-card.json").json
    (offer,) = [each for each in card["capabilities"]["extensions"] if each["uri"] == URI]
    assert offer["params"]["resource"] == scene.resource()
    page = request("GET", offer["params"]["authorization_server"], []).json
    assert (page["token_endpoint"], page["issuer"]) == (scene.endpoint, scene.gateway.url)
    assert page["grant_types_supported"] == [GRANT]
    assert page["token_endpoint_auth_methods_supported"] == ["private_key_jwt"]
    assert "a2a:message.send" in page["scopes_supported"]
    other = scene.gateway.get("/agents/books/.well-known/agent-card.json").json
    assert URI not in [each["uri"] for each in other["capabilities"]["extensions"]]


def test_an_assertion_of_a_user_is_exchanged_for_a_token_of_the_agent(scene: Federated) -> None:
    reply = scene.exchange()
    assert (reply.status, reply.headers["cache-control"]) == (200, "no-store")
    page = reply.json
    assert (page["token_type"], page["expires_in"], page["scope"]) == ("Bearer", 300, EVERY)
    assert page["issued_token_type"] == "urn:ietf:params:oauth:token-type:access_token"
    found = caller_of(scene.ask(page["access_token"]))
    assert found["how"] == "a2a-oauth"
    assert found["name"] == "oauth:connector.example#slack:T123/U456"
    elsewhere_too = scene.ask(page["access_token"], agent="paid")
    assert code_of(elsewhere_too) == "credential_invalid"  # it is for one agent
    assert page["access_token"].encode() not in scene.gateway.written()


def test_tasks_are_those_of_the_user_and_scopes_permit_what_they_say(scene: Federated) -> None:
    """M50."""
    token = scene.token()
    task = result_of(scene.ask(token))["task"]["id"]
    assert result_of(scene.ask(token, "GetTask", id=task))["id"] == task
    other = scene.token(subject_token=scene.subject(sub="slack:T123/U999"))
    assert code_of(scene.ask(other, "GetTask", id=task)) == "task_not_found"
    sends = scene.token(scope="a2a:message.send")
    assert code_of(scene.ask(sends, "GetTask", id=task)) == "permission_missing"
    reads = scene.token(scope="a2a:task.read")
    assert code_of(scene.ask(reads)) == "permission_missing"


CALLBACK = {"url": "https://hooks.example/x"}
OPERATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "SendMessage": ("a2a:message.send", {}),
    "SendStreamingMessage": ("a2a:message.stream", {}),
    "GetTask": ("a2a:task.read", {}),
    "SubscribeToTask": ("a2a:task.resubscribe", {}),
    "CreateTaskPushNotificationConfig": ("a2a:task.push-config", CALLBACK),
    "ListTaskPushNotificationConfigs": ("a2a:task.push-config", {}),
}


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_scope_is_for_its_own_operation_alone(scene: Federated, operation: str) -> None:
    """Several of them are one permission here, which is not what they were asked for."""
    needed, given = OPERATIONS[operation]
    if "Message" in operation:
        asked = message()
    else:
        task = result_of(scene.ask(scene.token()))["task"]["id"]
        name = "taskId" if "Config" in operation else "id"
        asked = given | {name: task}
    every = {scope for scope, _ in OPERATIONS.values()}
    others = scene.token(scope=" ".join(sorted(every - {needed})))
    refused = scene.ask(others, operation, **asked)
    assert code_of(refused) == "permission_missing"
    assert needed in json.dumps(refused.json)
    own = scene.ask(scene.token(scope=needed), operation, **asked)
    assert b"permission_missing" not in own.body, own


def test_who_asks_to_be_called_back_needs_the_scope_for_it(scene: Federated) -> None:
    asked = message() | {"configuration": {"taskPushNotificationConfig": CALLBACK}}
    refused = scene.ask(scene.token(scope="a2a:message.send"), "SendMessage", **asked)
    assert code_of(refused) == "permission_missing"
    assert "a2a:task.push-config" in json.dumps(refused.json)


def test_who_goes_on_with_a_task_does_nothing_else(scene: Federated) -> None:
    token = scene.token()
    one, two = (result_of(scene.ask(token))["task"]["id"] for _ in range(2))
    goes_on = scene.platform.assertion(CONTINUATION, scene.endpoint, mentionable_task_id=one)
    bound = scene.token(subject_token=goes_on, scope="a2a:task.read")
    assert result_of(scene.ask(bound, "GetTask", id=one))["id"] == one
    assert code_of(scene.ask(bound, "GetTask", id=two)) == "task_not_found"
    assert code_of(scene.ask(bound, "ListTasks")) == "permission_missing"
    assert code_of(scene.ask(bound)) == "permission_missing"
    again = scene.platform.assertion(CONTINUATION, scene.endpoint, mentionable_task_id=one)
    more = scene.exchange(subject_token=again, scope="a2a:message.send")
    assert (more.status, more.json["error"]) == (400, "invalid_request")


REQUESTS: dict[str, tuple[Callable[[Federated], dict[str, Any]], str]] = {
    "for another resource": (lambda at: {"resource": f"{at.resource()}/"}, "invalid_target"),
    "for an agent of another list": (
        lambda at: {"resource": at.resource("books")},
        "invalid_grant",
    ),
    "for nothing": (lambda _: {"resource": None}, "invalid_target"),
    "with an unknown scope": (lambda _: {"scope": "a2a:message.send admin"}, "invalid_scope"),
    "with scopes that a tab joins": (
        lambda _: {"scope": "a2a:message.send\ta2a:task.read"},
        "invalid_scope",
    ),
    "without a scope": (lambda _: {"scope": ""}, "invalid_scope"),
    "of another grant": (lambda _: {"grant_type": "client_credentials"}, "unsupported_grant_type"),
    "with another actor": (lambda _: {"actor_token": "x"}, "invalid_request"),
    "of another client": (lambda _: {"client_id": "did:web:evil.example"}, "invalid_request"),
    "of two issuers": (
        lambda at: {
            "subject_token": connector("evil.example").assertion(
                SUBJECT, at.endpoint, mentionable_method=MEMBER
            )
        },
        "invalid_request",
    ),
    "without a client": (lambda _: {"client_assertion": None}, "invalid_client"),
    "without a subject": (lambda _: {"subject_token": None}, "invalid_request"),
    "of another type": (lambda _: {"subject_token_type": "saml"}, "invalid_request"),
    "for another token": (lambda _: {"requested_token_type": JWT}, "invalid_request"),
}


@pytest.mark.parametrize("case", REQUESTS)
def test_a_request_that_is_not_right_is_refused_in_its_word(scene: Federated, case: str) -> None:
    """M47: nothing is fetched for any of it."""
    make, code = REQUESTS[case]
    before = scene.fetched()
    reply = scene.exchange(**make(scene))
    assert reply.json["error"] == code
    assert reply.status == (401 if code == "invalid_client" else 400)
    assert scene.fetched() == before
    assert "evil" not in json.dumps(reply.json)


def test_a_member_that_stands_twice_is_refused(scene: Federated) -> None:
    """M47."""
    reply = scene.exchange(("resource", scene.resource()))
    assert reply.json["error"] == "invalid_request"
    fields = [("content-type", "application/json")]
    assert request("POST", scene.endpoint, fields, b"{}").json["error"] == "invalid_request"
    form = [("content-type", "application/x-www-form-urlencoded")]
    assert request("POST", scene.endpoint, form, b"\xff&&").json["error"] == "invalid_request"


ASSERTIONS: dict[str, tuple[Callable[[Federated], str], str]] = {
    "of another type": (
        lambda at: at.platform.assertion("JWT", at.endpoint, mentionable_method=MEMBER),
        "wrong-typ",
    ),
    "of a client": (lambda at: at.client(), "wrong-typ"),
    "of another algorithm": (lambda at: at.subject(header={"alg": "HS256"}), "wrong-alg"),
    "without an algorithm": (lambda at: at.subject(header={"alg": "none"}), "wrong-alg"),
    "that brings its key": (lambda at: at.subject(header={"jwk": {}}), "malformed"),
    "no JWT": (lambda _: "x.y", "malformed"),
    "without a number": (lambda at: at.subject(jti=None), "missing-claim"),
    "without a begin": (lambda at: at.subject(iat=None), "missing-claim"),
    "without a method": (lambda at: at.subject(mentionable_method=None), "missing-claim"),
    "by a method that is none": (lambda at: at.subject(mentionable_method="x"), "invalid-method"),
    "by another method": (
        lambda at: at.subject(mentionable_method="urn:other:x"),
        "untrusted-issuer",
    ),
    "of a user nobody listed": (lambda at: at.subject(sub="slack:T999/U1"), "untrusted-issuer"),
    "for another endpoint": (lambda at: at.subject(aud=f"{at.endpoint}/"), "wrong-audience"),
    "for two endpoints": (
        lambda at: at.subject(aud=[at.endpoint, "https://evil.example"]),
        "wrong-audience",
    ),
    "that ends as it begins": (lambda at: at.subject(exp=now(), iat=now()), "invalid-lifetime"),
    "that holds too long": (lambda at: at.subject(iat=now(), exp=now() + 601), "ttl-exceeded"),
    "expired": (lambda at: at.subject(iat=now() - 300, exp=now() - 61), "expired"),
    "not yet valid": (
        lambda at: at.subject(iat=now() + 90, exp=now() + 120),
        "not-yet-valid",
    ),
    "of another key": (
        lambda at: replace(at.platform, key=SigningKey.generate()).assertion(
            SUBJECT, at.endpoint, mentionable_method=MEMBER
        ),
        "invalid-signature",
    ),
    "with a key of somebody else's": (
        lambda at: at.subject(header={"kid": "did:web:evil.example#k1"}),
        "kid-not-authorized",
    ),
}


@pytest.mark.parametrize("case", ASSERTIONS)
def test_an_assertion_that_is_not_right_is_refused_in_its_word(scene: Federated, case: str) -> None:
    """M44, M46, M47: what could not be trusted is not looked up, and nothing is told of it."""
    make, reason = ASSERTIONS[case]
    scene.token()  # whose keys are known then
    before = scene.fetched()
    token = make(scene)
    reply = scene.exchange(subject_token=token)
    assert (reply.status, reply.json["error"]) == (400, "invalid_grant")
    assert reply.json["error_description"] == f"The assertion is refused: {reason}."
    fetches = 1 if reason in {"invalid-signature", "kid-not-authorized"} else 0
    assert scene.fetched() - before <= fetches
    assert token.encode() not in scene.gateway.written()


def test_a_client_that_is_not_right_is_refused_as_one(scene: Federated) -> None:
    for client, reason in (
        (scene.client(sub="slack:T123/U456"), "subject-mismatch"),
        (scene.client(exp=now() - 61, iat=now() - 300), "expired"),
        (scene.subject(), "wrong-typ"),
    ):
        reply = scene.exchange(client_assertion=client)
        assert (reply.status, reply.json["error"]) == (401, "invalid_client")
        assert reason in reply.json["error_description"]


def test_each_assertion_is_good_once_and_not_burnt_by_a_refusal(scene: Federated) -> None:
    """M46."""
    subject = scene.subject()
    forged = replace(scene.platform, key=SigningKey.generate())
    stolen = forged.assertion(CLIENT, scene.endpoint, sub=scene.platform.did)
    refused = scene.exchange(subject_token=subject, client_assertion=stolen)
    assert refused.json["error"] == "invalid_client"
    client = scene.client()
    assert scene.exchange(subject_token=subject, client_assertion=client).status == 200
    again = scene.exchange(subject_token=subject)
    assert "replayed-jti" in again.json["error_description"]
    assert (again.status, again.json["error"]) == (400, "invalid_grant")
    reused = scene.exchange(client_assertion=client)
    assert (reused.status, reused.json["error"]) == (401, "invalid_client")


def test_without_a_rule_nothing_is_offered_and_a_token_is_good_no_more(
    scene: Federated,
) -> None:
    token = scene.token()
    assert caller_of(scene.ask(token))
    config = scene.gateway.folder / "carnet.toml"
    before = config.read_text()
    config.write_text(before.replace("slack:T123/*", "slack:T777/*"))
    scene.gateway.stop()
    scene.gateway.start()
    assert code_of(scene.ask(token)) == "token_invalid"
    config.write_text("\n".join(each for each in before.splitlines() if "federation" not in each))
    scene.gateway.stop()
    scene.gateway.start()
    assert scene.exchange().status == 404
    page = request("GET", f"{scene.gateway.url}/.well-known/oauth-authorization-server", [])
    assert page.status == 404
    config.write_text(before)
    scene.gateway.stop()
    scene.gateway.start()


# ------------------------------------------------------------------ by us


@pytest.fixture(scope="module")
def pair(
    database: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Organisation, Organisation]]:
    """Acme calls Globex, and is known there by tokens that Globex gives for Acme's users."""
    folder, made = tmp_path_factory.mktemp("federated"), []
    for domain in ("acme.example", "globex.example"):
        (folder / domain).mkdir()
        gateway = Organisation(folder / domain, domain)
        if url := database():
            move_to(gateway, url)
        made.append(gateway)
    acme, globex = made
    starter = (acme.folder / "agents.py").read_text()
    acme.configure(
        f'[agents.there]\nkind = "a2a"\nurl = "{globex.url}/agents/who"\nauth = "federation"\n'
        f'[agents.waits]\nkind = "a2a"\nurl = "{globex.url}/agents/asks"\nauth = "federation"\n'
    )
    rule = (
        'issuer = "did:web:acme.example", methods = ["urn:carnet:auth:person:v1"],'
        ' subjects = ["@owner@acme.example", "@uma@acme.example"]'
    )
    own = "".join(
        f'[agents.{name}]\nkind = "python"\ntarget = "agents:{name}"\n' for name in ("who", "asks")
    )
    globex.configure(
        f"[identity]\nfederation = [{{ {rule} }}]\n"
        f'[peers."acme.example"]\nurl = "{acme.url}"\n{own}',
        agents=f"{starter}\n{AGENTS}",
    )
    for each in made:
        each.start()
    yield acme, globex
    for each in made:
        each.stop()


def exchanged(globex: Organisation) -> int:
    """How often a token was asked for there."""
    return sum("/oauth/token" in line for line in globex.log_lines())


def test_each_person_of_ours_has_a_token_of_her_own(
    pair: tuple[Organisation, Organisation],
) -> None:
    acme, globex = pair
    acme.carnet("people", "add", "uma")
    uma = acme.new_token("uma-1", "--person", "uma")
    for token, name in ((None, "owner"), (None, "owner"), (uma, "uma")):
        reply = acme.chat("hello", "there", token=token)
        assert reply.status == 200, reply
        found = json.loads(reply.text)
        assert found["how"] == "a2a-oauth"
        assert found["name"] == f"oauth:acme.example#@{name}@acme.example"
    assert b"eyJhbGciOiJFZERTQSIs" not in acme.written() + globex.written()


def test_who_is_on_no_list_there_calls_nobody(pair: tuple[Organisation, Organisation]) -> None:
    acme, globex = pair
    acme.carnet("people", "add", "eve")
    eve = acme.new_token("eve-1", "--person", "eve")
    before = len(globex.json("runs")["runs"])
    reply = acme.chat("hello", "there", token=eve)
    assert reply.code == "peer_credential_missing"
    assert len(globex.json("runs")["runs"]) == before
