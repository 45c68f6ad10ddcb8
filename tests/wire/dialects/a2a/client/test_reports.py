"""What A2A agents say when they do not answer, as errors of ours."""

import json
from typing import Any

import pytest

from carnet.errors import (
    AgentFailed,
    CarnetError,
    ChainFinal,
    DepthExceeded,
    PeerBusy,
    PeerRefused,
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
    TaskNotFound,
)
from carnet.runtime.wrappers.retrying import may_repeat
from carnet.wire.dialects.a2a.client import read_error, read_failure, read_refusal
from carnet.wire.dialects.a2a.client.reports import REASONS, STATUSES

INFO = "type.googleapis.com/google.rpc.ErrorInfo"
CANARY = "slip of the peer"


def info(reason: object, **metadata: object) -> list[Any]:
    return ["x", {"@type": "other"}, {"@type": INFO, "reason": reason, "metadata": metadata}]


def refused(status: int, error: object, **headers: str) -> CarnetError:
    return read_refusal(status, json.dumps({"error": error}).encode(), **headers)


@pytest.mark.parametrize(("code", "reason"), REASONS.items())
def test_every_word_of_the_protocol_has_an_error(code: int, reason: str) -> None:
    by_code = read_error({"code": code, "message": CANARY})
    by_name = refused(STATUSES[reason], {"code": 400, "details": info(reason), "message": CANARY})
    assert type(by_code) is type(by_name)
    assert by_code.facts == by_name.facts
    assert CANARY not in str(by_code) + by_code.safe_text + by_code.next_step
    if reason == "TASK_NOT_FOUND":
        assert isinstance(by_code, TaskNotFound)
    else:
        assert by_code.facts["peer_code"] == reason
        expected = ProviderError if STATUSES[reason] == 500 else PeerRefused
        assert type(by_code) is expected
    assert may_repeat(by_code) is (reason == "INTERNAL_ERROR")


@pytest.mark.parametrize(
    ("status", "kind", "repeats"),
    [
        (302, ProviderError, False),
        (400, PeerRefused, False),
        (401, PeerRefused, False),
        (404, PeerRefused, False),
        (408, ProviderTimeout, True),
        (429, PeerBusy, True),
        (500, ProviderUnavailable, True),
        (501, ProviderUnavailable, False),
        (503, ProviderUnavailable, True),
        (504, ProviderTimeout, True),
    ],
)
def test_a_bare_status_says_what_it_says(
    status: int, kind: type[CarnetError], *, repeats: bool
) -> None:
    """R56: which of them are a reason to send the call again."""
    for body in (b"", b"no", b"[]", b'{"error": 7}', b'{"error": {"code": "x", "details": 7}}'):
        found = read_refusal(status, body)
        assert type(found) is kind
        assert may_repeat(found) is repeats


def test_a_time_to_wait_is_kept() -> None:
    busy = read_refusal(503, b"", retry_after="7")
    assert isinstance(busy, PeerBusy)
    assert busy.retry_after == 7
    assert read_refusal(429, b"").retry_after == 1


def test_a_chain_that_is_too_deep_is_terminal() -> None:
    """R1."""
    deep = refused(429, {"details": info("BRIDGE_DEPTH_EXCEEDED", observed="4", limit=4)})
    assert isinstance(deep, DepthExceeded)
    assert deep.facts == {"observed": 4, "limit": 4}
    assert not may_repeat(deep)
    bare = read_error({"code": -32050, "data": [*info("CHAIN_FINAL"), {"@type": INFO}]})
    assert isinstance(bare, ChainFinal)
    odd = read_error({"data": info("bridge_depth_exceeded", observed="٣", limit=-1)})
    assert odd.facts == {}
    text = read_error({"data": [{"@type": INFO, "reason": "CHAIN_FINAL", "metadata": 7}]})
    assert text.facts == {}


@pytest.mark.parametrize(
    ("reason", "kind", "code"),
    [
        ("RATE_LIMITED", PeerBusy, "rate_limited"),
        ("OVERLOADED", PeerBusy, "overloaded"),
        ("TOKEN_INVALID", PeerRefused, "token_invalid"),
        ("AGENT_FAILED", ProviderError, "agent_failed"),
    ],
)
def test_a_carnet_says_it_in_our_words(reason: str, kind: type[CarnetError], code: str) -> None:
    status = 500 if reason == "AGENT_FAILED" else 400
    found = refused(status, {"details": info(reason)})
    assert type(found) is kind
    assert code in {found.facts["peer_code"], found.facts.get("peer_reason")}
    beside = refused(
        400, {"code": -32602, "details": info("INVALID_PARAMS", code="skill_not_found")}
    )
    assert beside.facts["peer_code"] == "INVALID_PARAMS"
    assert beside.facts["peer_reason"] == "skill_not_found"
    missing = refused(404, {"details": info("X", code="task_not_found")})
    assert isinstance(missing, TaskNotFound)


@pytest.mark.parametrize(
    ("error", "kind", "facts"),
    [
        ({"code": "bridge_depth_exceeded", "observed": 4, "limit": 4}, DepthExceeded,
         {"observed": 4, "limit": 4}),
        ({"code": "payment_required"}, PeerRefused,
         {"peer_status": 402, "peer_code": "payment_required"}),
        ({"code": "provider_error"}, AgentFailed, {"by": "peer"}),
        ({"code": CANARY}, AgentFailed, {"by": "peer"}),
        ({"code": 7}, AgentFailed, {"by": "peer"}),
        (7, AgentFailed, {"by": "peer"}),
    ],
)  # fmt: skip
def test_a_task_that_failed_at_a_carnet_says_why(
    error: object, kind: type[CarnetError], facts: dict[str, object]
) -> None:
    found = read_failure({"urn:carnet:a2a:error:v1": error})
    assert type(found) is kind
    assert found.facts == facts
    assert not may_repeat(found)
    assert CANARY not in str(found)


def test_an_error_of_no_known_code_is_a_fault() -> None:
    for error in (7, None, {}, {"code": 7}, {"code": "x"}, {"data": {"reason": CANARY}}):
        found = read_error(error)
        assert type(found) is ProviderError
        assert CANARY not in str(found)


PART = {"kind": "payment_required", "message": "Pay."}


@pytest.mark.parametrize(
    "beside",
    [
        {"data": PART},
        {"data": [PART]},
        {"data": [7, {"data": PART}]},
        {"details": [{"@type": "https://mentionable.dev/ns/policy/v0.1", **PART}]},
    ],
)
def test_what_may_be_policy_parts_goes_along_with_an_error(beside: dict[str, Any]) -> None:
    for found in (read_error({"code": -32602, **beside}), refused(402, {"code": 402, **beside})):
        assert PART in found.policies
        assert "Pay." not in str(found) + found.safe_text + found.next_step


def test_a_body_that_is_a_policy_part_goes_along() -> None:
    found = read_refusal(451, json.dumps(PART).encode())
    assert found.policies == (PART,)
    assert read_refusal(451, b"[]").policies == ({},)


def test_a_carnet_has_said_by_its_code_what_a_part_would_say() -> None:
    found = refused(429, {"code": 429, "details": [*info("RATE_LIMITED"), PART]})
    assert type(found) is PeerBusy
    assert found.policies == ()
