"""All that was recorded of the SDK is so here, or departs by a ruling that is named."""

import json
from base64 import b64decode
from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace
from nacl.signing import SigningKey

from carnet.cli.trust.delegation_forms import granted
from carnet.core.people.delegation import Delegation
from carnet.core.people.identity import CHAT
from carnet.core.people.proof import SECOND_US
from carnet.errors import (
    CarnetError,
    DigestInvalid,
    EgressRefused,
    NonceReplayed,
    RateLimited,
    SignatureInvalid,
    SignatureMissing,
    TimestampOutOfWindow,
)
from carnet.guards.caller.delegation import Delegated
from carnet.guards.candidate import Candidate
from carnet.guards.target.injection import untrusted
from carnet.runtime.client.key import ClientKey
from carnet.runtime.egress.addresses import Allowed, find_route
from carnet.testing.clock import FakeClock
from carnet.testing.keys import MemoryRing
from carnet.testing.trust import MemoryPeers
from carnet.wire.crypto import delegation, digests, ed25519
from carnet.wire.crypto.signatures import Request, base, read, write
from carnet.wire.dialects import samvad
from carnet.wire.dialects.samvad.envelope import canonical
from carnet.wire.grammar.headers import Headers
from tests.guards.limits.test_quota import admit, asking, spend
from tests.guards.scene import DOMAIN
from tests.guards.signed_scene import (
    NOW,
    ONE_LABEL,
    PEER,
    STRANGER,
    SignedScene,
    identities,
    signed_claim,
)
from tests.guards.target.test_injection import is_refused
from tests.interop.recorded.recorded import COVERED, DIVERGENCES, FACTS, holds, recorded
from tests.support.signing.signed import now, unpadded
from tests.vectors.samvad_sdk import KEPT, Fact, facts, written
from tests.wire.crypto.messages import SAMVAD
from tests.wire.dialects.samvad.test_card import FACTS as CARD

BODY = b"{}"
SENDERS = {"a": STRANGER, "b": ONE_LABEL, "c": PEER}


def test_the_package_says_today_what_was_recorded() -> None:
    assert facts() == FACTS
    assert KEPT.read_text() == written(FACTS)


def test_every_fact_is_met_by_one_test() -> None:
    assert len(FACTS) == 134
    assert Counter(COVERED) == Counter({fact["id"]: 1 for fact in FACTS})


def test_every_divergence_is_about_a_fact_and_names_its_ruling() -> None:
    assert DIVERGENCES.keys() <= {fact["id"] for fact in FACTS}
    assert {ours.divergence.ruling for ours in DIVERGENCES.values()} == {
        *("R3", "R8", "R12", "R13", "R14")
    }


# ------------------------------------------------------------------ bytes


@recorded("canonical_json")
def test_the_recorded_json_is_ours(fact: Fact) -> None:
    assert holds(fact, canonical(fact["input"]).decode())


@recorded("content_digest")
def test_digests_are_those_of_the_sdk(fact: Fact) -> None:
    assert holds(fact, digests.write(fact["input"].encode()))


def fields(*lines: tuple[str, str]) -> Headers:
    return Headers([(name.encode(), value.encode("latin-1")) for name, value in lines])


def request(headers: Headers, case: dict[str, Any]) -> Request:
    return Request(method=case["method"], authority="a.example", path=case["path"], headers=headers)


@recorded("sign")
def test_signatures_are_those_of_the_sdk_byte_for_byte(fact: Fact) -> None:
    given = fact["input"]
    seed, digest = b64decode(given["seed_b64"]), digests.write(given["body"].encode())
    assert ed25519.write_public_key(ed25519.public_of(seed)) == given["public_b64"]
    signed: list[bytes] = []

    def remember(message: bytes) -> bytes:
        signed.append(message)
        return ed25519.sign(seed, message)

    written = write(
        request(fields(("content-digest", digest)), given),
        components=SAMVAD,
        keyid=given["kid"],
        created=given["created"],
        sign=remember,
        newline=True,
    )
    ours = {**written, "content_digest": digest, "signature_base": signed[0].decode()}
    assert holds(fact, ours)


@recorded("verify")
def test_we_verify_what_the_sdk_verifies_but_for_what_was_altered(fact: Fact) -> None:
    assert holds(fact, is_verified(fact["input"]))


