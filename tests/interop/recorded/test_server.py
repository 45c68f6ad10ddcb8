"""What we write and the real package reads, and the other way round, for any content.

The package runs here as a library; as a process it is met in tests/interop.
"""

import json
from base64 import b64encode
from typing import Any

import pytest
import samvad as sdk
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from samvad.agent_client import AgentClient
from samvad.card import build_agent_card
from samvad.errors import ErrorCode
from samvad.keys import Keypair
from samvad.server import status_code_for
from samvad.types import AgentCard, MessageEnvelope, PublicKey, RateLimit, ResponseEnvelope

from carnet.core.messages.events import RESULT, Done, Extension
from carnet.errors import NonceInvalid, SchemaInvalid
from carnet.wire.crypto import digests, ed25519, signatures
from carnet.wire.dialects import samvad
from carnet.wire.dialects.samvad.envelope import canonical
from carnet.wire.stamps.stamp import MINIMUM
from tests.wire.dialects.samvad.scene import (
    CREATED,
    NAMED,
    PUBLIC,
    SEED,
    SHORT,
    TURN,
    encoded,
    fields,
    holds,
    lines,
    read,
    unsigned,
)
from tests.wire.dialects.samvad.test_card import FACTS
from tests.wire.dialects.samvad.test_envelope import ENVELOPES, VALUES

KEYS = Keypair("client-7", b64encode(SEED).decode(), b64encode(PUBLIC).decode())
CARD = AgentCard.model_validate_json(samvad.write_card(FACTS))


def sent_by_the_sdk(mode: str, path: str, payload: dict[str, Any]) -> tuple[bytes, dict[str, str]]:
    """What the package's own client sends."""
    client = AgentClient(keypair=KEYS, card=CARD)
    envelope = client._build_envelope("chat", payload, mode)  # noqa: SLF001
    body, headers = client._sign_envelope(envelope, "POST", path)  # noqa: SLF001
    return body, headers


PAYLOADS = st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), VALUES, max_size=3)


@given(PAYLOADS)
def test_what_the_sdk_sends_is_read_and_holds(payload: dict[str, Any]) -> None:
    body, headers = sent_by_the_sdk("sync", SHORT, payload)
    request = replace(unsigned(body, NAMED), headers=lines(headers))
    claim = read(request, body)
    assert holds(claim)
    assert claim.ask.payload == payload
    assert claim.proof
    assert (claim.proof.sender, claim.proof.keyid) == ("agent://client-client-7", "client-7")
    assert claim.proof.recipient == FACTS.id


def test_a_stream_that_the_sdk_asks_for_is_read() -> None:
    body, headers = sent_by_the_sdk("stream", "/agent/stream", {"text": "hi"})
    request = replace(unsigned(body, "/agent/stream"), headers=lines(headers))
    assert read(request, body, mode="stream", short_path="/agent/stream").ask.stream


@given(ENVELOPES)
def test_the_sdk_reads_our_envelope_and_would_write_the_same_bytes(
    envelope: samvad.Envelope,
) -> None:
    body = samvad.write_request(replace(envelope, callback_url=None, auth_scheme=None))
    theirs = MessageEnvelope.model_validate_json(body)
    assert (theirs.from_, theirs.to, theirs.trace_id) == (
        envelope.sender,
        envelope.recipient,
        envelope.trace_id,
    )
    assert sdk.canonical_json(json.loads(body)).encode() == body


@given(VALUES)
def test_our_json_is_that_of_the_sdk(value: Any) -> None:
    assert canonical(value).decode() == sdk.canonical_json(value)


@given(st.binary(max_size=200), st.from_regex(r"[a-z0-9_-]{1,20}", fullmatch=True))
def test_what_we_sign_the_sdk_verifies_and_would_sign_alike(body: bytes, kid: str) -> None:
    digest = digests.write(body)
    assert digest == sdk.content_digest(body)
    ours = signatures.write(
        unsigned(body),
        components=MINIMUM,
        keyid=kid,
        created=CREATED,
        sign=lambda base: ed25519.sign(SEED, base),
        newline=True,
    )
    headers = {"content-digest": digest}
    theirs = sdk.sign_request("post", SHORT, headers, KEYS.private_key_b64, kid, CREATED)
    assert ours == theirs
    assert sdk.verify_request("POST", SHORT, {**headers, **ours}, KEYS.public_key_b64)


def test_the_sdk_refuses_a_signature_without_the_newline() -> None:
    headers = {"content-digest": digests.write(b"{}")}
    plain = signatures.write(
        unsigned(b"{}"),
        components=MINIMUM,
        keyid="k",
        created=CREATED,
        sign=lambda base: ed25519.sign(SEED, base),
    )
    assert not sdk.verify_request("POST", SHORT, {**headers, **plain}, KEYS.public_key_b64)


def test_the_sdk_reads_our_card() -> None:
    assert (CARD.id, CARD.url, CARD.card_ttl) == (FACTS.id, FACTS.url, 300)
    assert [key.active for key in CARD.public_keys] == [True, False]
    assert [skill.id for skill in CARD.skills] == ["chat", "review-code"]


@pytest.mark.parametrize("url", ["https://myagent.io", "https://x.com/", "http://a.b.c:8443/p/"])
def test_we_read_the_card_of_the_sdk_and_write_the_same_endpoints(url: str) -> None:
    card = build_agent_card(
        name="A",
        version="1",
        description="d",
        url=url,
        specializations=[],
        models=[],
        skills=CARD.skills,
        public_keys=[PublicKey(kid="agent", key=KEYS.public_key_b64, active=True)],
        rate_limit=RateLimit(requestsPerMinute=60, requestsPerSender=20),
    )
    theirs = card.model_dump(by_alias=True)
    found = samvad.read_card(encoded(theirs))
    assert (found.id, found.url) == (card.id, url.rstrip("/"))
    assert found.keys == (samvad.CardKey("agent", PUBLIC),)
    ours = json.loads(samvad.write_card(replace(FACTS, id=card.id, url=url)))
    for name in ("id", "url", "endpoints", "auth", "protocolVersion", "cardTTL", "rateLimit"):
        expected = theirs[name]
        if name == "rateLimit":
            expected = {key: most for key, most in expected.items() if most is not None}
        assert ours[name] == expected


def test_our_statuses_are_those_of_the_sdk_but_for_the_one_that_the_text_gives_otherwise() -> None:
    theirs = {code.value: status_code_for(code.value) for code in ErrorCode}
    assert theirs | {"AGENT_UNAVAILABLE": 500} == samvad.STATUSES  # R12


def test_the_sdk_reads_our_answers_and_our_refusals() -> None:
    body = samvad.write_answer(TURN, [Extension(RESULT, {"n": 1}), Done()], trace_id="t")
    answer = ResponseEnvelope.model_validate_json(body)
    assert (answer.trace_id, answer.status, answer.result) == ("t", "ok", {"n": 1})
    _, _, body = samvad.write_error(SchemaInvalid("a", "is missing"), trace_id="t")
    refusal = ResponseEnvelope.model_validate_json(body)
    assert (refusal.status, refusal.result) == ("error", None)
    assert refusal.error
    assert refusal.error.code == "SCHEMA_INVALID"


def test_an_envelope_that_the_sdk_takes_without_looking_is_refused_here() -> None:
    loose = fields(nonce="", to="agent://anybody-at-all.example", timestamp="yesterday", payload={})
    assert MessageEnvelope.model_validate(loose)
    with pytest.raises(NonceInvalid):
        samvad.read_envelope(encoded(loose), mode="sync")
