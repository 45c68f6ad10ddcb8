"""Credentials of Mentionable identity 0.2: for one recipient and message, verified, and made."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec.structs import replace
from nacl.signing import SigningKey, VerifyKey

from tests.faults.stores import move_to
from tests.interop.conftest import Databases
from tests.interop.identity.platform import (
    MEMBER,
    Connector,
    base58,
    connector,
    from_base58,
    signed_bytes,
)
from tests.interop.identity.scene import Scene, build, caller_of, code_of, elsewhere, moment, now
from tests.interop.identity.test_evidence import shown
from tests.support.a2a.pages import PageHost
from tests.support.a2a.wire import BINDINGS, message, result_of
from tests.support.model import Answer, Asked, Model
from tests.support.organisation import Organisation
from tests.support.signing.weak_keys import SMALL_ORDER

PAGE = "/connector/.well-known/did.json"
RULE = (
    f'issuer = "did:web:connector.example", methods = ["{MEMBER}"],'
    ' subject_prefixes = ["slack:T123/"]'
)
TRUSTED = """
[identity]
trusted = [
  {{ {rule} }},
  {{ issuer = "did:web:initech.example" }},
  {{ issuer = "did:key:z6Mkf", subject_prefixes = ["slack:"] }},
]

[peers."connector.example"]
url = "{url}/connector"

