"""Errors: ours as JSON for clients, a peer's as an error of ours."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet import errors
from carnet.core.events import Failed
from carnet.errors import (
    BY_CODE,
    CarnetError,
    DepthExceeded,
    Internal,
    InvalidRequest,
    PeerBusy,
    PeerRefused,
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
    RateLimited,
    TokenInvalid,
    leaves,
)
from carnet.wire import json
from carnet.wire.openai import REFUSALS, error_object, read_refusal, write_error
from carnet.wire.openai.refusals import UNRECOGNISED, read_failure

# Every fact that some sentence of ours asks for.
COUNTS = {"observed": 4, "limit": 4, "hop": 3, "hops": 3, "retry_after": 9, "peer_status": 403}
WORDS = {"reason": "r", "field": "f", "header": "h", "permission": "pay", "suggestion": ""}
OTHERS = {"peer_code": "rate_limited", "incident": "i", "key": "k", "fix": "x", "url": "u"}
FACTS: dict[str, errors.Fact] = {**COUNTS, **WORDS, **OTHERS}

LEAVES = [leaf for leaf in leaves() if leaf.__module__ == "carnet.errors"]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=3,
)
reports = st.fixed_dictionaries(
    {},
    optional={
        "code": st.sampled_from(sorted(BY_CODE)) | json_values,
        **dict.fromkeys(FACTS, json_values),
    },
)


def made(leaf: type[CarnetError]) -> CarnetError:
    """An error of this kind with every fact it could need."""
    return Failed(leaf.code, FACTS).error()


def told(error: CarnetError, **names: str) -> dict[str, Any]:
    _, _, body = write_error(error, **names)
    return json.read_object(body)


def refusal(status: int, body: object, retry_after: str | None = None) -> CarnetError:
    return read_refusal(status, json.write(body), retry_after)


# ------------------------------------------------------------------ writing


def test_every_error_has_one_row() -> None:
    assert set(REFUSALS) == set(LEAVES)


def test_every_wire_code_is_the_one_that_explain_and_the_docs_know() -> None:
    assert {leaf.code: REFUSALS[leaf][1] for leaf in LEAVES} == {code: code for code in BY_CODE}


@pytest.mark.parametrize("leaf", LEAVES)
def test_every_error_is_written_in_the_one_shape(leaf: type[CarnetError]) -> None:
    error = made(leaf)
    status, headers, body = write_error(error, run="conv_abc", turn="conv_abc.t0.echo")
    written = json.read_object(body)
    inner = written["error"]
    assert isinstance(inner, dict)
    assert 400 <= status <= 599
    assert headers["content-type"] == "application/json"
    assert (written["code"], written["message"]) == (inner["code"], inner["message"])
    assert inner["code"] == leaf.code
    assert inner["message"] == error.safe_text
    assert inner["hint"] == error.next_step
    assert inner["docs"] == f"/-/errors/{leaf.code}"
    assert (inner["run"], inner["turn"]) == ("conv_abc", "conv_abc.t0.echo")
    assert inner["type"]


def test_a_chain_that_is_too_deep_is_told_as_the_interface_prints_it() -> None:
    error = DepthExceeded(observed=4, limit=4)
    assert error_object(error, run="conv_abc") == {
        "code": "bridge_depth_exceeded",
        "message": "This call arrived at depth 4; the limit here is 4.",
        "type": "rate_limit_error",
        "hint": error.next_step,
        "docs": "/-/errors/bridge_depth_exceeded",
        "run": "conv_abc",
        "observed": 4,
        "limit": 4,
    }
    assert write_error(error)[0] == 429


def test_a_run_or_turn_that_nobody_knows_is_left_out() -> None:
    inner = told(TokenInvalid())["error"]
    assert "run" not in inner
    assert "turn" not in inner


def test_the_raw_detail_is_for_our_log_alone() -> None:
    error = ProviderError("Traceback: /srv/app/model.py key sk-123")
    assert b"sk-123" not in write_error(error, run="r")[2]


@pytest.mark.parametrize(
    ("leaf", "word"),
    [
        (errors.InvalidJson, "invalid_request_error"),
        (errors.BodyTooLarge, "invalid_request_error"),
        (errors.TokenMissing, "authentication_error"),
        (errors.PaymentRequired, "payment_required"),
        (errors.ForwardingNotAllowed, "permission_error"),
        (errors.AgentNotFound, "not_found_error"),
        (errors.InProgress, "conflict_error"),
        (errors.RateLimited, "rate_limit_error"),
        (errors.AgentFailed, "server_error"),
        (errors.CircuitOpen, "server_error"),
    ],
)
def test_the_type_is_a_word_that_clients_of_this_dialect_know(
    leaf: type[CarnetError], word: str
) -> None:
    assert error_object(made(leaf), run=None)["type"] == word


def test_the_time_to_wait_is_a_header() -> None:
    assert write_error(RateLimited(retry_after=7))[1]["retry-after"] == "7"
    assert "retry-after" not in write_error(ProviderUnavailable())[1]


def test_a_chain_that_is_too_deep_never_says_when_to_try_again() -> None:
    late = Failed("bridge_depth_exceeded", {"observed": 4, "limit": 4, "retry_after": 1}).error()
    headers = write_error(late)[1]
    assert "retry-after" not in headers
    assert headers["x-should-retry"] == "false"


def test_only_final_errors_with_a_status_that_clients_repeat_forbid_repeating() -> None:
    forbidden = {
        leaf.code
        for leaf in LEAVES
        if "x-should-retry"
        in write_error(Failed(leaf.code, FACTS | {"retry_after": None}).error())[1]
    }
    assert forbidden == {
        *("bridge_depth_exceeded", "chain_final", "run_calls_exceeded", "definition_changed"),
        *("peer_refused", "egress_refused", "config_invalid", "unreachable"),
    }


def test_a_missing_credential_is_answered_with_a_challenge() -> None:
    assert write_error(TokenInvalid())[1]["www-authenticate"] == "Bearer"
    assert "www-authenticate" not in write_error(InvalidRequest("n", "must be 1"))[1]


def test_an_error_outside_the_table_is_told_as_the_nearest_inside() -> None:
    # Made without registering a subclass for good: the tree is walked by other tests.
    odd = CarnetError()
    assert write_error(odd)[0] == 500
    assert error_object(odd, run=None)["code"] == Internal.code


# ------------------------------------------------------------------ a peer's refusal


@pytest.mark.parametrize("status", [429, 413])
@pytest.mark.parametrize(
    "body",
    [
        {"code": "bridge_depth_exceeded", "observed": 5, "limit": 4},
        {"error": {"code": "bridge_depth_exceeded", "observed": 5, "limit": 4}},
        {"error": {"code": "bridge_depth_exceeded"}, "observed": 5, "limit": 4},
        {"code": "bridge_depth_exceeded", "error": {"code": 7, "observed": 5, "limit": 4}},
    ],
)
def test_a_chain_too_deep_for_the_peer_is_ours_too_and_terminal(status: int, body: object) -> None:
    error = refusal(status, body, "3")
    assert isinstance(error, DepthExceeded)
    assert error.facts == {"observed": 5, "limit": 4}
    assert not error.retryable
    assert error.retry_after is None


@pytest.mark.parametrize("value", [None, "5", -1, True, 5.0, [5]])
def test_a_depth_that_is_not_a_count_is_told_as_zero(value: object) -> None:
    error = refusal(429, {"code": "bridge_depth_exceeded", "observed": value, "limit": 4})
    assert error.facts == {"observed": 0, "limit": 4}


def test_our_own_refusal_of_depth_is_read_back_as_it_was() -> None:
    status, headers, body = write_error(DepthExceeded(observed=9, limit=4), run="r", turn="t")
    error = read_refusal(status, body, headers.get("retry-after"))
    assert isinstance(error, DepthExceeded)
    assert error.facts == {"observed": 9, "limit": 4}


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (408, ProviderTimeout),
        (504, ProviderTimeout),
        (425, ProviderUnavailable),
        (500, ProviderUnavailable),
        (502, ProviderUnavailable),
        (503, ProviderUnavailable),
        (529, ProviderUnavailable),
        (307, ProviderError),
        (204, ProviderError),
        *[(status, PeerRefused) for status in (400, 401, 402, 403, 404, 409, 410, 422, 451)],
        (429, PeerBusy),
    ],
)
def test_the_status_decides_what_kind_of_failure_it_is(
    status: int, kind: type[CarnetError]
) -> None:
    assert type(refusal(status, {"error": {"message": "no"}})) is kind


def test_the_time_an_unavailable_peer_asks_for_is_kept() -> None:
    assert refusal(503, {}, "12").retry_after == 12
    assert refusal(503, {}).retry_after is None


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"error": {"code": "permission_missing"}}, "permission_missing"),
        ({"code": "payment_required"}, "payment_required"),
        ({"error": "payment_required"}, UNRECOGNISED),
        ({"error": {"code": "insufficient_quota"}}, UNRECOGNISED),
        ({"error": {"code": None}}, UNRECOGNISED),
        ({"error": {"code": ["not_found"]}}, UNRECOGNISED),
        ([], UNRECOGNISED),
    ],
)
def test_a_peers_code_is_kept_only_if_it_is_a_word_of_ours(body: object, code: str) -> None:
    error = refusal(403, body)
    assert error.facts == {"peer_status": 403, "peer_code": code}
    assert error.safe_text.endswith(f"(403 {code}).")


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"code":"not_found"', b"\xff", b"[" * 10_000])
def test_a_refusal_that_cannot_be_read_is_still_a_refusal(body: bytes) -> None:
    assert read_refusal(404, body, None).facts == {"peer_status": 404, "peer_code": UNRECOGNISED}


@pytest.mark.parametrize(
    ("status", "code", "retry_after", "wait"),
    [
        (429, "rate_limited", "7", 7),
        (429, "something_else", "7", 7),
        (429, "something_else", None, 1),
        (429, "something_else", "Wed, 21 Oct 2026 07:28:00 GMT", 1),
        (429, "something_else", "-1", 1),
        (429, "something_else", "٣", 1),
        (429, "something_else", "1" * 7, 1),
        (429, "something_else", "", 1),
        (409, "in_progress", "2", 2),
        (409, "cancelled", None, 1),
        (429, "run_calls_exceeded", "7", None),
        (429, "chain_final", None, None),
        (403, "something_else", "7", None),
        (402, "spending_limit_reached", "7", None),
    ],
)
def test_a_refusal_carries_a_time_to_wait_exactly_when_it_may_be_sent_again(
    status: int, code: str, retry_after: str | None, wait: int | None
) -> None:
    assert refusal(status, {"error": {"code": code}}, retry_after).retry_after == wait


def test_nothing_of_the_peers_text_is_kept() -> None:
    secret = "sk-123 /srv/app"
    error = refusal(400, {"error": {"message": secret, "code": secret}, "message": secret}, secret)
    assert secret not in str(error)
    assert secret not in write_error(error)[2].decode()


@given(st.integers(100, 599), st.binary(max_size=60), st.none() | st.text(max_size=8))
def test_whatever_a_peer_says_it_becomes_an_error_that_can_be_written(
    status: int, body: bytes, retry_after: str | None
) -> None:
    assert write_error(read_refusal(status, body, retry_after))[0] >= 400


# ------------------------------------------------------------------ an error inside a stream


def test_a_code_of_ours_is_kept_with_its_numbers() -> None:
    report = {"code": "bridge_depth_exceeded", "observed": 5, "limit": 4, "message": "no", "x": 1}
    assert read_failure(report) == Failed("bridge_depth_exceeded", {"observed": 5, "limit": 4})
    assert read_failure({"code": "agent_failed", "observed": 5}) == Failed("agent_failed")


@pytest.mark.parametrize("report", ["boom", {}, {"code": "boom"}, {"code": 500}, [], 1, False])
def test_a_code_that_is_not_ours_is_a_providers_error(report: object) -> None:
    assert read_failure(report) == Failed("provider_error")


def test_a_code_whose_sentence_needs_the_peers_words_is_told_as_the_peers() -> None:
    report = {"code": "invalid_request", "field": "sk-123", "reason": "sk-123"}
    assert read_failure(report) == Failed(
        "peer_refused", {"peer_status": 400, "peer_code": "invalid_request"}
    )
    assert read_failure({"code": "internal", "incident": "sk-123"}) == Failed("provider_error")


@pytest.mark.parametrize(
    ("code", "told", "status"),
    [
        ("token_invalid", "peer_refused", 401),
        ("payment_required", "peer_refused", 402),
        ("rate_limited", "peer_busy", 429),
        ("shutting_down", "peer_busy", 503),
    ],
)
def test_what_a_peer_says_of_us_is_not_said_of_our_caller(
    code: str, told: str, status: int
) -> None:
    failed = read_failure({"code": code, "retry_after": 3})
    assert (failed.code, failed.facts["peer_status"]) == (told, status)
    assert failed.facts["peer_code"] == code


def test_a_refusal_by_the_peers_peer_keeps_its_status_and_a_code_we_know() -> None:
    report = {"code": "peer_refused", "peer_status": 402, "peer_code": "payment_required"}
    facts: dict[str, errors.Fact] = {"peer_status": 402, "peer_code": "payment_required"}
    assert read_failure(report) == Failed("peer_refused", facts)
    assert read_failure(report | {"peer_code": "sk-123"}).facts["peer_code"] == UNRECOGNISED


@given(reports)
def test_whatever_a_stream_reports_it_can_be_said_in_words_of_ours(report: dict[str, Any]) -> None:
    error = read_failure(report).error()
    assert error_object(error, run=None)["message"] == error.safe_text
    words = [fact for fact in error.facts.values() if isinstance(fact, str)]
    assert all(word in {*BY_CODE, UNRECOGNISED} for word in words)
