"""A signed request as a claim: what it asks, and how it is compared with a repeat."""

from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carnet.core.call import Ask, Claim
from carnet.core.chain.carnet import Mark, Trace
from carnet.core.messages.events import Message
from carnet.core.people.identity import Secret
from carnet.core.people.proof import Proof
from carnet.errors import (
    CarnetError,
    DigestInvalid,
    DigestMismatch,
    InvalidJson,
    InvalidRequest,
    NonceInvalid,
    SignatureInvalid,
    SignatureMissing,
)
from carnet.wire.dialects.samvad.claim import foretold
from carnet.wire.dialects.samvad.dialect import DIALECT
from carnet.wire.grammar import json
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps import STAMPS
from tests.wire.dialects.samvad.scene import (
    SHORT,
    encoded,
    fields,
    holds,
    read,
    signed,
    unsigned,
)

CHAT = {"skill": "chat", "payload": {"text": "hi"}}


def claim(**changed: Any) -> Claim:
    body = encoded(fields(**changed))
    return read(signed(unsigned(body)), body)


def test_a_request_is_read_as_a_claim() -> None:
    found = claim(parentSpanId="parent-1", payload={"code": "x"})
    assert found.dialect == "samvad"
    assert found.agent == "critic"
    assert found.ask == Ask(messages=(), skill="review-code", payload={"code": "x"})
    assert found.marks == (
        Mark(stamp="samvad", run="trace-1", turn="span-1", parent_turn="parent-1", counts=False),
    )
    assert (found.authorization, found.forwarded) == (None, None)
    assert holds(found)


def test_the_trace_is_the_run_and_tells_no_depth() -> None:
    [mark] = claim().marks
    assert (mark.run, mark.turn, mark.parent_turn) == ("trace-1", "span-1", None)
    assert (mark.depth, mark.last_depth) == (None, None)


def test_the_skill_chat_is_asked_in_messages_too() -> None:
    found = claim(**CHAT)
    assert found.ask.messages == (Message("user", ("hi",)),)
    assert found.ask.payload == {"text": "hi"}
    assert claim(skill="chat", payload={"text": 7}).ask.messages == ()
    assert claim(skill="echo", payload={"text": "hi"}).ask.messages == ()


@pytest.mark.parametrize("asking", [CHAT, {"payload": {"code": "x"}}, {"mode": "async"}])
def test_a_recorded_request_says_what_was_asked(asking: dict[str, Any]) -> None:
    mode = asking.get("mode", "sync")
    body = encoded(fields(**asking))
    path = "/agent/task" if mode == "async" else SHORT
    found = read(signed(unsigned(body, path)), body, mode=mode, short_path=path)
    assert DIALECT.asked(found.request) == found.ask


@pytest.mark.parametrize("kept", [{}, {"skill": 7, "payload": {}}, {"skill": "x", "payload": 7}])
def test_what_was_asked_without_a_skill_and_a_payload_cannot_be_told(kept: object) -> None:
    with pytest.raises(InvalidRequest):
        DIALECT.asked(json.write(kept))


def test_the_mode_says_whether_the_answer_is_streamed() -> None:
    body = encoded(fields(mode="stream"))
    request = signed(unsigned(body, "/agent/stream"))
    assert read(request, body, mode="stream", short_path="/agent/stream").ask.stream
    assert not claim().ask.stream


def test_a_repeat_is_compared_by_what_is_asked_and_not_by_when() -> None:
    first = claim(payload={"a": 1, "b": 2})
    again = claim(payload={"b": 2, "a": 1}, nonce="another-nonce", timestamp="2026-04-11T10:00:01Z")
    assert first.digest == again.digest
    assert first.request == again.request
    others = [claim(payload={"a": 1}), claim(payload={"a": 1, "b": 2}, skill="other")]
    assert first.digest not in {other.digest for other in others}
    assert first.digest == sha256(first.request).digest()


def test_what_is_kept_of_a_request_holds_no_credential_nonce_or_time() -> None:
    found = claim(auth={"scheme": "bearer", "token": "sk-hush"}, **CHAT)
    assert json.read(found.request) == {"mode": "sync", **CHAT}
    assert "sk-hush" not in repr(found)
    assert found.proof
    assert (found.proof.auth, found.proof.auth_scheme) == (Secret("sk-hush"), "bearer")


def test_the_trace_of_proxies_is_kept() -> None:
    body = encoded(fields())
    parent = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"
    found = read(signed(unsigned(body, traceparent=parent)), body)
    assert found.trace == Trace("a" * 32, "b" * 16)