[peers."initech.example"]
url = "{url}/initech"
"""


class Connected(Scene, frozen=True):
    """A gateway that trusts a connector."""

    platform: Connector

    def present(self, *made: Any, sent: dict[str, Any], bearer: str = "", **more: Any) -> Any:
        """Send a message that carries credentials."""
        metadata = {"mentionable": {"verifiable_credentials": list(made)}}
        given = {"message": sent["message"] | {"metadata": metadata}}
        agent = more.get("agent", "who")
        bearer = bearer or self.peer.jwt(f"@{agent}@acme.example")
        return self.ask(bearer, **given, **more)

    def made(self, **given: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        """A message, and a credential for it."""
        sent = message()
        return sent, self.platform.credential(sent["message"]["messageId"], **given)

    def fetched(self) -> int:
        return len([path for path in self.pages.asked if path.endswith("did.json")])


@pytest.fixture(scope="module")
def scene(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Connected]:
    pages, peer, platform = PageHost(), elsewhere(), connector()
    folder = tmp_path_factory.mktemp("acme")
    gateway = build(folder, peer, pages, TRUSTED.format(url=pages.url, rule=RULE))
    url = database()
    if url:
        move_to(gateway, url)
    with pages.serving():
        pages.pages[PAGE] = platform.document()
        gateway.start()
        yield Connected(gateway, peer, pages, platform)
        gateway.stop()


@pytest.mark.parametrize("binding", BINDINGS)
@pytest.mark.parametrize("form", ["with its context", "without"])
def test_a_credential_says_who_uses_the_platform(scene: Connected, binding: str, form: str) -> None:
    sent, made = scene.made(with_context=form != "without")
    reply = scene.present(made, sent=sent, binding=binding)
    assert caller_of(reply)["evidence"] == [["slack:T123/U456", [], MEMBER]]
    assert shown(scene, reply) == "slack:T123/U456, by did:web:connector.example"
    assert scene.fetched() == 1  # for all of them


def test_it_opens_an_agent_whose_list_names_the_member(scene: Connected) -> None:
    refused = scene.ask(scene.peer.jwt("@books@acme.example"), agent="books")
    assert code_of(refused) == "access_denied"
    sent, made = scene.made(domain="@books@acme.example")
    assert caller_of(scene.present(made, sent=sent, agent="books"))["evidence"]
    named = {"profile": {"username": "slack:T123/U456"}, "id": "slack:T999/U1"}
    sent, made = scene.made(domain="@books@acme.example", subject=named)
    assert code_of(scene.present(made, sent=sent, agent="books")) == "access_denied"


Make = Callable[[Connected, str], Any]


def of(given: dict[str, Any] | None = None, **more: Any) -> Make:
    return lambda scene, id: scene.platform.credential(id, **(given or {}), **more)


FAULTS: dict[str, tuple[Make, str]] = {
    "forged": (
        lambda scene, id: (
            scene.platform.credential(id)
            | {"credentialSubject": {"id": "slack:T123/BOSS", "method": MEMBER}}
        ),
        "invalid_signature",
    ),
    "of another key": (
        lambda scene, id: replace(scene.platform, key=SigningKey.generate()).credential(id),
        "invalid_signature",
    ),
    "for another recipient": (of(domain="@who@initech.example"), "domain_mismatch"),
    "for another agent": (of(domain="@paid@acme.example"), "domain_mismatch"),
    "for another message": (
        lambda scene, _: scene.platform.credential("m-another"),
        "challenge_mismatch",
    ),
    "expired": (
        lambda scene, id: scene.platform.credential(
            id, validFrom=moment(now() - 300), validUntil=moment(now() - 61)
        ),
        "expired",
    ),
    "not yet valid": (
        lambda scene, id: scene.platform.credential(
            id, validFrom=moment(now() + 90), validUntil=moment(now() + 120)
        ),
        "not_yet_valid",
    ),
    "too long": (
        lambda scene, id: scene.platform.credential(id, validUntil=moment(now() + 3660)),
        "limit_exceeded",
    ),
    "on a day that is none": (of(validFrom="2026-02-30T10:00:00Z"), "malformed"),
    "that ends before it begins": (
        lambda scene, id: scene.platform.credential(id, validUntil=moment(now() - 1)),
        "malformed",
    ),
    "of an issuer that nobody trusts": (
        lambda _, id: connector("evil.example").credential(id),
        "untrusted_issuer",
    ),
    "about another workspace": (of(subject={"id": "slack:T999/U1"}), "untrusted_issuer"),
    "by another method": (of(subject={"method": "urn:other"}), "untrusted_issuer"),
    "of an issuer that is no place": (of(issuer="did:key:z6Mkf"), "unsupported_issuer_method"),
    "with a key of somebody else's": (
        of(proof={"verificationMethod": "did:web:evil.example#k1"}),
        "issuer_controller_mismatch",
    ),
    "of another suite": (of(proof={"cryptosuite": "ecdsa-jcs-2019"}), "unsupported_cryptosuite"),
    "for another purpose": (of(proof={"proofPurpose": "authentication"}), "unsupported_profile"),
    "in another context": (of({"@context": ["https://x.example"]}), "unsupported_profile"),
    "with a status that nobody looks at": (of(credentialStatus={}), "unsupported_profile"),
    "with a long name": (of(subject={"profile": {"username": "x" * 300}}), "limit_exceeded"),
    "with a large member": (of(subject={"source": {"x": "y" * 33_000}}), "limit_exceeded"),
    "without a subject": (of(subject={"id": None}), "malformed"),
    "without a proof": (of(proof={"domain": None}), "malformed"),
    "a text": (lambda _, __: "credential", "malformed"),
}
FETCHES = {"forged", "of another key"}  # perhaps its key is another by now: once


@pytest.mark.parametrize("case", FAULTS)
def test_what_is_not_right_is_set_aside_and_shown_and_the_call_goes_on(
    scene: Connected, case: str
) -> None:
    """M37, M38, M41: nothing is fetched for it, and nothing of it is told."""
    make, fault = FAULTS[case]
    sent, made = scene.made()  # whose issuer is known then
    caller_of(scene.present(made, sent=sent))
    before, sent = scene.fetched(), message()
    reply = scene.present(make(scene, sent["message"]["messageId"]), sent=sent)
    assert caller_of(reply)["evidence"] == []
    assert shown(scene, reply) == f"set aside ({fault})"
    assert scene.fetched() - before <= (1 if case in FETCHES else 0)
    assert b"BOSS" not in reply.body


def test_a_carrier_that_is_too_much_or_none_is_set_aside(scene: Connected) -> None:
    """M43."""
    sent, made = scene.made()
    for carried, fault in (
        ([made] * 5, "limit_exceeded"),
        ([made | {"x": "y" * 70_000}], "limit_exceeded"),
        ({}, "malformed"),
    ):
        sent = message("x", metadata={"mentionable": {"verifiable_credentials": carried}})
        assert shown(scene, scene.ask(scene.peer.jwt(), **sent)) == f"set aside ({fault})"


def test_skew_of_a_minute_is_allowed(scene: Connected) -> None:
    """M38."""
    sent, made = scene.made(validFrom=moment(now() + 45), validUntil=moment(now() + 100))
    assert caller_of(scene.present(made, sent=sent))["evidence"]
    sent, made = scene.made(validFrom=moment(now() - 200), validUntil=moment(now() - 30))
    assert caller_of(scene.present(made, sent=sent))["evidence"]


def test_a_credential_is_good_once_and_not_burnt_by_a_forgery(scene: Connected) -> None:
    sent, made = scene.made()
    forged = made | {"credentialSubject": {"id": "slack:T123/X", "method": MEMBER}}
    stolen = scene.present(forged, sent=sent, bearer=scene.gateway.token)
    assert shown(scene, stolen) == "set aside (invalid_signature)"
    first = scene.present(made, sent=sent)
    assert caller_of(first)["evidence"]
    again = scene.present(made, sent=sent)  # the same message of the same sender
    assert result_of(again)["task"]["id"] == result_of(first)["task"]["id"]
    token = scene.gateway.new_token(f"thief-{now()}-{id(sent)}")
    replayed = scene.present(made, sent=sent, bearer=token)
    assert shown(scene, replayed) == "set aside (replayed)"


def test_it_is_neither_recorded_nor_told_again(scene: Connected) -> None:
    sent, made = scene.made()
    task = result_of(scene.present(made, sent=sent))["task"]
    history = scene.ask(scene.peer.jwt(), "GetTask", id=task["id"], historyLength=10)
    assert b"verifiable_credentials" not in history.body
    assert made["proof"]["proofValue"].encode() not in scene.gateway.written() + history.body


def test_a_key_that_is_not_there_has_the_document_fetched_anew_once(scene: Connected) -> None:
    """M41: and a key that somebody else controls, or that is for something else, has not."""
    newer = Connector(scene.platform.did, SigningKey.generate(), "k2")
    path = PAGE.replace("connector", "initech")
    own = Connector("did:web:initech.example", newer.key, "k1")
    scene.pages.pages[path] = own.document()
    subject = {"id": "@u@initech.example"}

    def present(by: Connector) -> str:
        sent = message()
        made = by.credential(sent["message"]["messageId"], subject=subject)
        return shown(scene, scene.present(made, sent=sent))

    before = scene.fetched()
    assert present(own) == "@u@initech.example, by did:web:initech.example"
    assert scene.fetched() == before + 1
    rotated = replace(own, key=SigningKey.generate(), kid="k2")
    scene.pages.pages[path] = rotated.document()
    assert present(rotated) == "@u@initech.example, by did:web:initech.example"
    assert scene.fetched() == before + 2
    for unknown in ("k3", "k4"):
        assert present(replace(own, kid=unknown)) == "set aside (issuer_controller_mismatch)"
    assert scene.fetched() == before + 2  # it was asked for again a moment ago


WEAK: dict[str, Callable[[Connector], bytes]] = {
    "of small order": lambda by: by.document(
        key={"publicKeyMultibase": base58(b"\xed\x01" + bytes.fromhex(SMALL_ORDER[0]))}
    ),
    "of another name": lambda by: by.document(id="did:web:evil.example"),
    "controlled by another": lambda by: by.document(key={"controller": "did:web:evil.example"}),
    "for another purpose": lambda by: by.document(assertionMethod=[]),
    "no document": lambda _: b"[]",
}
SAYS = {"of small order": "key_fetch_failed", "no document": "key_fetch_failed"}


@pytest.mark.parametrize("case", WEAK)
def test_a_document_that_is_not_right_lets_nothing_be_believed(
    case: str, database: Databases, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A21, M41."""
    pages, peer, platform = PageHost(), elsewhere(), connector()
    gateway = build(
        tmp_path_factory.mktemp("weak"),
        peer,
        pages,
        TRUSTED.format(url=pages.url, rule=RULE),
    )
    if url := database():
        move_to(gateway, url)
    with pages.serving():
        pages.pages[PAGE] = WEAK[case](platform)
        gateway.start()
        at = Connected(gateway, peer, pages, platform)
        sent, made = at.made()
        reply = at.present(made, sent=sent)
        fault = SAYS.get(case, "issuer_controller_mismatch")
        assert shown(at, reply) == f"set aside ({fault})"
        assert at.fetched() == 1  # a wrong one is not asked for again
        gateway.stop()


