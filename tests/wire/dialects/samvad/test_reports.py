"""What a peer says when it does not answer."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet.core.people import delegation as core
from carnet.errors import (
    CarnetError,
    ChainFinal,
    DelegationExceeded,
    DelegationInvalid,
    DelegationWidened,
    DepthExceeded,
    PeerBusy,
    PeerRefused,
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
    refused_identity,
)
from carnet.guards.caller import delegation as guards
from carnet.wire.crypto import delegation as wire
from carnet.wire.crypto import jws
from carnet.wire.dialects.samvad import MEANINGS, STATUSES, read_refusal, write_error
from carnet.wire.dialects.samvad.reports import REASONS
from tests.wire.dialects.samvad.scene import encoded
from tests.wire.dialects.samvad.test_refusals import LEAVES, made


def refusal(status: int, code: object, **headers: Any) -> CarnetError:
    error = {"code": code, "message": "hush-hush"}
    body = {"traceId": "t", "spanId": "s", "status": "error", "error": error}
    found = read_refusal(status, encoded(body), **headers)
    assert "hush-hush" not in str(found)
    return found


@pytest.mark.parametrize(
    "code",
    [
        "AUTH_FAILED",
        "REPLAY_DETECTED",
        "SKILL_NOT_FOUND",
        "SCHEMA_INVALID",
        "INJECTION_DETECTED",
        "DELEGATION_EXCEEDED",
        "TOKEN_BUDGET_EXCEEDED",
    ],
)
def test_a_refusal_keeps_the_word_of_the_protocol_and_is_final(code: str) -> None:
    error = refusal(STATUSES[code], code)
    assert type(error) is PeerRefused
    assert error.facts == {"peer_status": STATUSES[code], "peer_code": code}
    assert code in error.safe_text
    assert not error.retryable


def test_a_peer_that_is_busy_may_be_asked_again() -> None:
    for code in ("RATE_LIMITED", "TOKEN_BUDGET_EXCEEDED"):
        error = refusal(429, code, retry_after="30")
        assert type(error) is PeerBusy
        assert error.facts == {"peer_status": 429, "peer_code": code, "retry_after": 30}
    assert refusal(429, "RATE_LIMITED").retry_after == 1
    later = {"retry_after": "Sun, 15 Nov 2026 06:47:52 GMT"}
    now = {"date": "Sun, 15 Nov 2026 06:46:52 GMT"}
    assert refusal(429, "RATE_LIMITED", **later, **now).retry_after == 60


def test_an_agent_that_failed_is_told_from_a_call_that_failed_further_on() -> None:
    for status in (500, 503):
        error = refusal(status, "AGENT_UNAVAILABLE")
        assert type(error) is ProviderError
        assert error.facts["by"] == "callee"
        further = refusal(status, "AGENT_UNAVAILABLE", carnet_code="provider_unavailable")
        assert further.facts["by"] == "peer"
        assert error.facts["peer_code"] == "AGENT_UNAVAILABLE"
    assert type(refusal(503, "AGENT_UNAVAILABLE", retry_after="2")) is PeerBusy


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, PeerRefused),
        (401, PeerRefused),
        (404, PeerRefused),
        (413, PeerRefused),
        (408, ProviderTimeout),
        (425, ProviderUnavailable),
        (429, PeerBusy),
        (500, ProviderUnavailable),
        (502, ProviderUnavailable),
        (503, ProviderUnavailable),
        (504, ProviderTimeout),
        (204, ProviderError),
        (307, ProviderError),
    ],
)
@pytest.mark.parametrize(
    "body", [b"", b"Not Found", b'{"error":"Task not found"}', b'{"error":{"code":"hush"}}', b"[1]"]
)
def test_without_a_word_that_we_know_the_status_decides(
    status: int, kind: type[CarnetError], body: bytes
) -> None:
    error = read_refusal(status, body)
    assert type(error) is kind
    assert error.facts.get("peer_code", "unrecognised") == "unrecognised"


def test_a_wait_that_nothing_explains_is_kept() -> None:
    assert read_refusal(503, b"", retry_after="5").facts == {
        "peer_status": 503,
        "peer_code": "unrecognised",
        "retry_after": 5,
    }
    assert read_refusal(500, b"", retry_after="5").retry_after == 5


@pytest.mark.parametrize("code", ["TIMESTAMP_EXPIRED", "auth_failed", 7, None, ["AUTH_FAILED"]])
def test_a_word_that_is_none_of_the_nine_is_not_repeated(code: object) -> None:
    assert refusal(400, code).facts["peer_code"] == "unrecognised"


@pytest.mark.parametrize("leaf", LEAVES)
def test_whatever_we_refuse_another_of_us_understands(leaf: type[CarnetError]) -> None:
    status, headers, body = write_error(made(leaf), trace_id="t")
    error = read_refusal(status, body, retry_after=headers.get("retry-after"))
    assert error.facts["peer_code"] in STATUSES
    assert error.facts["peer_status"] == status


@given(st.integers(100, 599), st.binary(max_size=100), st.none() | st.text(max_size=9))
def test_any_answer_is_some_error(status: int, body: bytes, wait: str | None) -> None:
    assert isinstance(read_refusal(status, body, retry_after=wait), CarnetError)


@pytest.mark.parametrize(
    ("field", "kept"),
    [
        ("day", True),
        ("lines[0].sku", True),
        ("x" * 64, True),
        ("x" * 65, False),
        (".".join(["abcdefgh"] * 15), False),
        ("a day", False),
        ("day\n", False),
        ("[0]", False),
        ("", False),
        (None, False),
    ],
)
def test_a_carnet_names_the_field_that_its_schema_refuses(field: str | None, kept: object) -> None:
    error = refusal(400, "SCHEMA_INVALID", carnet_code="schema_invalid", carnet_field=field)
    assert ("peer_field" in error.public_facts()) == kept
    assert (f"It says schema_invalid about the field '{field}'." in error.next_step) == kept
    assert (f"(schema_invalid about the field '{field}')" in str(error)) == kept
    nobody = refusal(400, "SCHEMA_INVALID", carnet_field=field)
    assert "peer_field" not in nobody.facts


def test_who_does_not_know_us_is_to_be_given_our_key() -> None:
    error = refusal(401, "AUTH_FAILED")
    assert "carnet explain AUTH_FAILED" in error.next_step
    error.facts.update(sender="agent://acme.example", key="KEY=")
    assert error.next_step.endswith("(trust_peer): agent://acme.example KEY=")
    assert read_refusal(401, b"").next_step == "Its operator can tell why."


@pytest.mark.parametrize(
    "error",
    [
        DepthExceeded(observed=4, limit=4),
        DepthExceeded(observed=5, limit=4, leaving=True),
        ChainFinal(hop=3, hops=3),
    ],
)
def test_the_end_of_a_chain_is_terminal_whichever_hop_has_said_so(error: CarnetError) -> None:
    """R1: its numbers come along, and no text of the other side."""
    body = {"error": {"code": "DELEGATION_EXCEEDED", "message": error.safe_text}}
    read = read_refusal(400, encoded(body), carnet_code=error.code)
    assert type(read) is type(error)
    assert read.facts == {name: error.facts[name] for name in error.public if name in error.facts}
    assert not read.retryable
    body["error"]["message"] = "something else"
    assert read_refusal(400, encoded(body), carnet_code=error.code).facts == {}


def test_each_of_the_nine_words_is_explained() -> None:
    assert set(MEANINGS) == set(STATUSES)


def test_a_carnet_that_refuses_says_why_and_the_next_step_is_in_our_words() -> None:
    body = b'{"status": "error", "error": {"code": "AUTH_FAILED", "message": "anything"}}'
    error = read_refusal(401, body, carnet_code="key_unknown")
    assert error.facts["peer_code"] == "AUTH_FAILED"
    assert error.facts["peer_reason"] == "key_unknown"
    error.facts["sender"] = "agent://client-x"
    assert "carnet peers add agent://client-x --key" in error.next_step
    assert "peer_reason" not in read_refusal(401, body, carnet_code="made up").facts
    assert "anything" not in error.next_step + error.safe_text


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (DelegationInvalid(reason="it has expired", link=2), "link 2: it has expired"),
        (DelegationInvalid(reason="it was given to somebody else"), "somebody else"),
        (DelegationInvalid(reason="words of theirs"), "link 1"),
        (DelegationWidened(claim="bud.money", link=3), "link 3 widens bud.money"),
        (DelegationWidened(claim="theirs"), "link 2"),
        (DelegationExceeded(reason="the skill is not in its scope"), "is not in its scope"),
        (DelegationExceeded(reason="words of theirs"), None),
    ],
)
def test_why_a_delegation_does_not_hold_is_kept_in_words_of_ours(
    error: CarnetError, why: str | None
) -> None:
    status, headers, body = write_error(error)
    read = read_refusal(status, body, carnet_code=headers["carnet-code"])
    detail = read.facts.get("peer_detail")
    assert (detail is None) if why is None else str(detail).endswith(why)
    assert why is None or f"It says {error.code} ({detail})." in read.next_step
    assert "theirs" not in str(read) + read.next_step
    other = read_refusal(status, body, carnet_code="skill_forbidden")
    assert "peer_detail" not in other.facts


def test_the_phrases_about_delegations_are_those_that_are_said() -> None:
    """Each stands in one of the files that judge a token; numbers are filled in there."""
    files = [module.__file__ or "" for module in (core, wire, guards, jws, refused_identity)]
    source = "".join(Path(file).read_text() for file in files)
    for reason in REASONS:
        parts = re.split(r" [0-9]+ ", reason.removeprefix("it "))
        assert all(part in source for part in parts), reason
