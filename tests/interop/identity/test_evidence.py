"""Identity evidence: verified, used once, and set aside where it is not right."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.faults.stores import move_to
from tests.interop.conftest import Databases
from tests.interop.identity.scene import (
    Elsewhere,
    Scene,
    b64url,
    build,
    caller_of,
    carrying,
    code_of,
    elsewhere,
    moment,
    now,
)
from tests.support.a2a.pages import PageHost
from tests.support.a2a.wire import BINDINGS, message, result_of
from tests.support.signing.weak_keys import SMALL_ORDER

SLACK = "slack.example"
MEMBER = "urn:mentionable:auth:slack-workspace-member:v0.1"
SLACK_RULE = (
    f'{{ issuer = "slack.example", methods = ["{MEMBER}"], assurance = ["platform"],'
    ' subject_prefixes = ["slack:T123/"] }'
)
TRUSTED = """
[identity]
contact = "mailto:ops@acme.example"
trusted = [
  {{ issuer = "globex.example" }},
  {slack_rule},
  {{ issuer = "initech.example" }},
]

[peers."slack.example"]
url = "{url}"
keys = ["{slack}"]

[peers."initech.example"]
url = "{url}/initech"
"""


class Trusting(Scene, frozen=True):
    """A gateway that trusts three issuers: two by keys that are written down."""

    slack: Elsewhere
    initech: Elsewhere


@pytest.fixture(scope="module")
def scene(database: Databases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trusting]:
    peer, slack, initech = elsewhere(), elsewhere(SLACK), elsewhere("initech.example")
    pages = PageHost()
    folder = tmp_path_factory.mktemp("acme")
    more = TRUSTED.format(url=pages.url, slack=slack.public, slack_rule=SLACK_RULE)
    gateway = build(folder, peer, pages, more)
    url = database()
    if url:
        move_to(gateway, url)
    with pages.serving():
        gateway.start()
        yield Trusting(gateway, peer, pages, slack, initech)
        gateway.stop()


def shown(scene: Scene, reply: Any) -> str:
    """What the operator is shown of the evidence of a call."""
    task = result_of(reply)["task"]
    run = str(next(each["run"] for each in task["metadata"].values() if "run" in each))
    (turn,) = scene.gateway.json("explain", run)["turns"]
    found = {each["guard"]: each["found"] for each in turn["grounds"]}
    return str(found.get("evidenced", ""))


@pytest.mark.parametrize("binding", BINDINGS)
def test_the_worked_example_of_the_seed_is_read_and_shown(scene: Trusting, binding: str) -> None:
    """The row mentionable:evidence:on-behalf-of; M25."""
    evidence = scene.peer.evidence(["x.example", "@who@acme.example"])
    reply = scene.ask(scene.peer.jwt(), binding=binding, **carrying(evidence))
    found = caller_of(reply)
    method = "urn:mentionable:auth:a2a-agent:v0.1"
    assert found["evidence"] == [["@agent-a@globex.example", ["mailto:u@example.com"], method]]
    assert found["behalf"] == ["mailto:u@example.com"]
    assert shown(scene, reply) == (
        "@agent-a@globex.example for mailto:u@example.com, by globex.example"
    )


def test_evidence_comes_with_a_token_of_ours_as_well(scene: Trusting) -> None:
    found = caller_of(scene.ask(scene.gateway.token, **carrying(scene.peer.evidence())))
    assert [each[0] for each in found["evidence"]] == ["@agent-a@globex.example"]
    assert found["behalf"] == []  # it is not the word of who calls


def test_methods_and_assurances_that_nobody_knows_are_kept_as_they_are(scene: Trusting) -> None:
    evidence = scene.peer.evidence(method="urn:example:new", assurance="telepathy")
    assert (
        caller_of(scene.ask(scene.peer.jwt(), **carrying(evidence)))["evidence"][0][2]
        == "urn:example:new"
    )


Make = Callable[[Trusting], Any]
FAULTS: dict[str, tuple[Make, str]] = {
    "forged": (
        lambda scene: scene.peer.evidence() | {"subject": "@boss@globex.example"},
        "invalid_signature",
    ),
    "of another key": (lambda _: elsewhere().evidence(), "invalid_signature"),
    "for another recipient": (
        lambda scene: scene.peer.evidence("@who@initech.example"),
        "audience_mismatch",
    ),
    "for another agent": (
        lambda scene: scene.peer.evidence("@paid@acme.example"),
        "audience_mismatch",
    ),
    "expired": (
        lambda scene: scene.peer.evidence(
            issued_at=moment(now() - 200), expires_at=moment(now() - 61)
        ),
        "expired",
    ),
    "without an end and old": (
        lambda scene: scene.peer.evidence(issued_at=moment(now() - 700), expires_at=None),
        "expired",
    ),
    "not yet valid": (
        lambda scene: scene.peer.evidence(not_before=moment(now() + 90)),
        "not_yet_valid",
    ),
    "made in the future": (
        lambda scene: scene.peer.evidence(
            issued_at=moment(now() + 90), expires_at=moment(now() + 100)
        ),
        "not_yet_valid",
    ),
    "too long": (
        lambda scene: scene.peer.evidence(expires_at=moment(now() + 3660)),
        "limit_exceeded",
    ),
    "of an issuer that nobody trusts": (
        lambda _: elsewhere("evil.example").evidence(),
        "untrusted_issuer",
    ),
    "about somebody of another organisation": (
        lambda scene: scene.peer.evidence(subject="@boss@initech.example"),
        "untrusted_issuer",
    ),
    "about another workspace": (
        lambda scene: slack(scene, subject="slack:T999/U1"),
        "untrusted_issuer",
    ),
    "by another method": (lambda scene: slack(scene, method="urn:other"), "untrusted_issuer"),
    "of another assurance": (lambda scene: slack(scene, assurance="wallet"), "untrusted_issuer"),
    "verified elsewhere": (
        lambda scene: scene.peer.evidence(proof={"type": "transport", "verified_by": "us"}),
        "unsupported_profile",
    ),
    "of another algorithm": (
        lambda scene: scene.peer.evidence(proof={"alg": "HS256"}),
        "unsupported_cryptosuite",
    ),
    "without a number": (lambda scene: scene.peer.evidence(id=None), "malformed"),
    "without a subject": (lambda scene: scene.peer.evidence(subject=None), "malformed"),
    "with a long subject": (
        lambda scene: scene.peer.evidence(subject="@" + "a" * 600),
        "limit_exceeded",
    ),
    "on a day that is none": (
        lambda scene: scene.peer.evidence(issued_at="2026-02-30T10:00:00Z"),
        "malformed",
    ),
    "by week": (lambda scene: scene.peer.evidence(issued_at="2026-W46-3"), "malformed"),
    "for whom in one text": (
        lambda scene: scene.peer.evidence(on_behalf_of="mailto:u@example.com"),
        "malformed",
    ),
    "a text": (lambda _: "evidence", "malformed"),
}


def slack(scene: Trusting, **given: Any) -> dict[str, Any]:
    """What a connector of Slack says of somebody."""
    usual = {
        "subject": "slack:T123/U456",
        "method": MEMBER,
        "assurance": "platform",
        "on_behalf_of": None,
    }
    return scene.slack.evidence(given.pop("audience", "@who@acme.example"), **(usual | given))


@pytest.mark.parametrize("case", FAULTS)
def test_evidence_that_is_not_right_is_set_aside_and_shown_and_the_call_goes_on(
    scene: Trusting, case: str
) -> None:
    """M26, M28, M37, M38, M41: nothing is fetched for any of it."""
    make, fault = FAULTS[case]
    before = len(scene.pages.asked)
    reply = scene.ask(scene.peer.jwt(), **carrying(make(scene)))
    assert caller_of(reply)["evidence"] == []
    assert shown(scene, reply) == f"set aside ({fault})"
    assert len(scene.pages.asked) == before


def test_a_carrier_that_is_too_much_or_none_is_set_aside(scene: Trusting) -> None:
    """M43."""
    many = [scene.peer.evidence() for _ in range(9)]
    large = scene.peer.evidence(claims={"x": "y" * 70_000})
    for carried, fault in (
        (many, "limit_exceeded"),
        ([large], "limit_exceeded"),
        ({}, "malformed"),
    ):
        sent = message("x", metadata={"mentionable": {"identity_evidence": carried}})
        reply = scene.ask(scene.peer.jwt(), **sent)
        assert shown(scene, reply) == f"set aside ({fault})"


def test_skew_of_a_minute_is_allowed(scene: Trusting) -> None:
    """M38."""
    ahead = scene.peer.evidence(issued_at=moment(now() + 45), expires_at=moment(now() + 100))
    late = scene.peer.evidence(issued_at=moment(now() - 200), expires_at=moment(now() - 30))
    assert len(caller_of(scene.ask(scene.peer.jwt(), **carrying(ahead, late)))["evidence"]) == 2


def test_evidence_is_used_by_one_message_which_may_be_repeated(scene: Trusting) -> None:
    evidence = scene.peer.evidence()
    sent = carrying(evidence)
    first = scene.ask(scene.peer.jwt(), **sent)
    again = scene.ask(scene.peer.jwt(), **sent)
    assert caller_of(first) == caller_of(again)
    assert result_of(first)["task"]["id"] == result_of(again)["task"]["id"]
    other = scene.ask(scene.peer.jwt(), **carrying(evidence, text="another"))
    assert shown(scene, other) == "set aside (replayed)"
    stolen = scene.ask(scene.gateway.token, **sent)
    assert caller_of(stolen)["evidence"] == []


def test_evidence_is_neither_recorded_nor_part_of_what_is_compared(scene: Trusting) -> None:
    sent = message("compared")
    numbers, task = [], {}
    for _ in range(2):
        evidence = scene.peer.evidence()
        numbers.append(evidence["id"])
        metadata = {"mentionable": {"identity_evidence": [evidence]}}
        given = {"message": sent["message"] | {"metadata": metadata}}
        reply = scene.ask(scene.peer.jwt(), **given)
        assert caller_of(reply)["evidence"]
        task = result_of(reply)["task"]
    history = scene.ask(scene.peer.jwt(), "GetTask", id=task["id"], historyLength=10)
    assert "identity_evidence" not in json.dumps(result_of(history)["history"])
    assert not any(number.encode() in history.body for number in numbers)


def test_two_spellings_that_differ_are_refused(scene: Trusting) -> None:
    metadata = {
        "mentionable": {"identity_evidence": [scene.peer.evidence()]},
        "mentionable.identity_evidence": [],
    }
    reply = scene.ask(scene.peer.jwt(), **message("x", metadata=metadata))
    assert code_of(reply) == "malformed_caller_context"
    dotted = {"mentionable.identity_evidence": [scene.peer.evidence()]}
    assert caller_of(scene.ask(scene.peer.jwt(), **message("x", metadata=dotted)))["evidence"]
    beside = scene.ask(
        scene.peer.jwt(),
        **message(),
        metadata={"mentionable": {"identity_evidence": [scene.peer.evidence()]}},
    )
    assert caller_of(beside)["evidence"]


def test_the_key_of_a_trusted_issuer_is_fetched_once_and_a_weak_one_is_none(
    scene: Trusting,
) -> None:
    """M41: one look for a key that is not known; A21 for keys of small order."""
    path = "/initech/.well-known/jwks.json"
    evidence = scene.initech.evidence()
    x = json.loads(scene.initech.keys())["keys"][0] | {
        "x": b64url(bytes.fromhex(SMALL_ORDER[0])),
    }
    scene.pages.pages[path] = json.dumps({"keys": [x]}).encode()
    first = scene.ask(scene.peer.jwt(), **carrying(evidence))
    assert shown(scene, first) == "set aside (key_fetch_failed)"
    asked = scene.pages.asked.count(path)
    assert asked == 1
    scene.ask(scene.peer.jwt(), **carrying(scene.initech.evidence()))
    assert scene.pages.asked.count(path) == asked


# ------------------------------------------------------------------ who may call


def test_who_is_on_no_list_is_told_the_rule_and_whom_to_ask(scene: Trusting) -> None:
    """R40: and never what the rules say."""
    reply = scene.ask(scene.peer.jwt("acme.example"), agent="books")
    text = json.dumps(reply.json)
    assert code_of(reply) == "access_denied"
    assert "agents.books.allow[1]" in text
    assert "on_behalf_of" in text
    assert "mailto:ops@acme.example" in text
    assert "u@example.com" not in text
    assert "slack:" not in text


def test_evidence_of_whom_it_acts_for_opens_the_agent(scene: Trusting) -> None:
    evidence = scene.peer.evidence("@books@acme.example")
    found = caller_of(
        scene.ask(scene.peer.jwt("acme.example"), agent="books", **carrying(evidence))
    )
    assert found["behalf"] == ["mailto:u@example.com"]
    other = scene.peer.evidence("@books@acme.example", on_behalf_of=["mailto:v@example.com"])
    refused = scene.ask(scene.peer.jwt("acme.example"), agent="books", **carrying(other))
    assert code_of(refused) == "access_denied"


def test_a_member_of_the_workspace_is_admitted_by_the_beginning_of_its_name(
    scene: Trusting,
) -> None:
    """M28."""
    member = slack(scene, audience="@books@acme.example")
    assert caller_of(scene.ask(scene.peer.jwt("acme.example"), agent="books", **carrying(member)))
    other = slack(scene, audience="@books@acme.example", subject="slack:T999/U1")
    refused = scene.ask(scene.peer.jwt("acme.example"), agent="books", **carrying(other))
    assert code_of(refused) == "access_denied"


def test_a_profile_authorises_nobody(scene: Trusting) -> None:
    """M29: a name that is shown is no name that was proved."""
    profile = {"username": "@owner@acme.example", "display_name": "@owner@acme.example"}
    evidence = scene.peer.evidence(
        "@books@acme.example",
        on_behalf_of=None,
        claims={"profile": profile, "subject": "slack:T123/U1"},
    )
    metadata = {
        "mentionable": {
            "identity_evidence": [evidence],
            "sender": {"address": "@owner@acme.example", "verified": True, "profile": profile},
        }
    }
    reply = scene.ask(
        scene.peer.jwt("acme.example"), agent="books", **message("x", metadata=metadata)
    )
    assert code_of(reply) == "access_denied"


def test_people_and_agents_here_pass_the_same_list(scene: Trusting) -> None:
    assert scene.gateway.chat("hi", "books").status == 200  # hers is the starter token
    service = scene.gateway.new_token("service", "--scope", "call:*")
    refused = scene.gateway.chat("hi", "books", token=service)
    assert (refused.status, refused.code) == (403, "access_denied")
    through = scene.gateway.chat("hi", "opens")
    assert (through.status, through.code) == (403, "access_denied")


# ------------------------------------------------------------------ who pays


def test_who_calls_pays_unless_it_shows_that_another_has_agreed(scene: Trusting) -> None:
    """R41: the peer answers for both accounts."""
    for consent, account in (
        ({}, "globex.example@globex.example"),
        ({"consent": "payment"}, "mailto:u@example.com@globex.example"),
        ({"consent": "delegation"}, "mailto:u@example.com@globex.example"),
        ({"consent": "surely"}, "globex.example@globex.example"),
    ):
        evidence = scene.peer.evidence("@paid@acme.example", claims=consent or None)
        reply = scene.ask(scene.peer.jwt("acme.example"), agent="paid", **carrying(evidence))
        task = result_of(reply)["task"]
        run = str(next(each["run"] for each in task["metadata"].values() if "run" in each))
        (turn,) = scene.gateway.json("explain", run)["turns"]
        paying = next(each["found"] for each in turn["grounds"] if each["guard"] == "paying")
        assert paying == f"{account}; limit 5"


def test_nobody_makes_another_organisation_pay(scene: Trusting) -> None:
    evidence = scene.slack.evidence(
        "@paid@acme.example",
        subject="slack:T123/U456",
        method=MEMBER,
        assurance="platform",
        claims={"consent": "payment"},
    )
    reply = scene.ask(scene.peer.jwt("acme.example"), agent="paid", **carrying(evidence))
    task = result_of(reply)["task"]
    run = str(next(each["run"] for each in task["metadata"].values() if "run" in each))
    (turn,) = scene.gateway.json("explain", run)["turns"]
    paying = next(each["found"] for each in turn["grounds"] if each["guard"] == "paying")
    assert paying == "globex.example@globex.example; limit 5"


# ------------------------------------------------------------------ made up

SPOOFED = [
    ("x-actor-id", "owner"),
    ("x-actor-permissions", '{"allow": ["*"]}'),
    ("x-sender", "@owner@acme.example"),
    ("x-sender-address", "@owner@acme.example"),
    ("x-forwarded-user", "owner"),
    ("x-remote-user", "owner"),
    ("x-identity-evidence", "[]"),
    ("mentionable-sender", "@owner@acme.example"),
    ("x-mentionable-identity-evidence", "[]"),
    ("x-agent-id", "@owner@acme.example"),
    ("client-cert", "MIIB"),
]


@pytest.mark.parametrize("field", SPOOFED, ids=[name for name, _ in SPOOFED])
def test_a_header_that_says_who_calls_says_it_to_nobody(
    scene: Trusting, field: tuple[str, str]
) -> None:
    before = len(scene.pages.asked)
    reply = scene.ask(scene.peer.jwt("acme.example"), agent="books", fields=[field])
    assert code_of(reply) in {"access_denied", "malformed_caller_context"}
    plain = scene.ask(scene.peer.jwt(), fields=[field])
    if plain.status == 200 and "error" not in plain.json:
        assert caller_of(plain)["address"] == "@agent-a@globex.example"
    assert len(scene.pages.asked) == before


PLACES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "at the top of the metadata": lambda one: message("x", metadata={"identity_evidence": [one]}),
    "under a name like ours": lambda one: message(
        "x", metadata={"Mentionable": {"identity_evidence": [one]}}
    ),
    "in a part": lambda one: {
        "message": {
            "messageId": one["id"],
            "role": "ROLE_USER",
            "parts": [{"data": {"mentionable": {"identity_evidence": [one]}}}, {"text": "x"}],
        }
    },
    "in the metadata of a part": lambda one: {
        "message": {
            "messageId": one["id"],
            "role": "ROLE_USER",
            "parts": [{"text": "x", "metadata": {"mentionable": {"identity_evidence": [one]}}}],
        }
    },
    "as identities of a sender": lambda one: message(
        "x", metadata={"mentionable": {"sender": {"identities": [one], "verified": True}}}
    ),
    "one level too deep": lambda one: message(
        "x", metadata={"mentionable": {"recipient_capabilities": {"identity_evidence": [one]}}}
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_evidence_in_another_place_is_none(scene: Trusting, place: str) -> None:
    one = scene.peer.evidence("@books@acme.example")
    reply = scene.ask(scene.peer.jwt("acme.example"), agent="books", **PLACES[place](one))
    assert code_of(reply) in {"access_denied", "malformed_caller_context"}