def is_verified(case: dict[str, Any]) -> bool:
    """What the dialect judges of a signature: one of that label, of those components."""
    sent = fields(*((name.lower(), value) for name, value in case["headers"].items()))
    try:
        digests.check(sent.get("content-digest"), BODY)
        found = read(sent)
        made = base(found, request(sent, case), newline=True)
    except (SignatureInvalid, SignatureMissing, DigestInvalid):
        return False
    public = ed25519.read_public_key(case["public_b64"])
    return found.label == "sig1" and ed25519.holds(public, made, found.signature)


# ------------------------------------------------------------------ what is said


@recorded("card")
def test_the_recorded_cards_are_ours(fact: Fact) -> None:
    expected = fact["expected"]
    # Which identity an agent has is our configuration's to say, not the URL's.
    ours = replace(CARD, id=expected["id"], url=fact["input"]["url"], skills=(CHAT,))
    card = json.loads(samvad.write_card(ours))
    assert holds(fact, {name: card[name] for name in expected})


@recorded("status")
def test_the_recorded_statuses_are_ours_or_a_named_divergence(fact: Fact) -> None:
    assert holds(fact, samvad.STATUSES.get(fact["input"]))


@recorded("injection")
async def test_the_recorded_phrases_are_found(fact: Fact) -> None:
    assert holds(fact, await is_refused(fact["input"]))


@recorded("boundary")
def test_the_recorded_frame_is_ours(fact: Fact) -> None:
    assert holds(fact, untrusted(fact["input"]))


@recorded("private_host")
def test_a_callback_leads_to_no_host_that_the_sdk_calls_private(fact: Fact) -> None:
    assert holds(fact, is_inward(fact["input"]))


def is_inward(host: str) -> bool:
    shown = f"[{host}]" if ":" in host else host
    try:
        find_route(f"https://{shown}/done", "learned", Allowed())
    except EgressRefused:
        return True
    return False


# ------------------------------------------------------------------ what is counted


def code_of(error: CarnetError) -> str:
    """The word of the protocol for a refusal."""
    body = json.loads(samvad.write_error(error)[2])
    return str(body["error"]["code"])


async def is_taken(scene: SignedScene, case: dict[str, Any]) -> bool:
    claim = signed_claim(
        sender=SENDERS[case["sender"]],
        nonce=case["nonce"],
        span=f"span-{len(scene.turns.turns)}",
        at=NOW - case["age_s"] * SECOND_US,
    )
    try:
        await admit(scene, claim)
    except (NonceReplayed, TimestampOutOfWindow):
        return False
    return True


@recorded("nonce_check")
async def test_a_nonce_is_taken_when_the_sdk_takes_it(fact: Fact) -> None:
    scene, area = SignedScene(), [each for each in FACTS if each["area"] == "nonce_check"]
    for earlier in area[: area.index(fact)]:
        await is_taken(scene, earlier["input"])
    assert holds(fact, await is_taken(scene, fact["input"]))


@recorded("nonce_seq")
async def test_a_nonce_is_free_again_after_a_refusal_and_never_after_an_answer(fact: Fact) -> None:
    """What the SDK calls a rollback is a refusal here, and what it calls a commit the claim."""
    scene = SignedScene(sender_calls=1)
    await admit(scene, signed_claim(nonce="another-nonce", span="span-0"))
    message = {"sender": "a", "nonce": "n1", "age_s": 0}
    with pytest.raises(RateLimited):  # it was not seen before, and is free again
        await is_taken(scene, message)
    scene = SignedScene(turns=scene.turns)
    scene.clock.advance(1)  # the first call has used up its sender's rate until then
    taken = await is_taken(scene, message)
    assert holds(fact, [True, taken, await is_taken(scene, message)])


async def is_within(scene: SignedScene, sender: str) -> bool:
    n = len(scene.turns.turns)
    claim = signed_claim(sender=sender, nonce=f"nonce-{sender}-{n}", span=f"span-{n}")
    try:
        await admit(scene, claim)
    except RateLimited:
        return False
    return True


async def counted_calls() -> list[list[object]]:
    scene = SignedScene(sender_calls=2, agent_calls=3)
    return [[name, await is_within(scene, SENDERS[name])] for name in "aaabc"]


async def used_budget() -> str:
    scene = SignedScene()
    await spend(scene, await admit(scene, asking()), 1000)
    with pytest.raises(CarnetError) as refused:
        await admit(scene, asking())
    return code_of(refused.value)