# ------------------------------------------------------------------ made by us


def test_our_own_are_for_one_recipient_and_one_message(
    database: Databases, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Two agents elsewhere are each given one that the other could not use."""
    folder = tmp_path_factory.mktemp("made")
    gateway = Organisation(folder, "acme.example")
    if url := database():
        move_to(gateway, url)
    with Model().serving() as there:
        there.reply = _answering(there.url)
        gateway.configure(
            "".join(
                f'[agents.{name}]\nkind = "a2a"\nurl = "{there.url}/{name}"\n'
                f'audience = "@{name}@globex.example"\n'
                for name in ("one", "two")
            )
        )
        gateway.start()
        for name in ("one", "two"):
            assert gateway.chat("hello", name).status == 200
        document = gateway.get("/.well-known/did.json").json
        found = {}
        for name in ("one", "two"):
            (sent,) = [each.body for each in there.asked if each.path == f"/{name}" and each.body]
            spoken = sent["params"]["message"]
            (made,) = spoken["metadata"]["mentionable"]["verifiable_credentials"]
            proof = made.pop("proof")
            assert proof["domain"] == f"@{name}@globex.example"
            assert proof["challenge"] == spoken["messageId"]
            assert made["issuer"] == document["id"] == "did:web:acme.example"
            assert made["credentialSubject"]["id"] == "@owner@acme.example"
            assert "https://mentionable.dev/ns/identity/v0.2" in spoken["extensions"]
            found[name] = proof["challenge"]
            value = from_base58(proof.pop("proofValue"))
            (key,) = [
                each["publicKeyMultibase"]
                for each in document["verificationMethod"]
                if each["id"] == proof["verificationMethod"]
            ]
            assert proof["verificationMethod"] in document["assertionMethod"]
            public = from_base58(key).removeprefix(b"\xed\x01")
            VerifyKey(public).verify(signed_bytes(made, proof), value)
        assert found["one"] != found["two"]
        gateway.stop()


def _answering(url: str) -> Callable[[Asked], Answer]:
    def answer(asked: Asked) -> Answer:
        if "agent-card" in asked.path:
            name = asked.path.split("/")[1]
            page = {
                "name": name,
                "version": "1",
                "capabilities": {
                    "streaming": False,
                    "extensions": [{"uri": "https://mentionable.dev/ns/identity/v0.2"}],
                },
                "supportedInterfaces": [
                    {
                        "url": f"{url}/{name}",
                        "protocolBinding": "JSONRPC",
                        "protocolVersion": "1.0",
                    }
                ],
                "skills": [],
            }
            return Answer(body=json.dumps(page).encode())
        spoken = {"messageId": "m-1", "role": "ROLE_AGENT", "parts": [{"text": "well"}]}
        body = {"jsonrpc": "2.0", "id": asked.body["id"], "result": {"message": spoken}}
        return Answer(body=json.dumps(body).encode())

    return answer