@pytest.mark.parametrize("name", ["x-agent-trace-id", "x-agent-span-id", "x-agent-parent-span"])
def test_the_trace_headers_that_nobody_sends_are_ignored(name: str) -> None:
    body = encoded(fields())
    assert read(signed(unsigned(body, **{name: "other"})), body) == claim()


def test_a_request_without_a_signature_is_refused() -> None:  # A01
    body = encoded({"skill": "chat", "payload": {"text": "hi"}})
    with pytest.raises(SignatureMissing):
        read(unsigned(body), body)


@pytest.mark.parametrize("body", [encoded(fields()) + b" ", encoded(fields())[:-2], b"{}"])
def test_a_changed_body_is_told_as_that_whatever_it_is_now(body: bytes) -> None:  # A03
    with pytest.raises(DigestMismatch):
        read(signed(unsigned(encoded(fields()))), body)


def test_a_digest_must_be_there_and_be_one() -> None:  # A05
    body = encoded(fields())
    request = signed(unsigned(body))
    lines = [line for line in request.headers.raw if line[0] != b"content-digest"]
    digest = request.headers.get_all("content-digest")[0].encode()
    for wrong in ([], [b"md5=:AAAA:"], [digest, digest]):
        changed = [*lines, *((b"content-digest", value) for value in wrong)]
        with pytest.raises(DigestInvalid):
            read(replace(request, headers=Headers(changed)), body)


def test_a_body_that_was_signed_and_is_no_envelope_is_refused() -> None:
    for body, kind in ((b"[1]", InvalidJson), (b"{}", InvalidRequest)):
        with pytest.raises(kind):
            read(signed(unsigned(body)), body)


@pytest.mark.parametrize("token", ["ey.J.x", ""])
def test_a_delegation_token_is_carried_as_it_came(token: str) -> None:
    assert claim(delegationToken=token).delegation == token
    assert claim().delegation is None


def test_a_task_may_name_a_callback_and_nothing_else_may() -> None:
    body = encoded(fields(mode="async", callbackUrl="https://my-service.com/x"))
    asked = read(signed(unsigned(body)), body, mode="async")
    assert (asked.is_task, asked.callback) == (True, "https://my-service.com/x")
    assert (claim().is_task, claim().callback) == (False, None)
    body = encoded(fields(callbackUrl="https://my-service.com/x"))
    with pytest.raises(InvalidRequest) as caught:
        read(signed(unsigned(body)), body)
    assert caught.value.public_facts() == {"field": "callbackUrl"}


def test_a_refusal_carries_the_trace() -> None:
    body = encoded(fields())
    with pytest.raises(SignatureInvalid) as caught:
        read(signed(unsigned(body), label="sig2"), body)
    assert caught.value.run == "trace-1"
    body = encoded(fields(nonce=""))
    with pytest.raises(NonceInvalid) as refused:
        read(signed(unsigned(body)), body)
    assert refused.value.run == "trace-1"


@given(st.binary(max_size=300))
def test_any_signed_bytes_are_refused_in_words_of_ours(body: bytes) -> None:
    with pytest.raises(CarnetError):
        read(signed(unsigned(body)), body)


# ------------------------------------------------------------------ before the body is parsed


def proved(body: bytes, *, sent: bytes | None = None) -> Proof | None:
    """The proof of a request; `sent` is what came in the place of what was signed."""
    request = signed(unsigned(body))
    came = body if sent is None else sent
    return foretold(request, came, short_path=SHORT, stamps=STAMPS)


def test_who_has_signed_is_told_before_the_body_is_parsed_as_it_is_afterwards() -> None:
    body = encoded(fields(payload={"code": "x"}))
    found, claimed = proved(body), read(signed(unsigned(body)), body).proof
    assert found is not None
    assert found == claimed
    strange = proved(encoded(fields(skill=7, traceId=...)))  # which is refused when it is parsed
    assert strange is not None
    assert (strange.sender, strange.bases != found.bases) == (found.sender, True)


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[1]", b"{", b"[" * 100_000),
        *(encoded(fields(**{name: ...})) for name in ("from_", "to", "nonce", "timestamp")),
        encoded(fields(from_="agent://-")),
        encoded(fields(to="receiver.com")),
        encoded(fields(nonce="")),
        encoded(fields(timestamp="yesterday")),
    ],
)
def test_of_a_body_that_does_not_say_who_sent_it_nothing_is_told(body: bytes) -> None:
    assert proved(body) is None


def test_a_body_that_is_not_the_one_that_was_signed_tells_nobody() -> None:
    with pytest.raises(DigestMismatch):
        proved(encoded(fields()), sent=encoded(fields(from_="agent://other.com")))