@recorded("rate")
async def test_calls_and_tokens_are_counted_as_the_sdk_counts_them(fact: Fact) -> None:
    by_sequence = "calls" in fact["input"]
    assert holds(fact, await counted_calls() if by_sequence else await used_budget())


# ------------------------------------------------------------------ delegation

ISSUER, HOLDER = "agent://a.com", "agent://b.com"


@recorded("delegation")
def test_a_token_is_that_of_the_sdk_byte_for_byte(fact: Fact) -> None:
    given = fact["input"]
    seed = b64decode(given["seed_b64"])
    token = delegation.write(
        Delegation(
            issuer=given["iss"],
            subject=given["sub"],
            scope=tuple(given["scope"]),
            hops=given["maxDepth"],
            keyid=given["kid"],
            issued=given["iat"],
            expires=given["iat"] + given["ttl"],
        ),
        sign=lambda signed: ed25519.sign(seed, signed),
    )
    public = ed25519.write_public_key(ed25519.public_of(seed))
    assert holds(fact, {"jwt": token, "public_b64": public})


def token_of(by: SigningKey, issued: int = NOW // SECOND_US, **claims: Any) -> str:
    """A token as any library would write it."""
    times = {"iat": issued, "exp": issued + 900}
    whole = {"iss": ISSUER, "sub": HOLDER, **times, "scope": ["chat"], "maxDepth": 2, **claims}
    head = {"alg": "EdDSA", "kid": "k1", "typ": "JWT"}
    signed = ".".join(unpadded(json.dumps(part).encode()) for part in (head, whole))
    return f"{signed}.{unpadded(by.sign(signed.encode()).signature)}"


@recorded("delegation_verify")
def test_a_token_is_judged_as_the_sdk_judges_it(fact: Fact) -> None:
    """What a scope allows is looked at later, when the skill is known."""
    assert holds(fact, judged(fact["input"]))


def judged(case: dict[str, Any]) -> str:
    own, another = SigningKey(bytes(range(32))), SigningKey(bytes(32))
    ring = MemoryRing()
    ring.pin(ISSUER, "k1", bytes(own.verify_key))
    guard = Delegated(
        ring,
        MemoryPeers(),
        FakeClock(),
        identities=identities(),
        domain=DOMAIN,
        last_depth=3,
    )
    claims = dict(case["claims"])
    if "life" in claims:
        claims["exp"] = NOW // SECOND_US + claims.pop("life")
    text = token_of(another if case["case"] == "wrong key" else own, **claims)
    claim = replace(signed_claim(sender=HOLDER), delegation=text)
    try:
        guard(Candidate(claim, NOW))
    except CarnetError as error:
        return code_of(error)
    return "ok"


def handed_on(parent: str) -> dict[str, Any]:
    """What a token says that b derives of its own for c, in the form of the SDKs."""
    options: dict[str, Any] = dict.fromkeys(
        ("depth", "expires", "audience", "budget", "calls", "max_tokens", "person")
    )
    options |= {"scopes": (), "once": False, "sdk": True, "parent": parent}
    token = granted(
        HOLDER, ClientKey(bytes(range(32))), "agent://c.com", options, currency=None
    ).text
    claims: dict[str, Any] = json.loads(b64decode(token.split(".")[1] + "==", altchars=b"-_"))
    return claims


@recorded("delegation_chain")
def test_a_token_is_handed_on_as_the_sdk_does_it(fact: Fact) -> None:
    """Of a parent that lives for longer than that: one that does not ends what is derived of it."""
    issued = int(now())
    shared = {"scope": ["s", "t"], "maxDepth": fact["input"]["maxDepth"]}
    parent = token_of(SigningKey(bytes(32)), issued, exp=issued + 7200, **shared)
    try:
        claims = handed_on(parent)
    except CarnetError as error:
        ours: object = code_of(error)
    else:
        life = claims.pop("exp") - claims.pop("iat")
        ours = {**claims, "exp-iat": life}
    assert holds(fact, ours)


def test_a_token_that_is_handed_on_ends_with_its_parent() -> None:
    issued = int(now())
    parent = token_of(SigningKey(bytes(32)), issued, exp=issued + 90, maxDepth=3)
    assert handed_on(parent)["exp"] == issued + 90
