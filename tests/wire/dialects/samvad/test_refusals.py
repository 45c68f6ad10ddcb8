"""Errors: ours in the nine words of the protocol."""

from typing import Any

import pytest

from carnet import errors
from carnet.core.messages.events import Failed
from carnet.errors import (
    CarnetError,
    DepthExceeded,
    Internal,
    InvalidRequest,
    KeyUnknown,
    NonceReplayed,
    Overloaded,
    RateLimited,
    SchemaInvalid,
    SignatureInvalid,
    TooManyCalls,
    leaves,
)
from carnet.wire.dialects.samvad import (
    CODE_HEADER,
    FIELD_HEADER,
    REFUSALS,
    STATUSES,
    error_object,
    write_error,
)
from carnet.wire.grammar import json

LEAVES = [leaf for leaf in leaves() if leaf.__module__.startswith("carnet.errors.")]
FACTS: dict[str, errors.Fact] = {
    "observed": 4,
    "limit": 4,
    "hop": 3,
    "hops": 3,
    "retry_after": 9,
    "peer_status": 403,
    "reason": "r",
    "field": "f",
    "header": "h",
    "permission": "pay",
    "suggestion": "",
    "peer_code": "rate_limited",
    "incident": "i",
    "key": "k",
    "fix": "x",
    "url": "u",
}

NINE = {
    "AUTH_FAILED": 401,
    "REPLAY_DETECTED": 401,
    "SKILL_NOT_FOUND": 404,
    "SCHEMA_INVALID": 400,
    "INJECTION_DETECTED": 400,
    "DELEGATION_EXCEEDED": 400,
    "RATE_LIMITED": 429,
    "TOKEN_BUDGET_EXCEEDED": 429,
    "AGENT_UNAVAILABLE": 500,
}

# What HTTP has a word for and the nine lack keeps its own status.
OTHER_STATUSES = {402, 403, 405, 408, 409, 413, 414, 415, 431, 451, 503}


def made(leaf: type[CarnetError]) -> CarnetError:
    """An error of this kind with every fact it could need, and a detail that must not leave."""
    error = Failed(leaf.code, FACTS).error()
    error.detail = "hush-hush"
    return error


def error_body(error: CarnetError, **given: Any) -> dict[str, Any]:
    _, _, body = write_error(error, **given)
    return json.read_object(body)


def test_every_error_has_one_row() -> None:
    assert set(REFUSALS) == set(LEAVES)


def test_the_nine_codes_have_the_statuses_of_the_text() -> None:
    assert STATUSES == NINE


def test_every_row_has_one_of_the_nine_codes_and_its_status_or_a_plainer_one() -> None:
    for status, code in REFUSALS.values():
        assert status in {NINE[code], *OTHER_STATUSES}


@pytest.mark.parametrize("leaf", LEAVES)
def test_every_error_is_written_in_the_one_shape(leaf: type[CarnetError]) -> None:
    status, headers, body = write_error(made(leaf), trace_id="trace-1", span_id="span-9")
    answer = json.read_object(body)
    assert (status, answer["error"]["code"]) == REFUSALS[leaf]  # type: ignore[index]
    assert list(answer) == ["traceId", "spanId", "status", "error"]
    assert (answer["traceId"], answer["spanId"], answer["status"]) == ("trace-1", "span-9", "error")
    assert set(answer["error"]) == {"code", "message"}  # type: ignore[call-overload]
    assert headers[CODE_HEADER] == leaf.code
    assert headers["content-type"] == "application/json"
    assert b"hush-hush" not in body


@pytest.mark.parametrize(
    ("error", "field"),
    [
        (SchemaInvalid("lines[0].sku", "is required"), "lines[0].sku"),
        (InvalidRequest("nonce", "must be text"), "nonce"),
        (SchemaInvalid("(unprintable)", "is required"), None),
        (SignatureInvalid(), None),
    ],
)
def test_a_field_has_a_header_of_its_own(error: CarnetError, field: str | None) -> None:
    assert write_error(error)[1].get(FIELD_HEADER) == field


def test_a_skill_that_is_not_there_is_told_with_the_nearest() -> None:
    message = error_object(errors.SkillNotFound(suggestion="book"))["message"]
    assert message.startswith("The agent has no such skill. Did you mean 'book'? ")
    assert "carnet agents inspect" in message
    assert "Did you mean" not in error_object(errors.SkillNotFound())["message"]


def test_the_message_says_what_to_do_next() -> None:
    error = KeyUnknown(sender="agent://client-x")
    message = error_object(error)["message"]
    assert message.startswith("No key of this sender is known here. ")
    assert "carnet peers add agent://client-x --key BASE64" in message


def test_what_a_schema_refuses_names_the_field_and_the_constraint() -> None:
    error = SchemaInvalid("code", "exceeds maxLength of 50000 characters")
    assert error_object(error) == {
        "code": "SCHEMA_INVALID",
        "message": "Field 'code' exceeds maxLength of 50000 characters",
    }
    assert "'mode' must be sync" in error_object(InvalidRequest("mode", "must be sync"))["message"]


def test_the_error_example_of_the_text_is_written() -> None:
    error = SchemaInvalid("code", "exceeds maxLength of 50000 characters")
    assert error_body(error, trace_id="root-correlation-uuid", span_id="responder-uuid") == {
        "traceId": "root-correlation-uuid",
        "spanId": "responder-uuid",
        "status": "error",
        "error": {
            "code": "SCHEMA_INVALID",
            "message": "Field 'code' exceeds maxLength of 50000 characters",
        },
    }


def test_an_error_names_the_trace_that_it_met() -> None:
    error = SignatureInvalid()
    assert error_body(error)["traceId"] == ""
    error.run = "trace-1"
    assert error_body(error)["traceId"] == "trace-1"
    assert error_body(error, trace_id="trace-2")["traceId"] == "trace-2"
    assert (
        error_body(error)["spanId"]
        == error_body(error)["spanId"]
        != error_body(NonceReplayed())["spanId"]
    )


@pytest.mark.parametrize("leaf", [leaf for leaf in LEAVES if REFUSALS[leaf][0] == 429])
def test_every_429_says_when_to_come_back(leaf: type[CarnetError]) -> None:
    assert write_error(made(leaf))[1]["retry-after"] == "9"
    assert write_error(Failed(leaf.code).error())[1]["retry-after"] == "1"


def test_a_wait_is_told_elsewhere_only_if_it_helps() -> None:
    assert write_error(Overloaded())[1]["retry-after"] == "1"
    assert "retry-after" not in write_error(SignatureInvalid())[1]
    assert "retry-after" not in write_error(made(errors.PayerRefused))[1]
    assert write_error(RateLimited(retry_after=7))[1]["retry-after"] == "7"
    assert write_error(TooManyCalls(limit=3))[1]["retry-after"] == "1"


def test_a_chain_too_deep_is_final() -> None:
    status, headers, _ = write_error(DepthExceeded(observed=4, limit=4))
    assert status == 400
    assert "retry-after" not in headers


def test_a_401_carries_a_challenge() -> None:
    assert write_error(SignatureInvalid())[1]["www-authenticate"] == "Signature"
    assert "www-authenticate" not in write_error(RateLimited())[1]


def test_what_is_derived_from_a_leaf_is_told_as_that_leaf_and_the_rest_as_our_fault() -> None:
    class Odd(SignatureInvalid):
        """Derived by somebody."""

    class Stray(CarnetError):
        """Of no leaf."""

    assert error_object(Odd())["code"] == "AUTH_FAILED"
    assert write_error(Stray())[0] == REFUSALS[Internal][0]
