"""Errors: ours as JSON for clients, and a chain too deep, there and back."""

from typing import Any

import pytest

from carnet import errors
from carnet.core.messages.events import Failed, Usage
from carnet.errors import (
    BY_CODE,
    CarnetError,
    DepthExceeded,
    Internal,
    InvalidRequest,
    ProviderError,
    ProviderUnavailable,
    RateLimited,
    TokenInvalid,
    leaves,
)
from carnet.wire.dialects.openai import REFUSALS, error_object, read_refusal, write_error
from carnet.wire.grammar import json

# Every fact that some sentence of ours asks for.
COUNTS = {"observed": 4, "limit": 4, "hop": 3, "hops": 3, "retry_after": 9, "peer_status": 403}
WORDS = {"reason": "r", "field": "f", "header": "h", "permission": "pay", "suggestion": ""}
OTHERS = {"peer_code": "rate_limited", "incident": "i", "key": "k", "fix": "x", "url": "u"}
FACTS: dict[str, errors.Fact] = {**COUNTS, **WORDS, **OTHERS}

LEAVES = [leaf for leaf in leaves() if leaf.__module__.startswith("carnet.errors.")]


def made(leaf: type[CarnetError]) -> CarnetError:
    """An error of this kind with every fact it could need."""
    return Failed(leaf.code, FACTS).error()


def error_body(error: CarnetError) -> dict[str, Any]:
    _, _, body = write_error(error)
    return json.read_object(body)


def refusal(status: int, body: object, retry_after: str | None = None) -> CarnetError:
    body_bytes = json.write(body)
    return read_refusal(status, body_bytes, currency="credits", retry_after=retry_after).error


# ------------------------------------------------------------------ writing

# What an agent asks for is told in the word that a refusal of the same kind has.
ASKED_FOR = {"payment_wanted": "payment_required", "wait_required": "rate_limited"}


def test_every_error_has_one_row() -> None:
    assert set(REFUSALS) == set(LEAVES)


def test_every_wire_code_is_the_one_that_explain_and_the_docs_know() -> None:
    written = {leaf.code: REFUSALS[leaf][1] for leaf in LEAVES}
    assert written == {code: ASKED_FOR.get(code, code) for code in BY_CODE}
    assert set(ASKED_FOR.values()) <= set(BY_CODE)


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
    assert inner["code"] == ASKED_FOR.get(leaf.code, leaf.code)
    assert inner["message"] == error.safe_text
    assert inner["hint"] == error.next_step
    assert inner["docs"] == f"/-/errors/{inner['code']}"
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
    inner = error_body(TokenInvalid())["error"]
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
        *(
            "statement_invalid",
            "peer_refused",
            "egress_refused",
            "config_invalid",
            "unreachable",
            "loop_detected",
        ),
        *("model_key_refused", "model_not_found", "peer_credential_missing"),
        "fault_injected",  # 500: it was wanted
        "task_not_cancelable",  # 409: it has ended
        "run_already_started",  # 409: no name is run twice
        *("policy_state_invalid", "answered_otherwise"),  # 409: a resolution is used once
        *("person_exists", "trigger_exists", "too_many_triggers"),
        *("conversation_full", "too_many_conversations", "memory_full", "memory_changed"),
        *("too_many_waiting", "too_many_questions"),  # 429: first something has to be answered
        *("wait_required", "unavailable"),  # a policy: the turn waits for an answer
    }


def test_a_missing_credential_is_answered_with_a_challenge() -> None:
    assert write_error(TokenInvalid())[1]["www-authenticate"] == "Bearer"
    assert "www-authenticate" not in write_error(InvalidRequest("n", "must be 1"))[1]


def test_an_error_outside_the_table_is_told_as_the_nearest_inside() -> None:
    # Made without registering a subclass for good: the tree is walked by other tests.
    odd = CarnetError()
    assert write_error(odd)[0] == 500
    assert error_object(odd, run=None)["code"] == Internal.code


# ------------------------------------------------------------------ what it has cost


def test_what_a_failed_call_has_cost_stands_beside_its_error() -> None:
    usage = Usage(3, 5, 200, 400, "credits")
    _, _, body = write_error(ProviderError(), run="r", usage=usage, currency="credits")
    written = json.read_object(body)
    assert written.pop("usage") == {
        "prompt_tokens": 3,
        "completion_tokens": 5,
        "total_tokens": 8,
        "cost": "0.0002",
        "currency": "credits",
        "run_cost": "0.0004",
    }
    assert json.write(written) == write_error(ProviderError(), run="r")[2]


def test_the_currency_of_a_cost_may_be_its_own() -> None:
    _, _, body = write_error(ProviderError(), usage=Usage(cost=1, currency="credits"))
    assert json.read_object(body)["usage"]["currency"] == "credits"  # type: ignore[index]


@pytest.mark.parametrize(
    "usage", [None, Usage(), Usage(3, 5), Usage(3, 5, 0, 7, "credits"), Usage(cost=1)]
)
def test_a_call_that_cost_nothing_has_no_word_of_it_beside_its_error(usage: Usage | None) -> None:
    plain = write_error(ProviderError())
    assert write_error(ProviderError(), usage=usage) == plain
    if usage is None or not usage.cost:
        assert write_error(ProviderError(), usage=usage, currency="credits") == plain


# ------------------------------------------------------------------ a chain too deep for a peer


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
def test_a_depth_that_is_not_a_count_was_not_told(value: object) -> None:
    error = refusal(429, {"code": "bridge_depth_exceeded", "observed": value, "limit": 4})
    assert error.facts == {"limit": 4}
    untold = refusal(429, {"code": "bridge_depth_exceeded", "observed": 5, "limit": value})
    assert untold.safe_text == "This call arrived at depth 5; limit: not told."


def test_our_own_refusal_of_depth_is_read_back_as_it_was() -> None:
    status, headers, body = write_error(DepthExceeded(observed=9, limit=4), run="r", turn="t")
    wait = headers.get("retry-after")
    error = read_refusal(status, body, currency="credits", retry_after=wait).error
    assert isinstance(error, DepthExceeded)
    assert error.facts == {"observed": 9, "limit": 4}
