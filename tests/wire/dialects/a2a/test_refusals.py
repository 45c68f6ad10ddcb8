"""Errors in both bindings."""

from typing import Any

import msgspec
import pytest

from carnet import errors
from carnet.errors import CarnetError
from carnet.wire.dialects.a2a import DIALECT, HTTP_DIALECT
from carnet.wire.dialects.a2a.extensions.questions.policy_part import POLICY_URI, failure_part
from carnet.wire.dialects.a2a.refusals import DOMAIN, INFO, REFUSALS, form_of
from carnet.wire.grammar import json
from tests.wire.dialects.openai.test_refusals import LEAVES, made

DETAIL = "a detail for our log alone"


def rpc(error: CarnetError) -> tuple[int, dict[str, Any]]:
    status, _, body = DIALECT.refusal(error)
    return status, json.read_object(body)


def http(error: CarnetError) -> tuple[int, dict[str, Any]]:
    status, _, body = HTTP_DIALECT.refusal(error)
    google: dict[str, Any] = msgspec.json.decode(body)["error"]
    return status, google


@pytest.mark.parametrize("leaf", LEAVES)
def test_every_error_has_a_form_in_both_bindings(leaf: type[CarnetError]) -> None:
    error = made(leaf)
    error.request_id, error.run = "q1", "conv_1"
    form = form_of(error)
    assert -32768 <= form.code <= -32000
    status, answer = rpc(error)
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", "q1")
    assert "result" not in answer
    assert answer["error"]["code"] == form.code
    assert status in {200, form.status}
    status, google = http(error)
    assert (status, google["code"]) == (form.status, form.status)
    assert google["status"].replace("_", "").isupper()
    for details in (answer["error"]["data"], google["details"]):
        (detail,) = details
        assert detail["@type"] == INFO
        assert detail["reason"] == (form.reason or error.code.upper())
        assert detail["metadata"]["docs"] == f"/-/errors/{error.code}"
        assert detail["metadata"]["run"] == "conv_1"
        assert all(isinstance(value, str) for value in detail["metadata"].values())


def test_what_a2a_has_a_word_for_is_told_by_it() -> None:
    words: dict[type[CarnetError], tuple[int, int, str, str]] = {
        errors.TaskNotFound: (-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND"),
        errors.TaskNotCancelable: (-32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE"),
        errors.OperationUnsupported: (-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION"),
        errors.MediaTypeUnsupported: (
            -32005,
            415,
            "INVALID_ARGUMENT",
            "CONTENT_TYPE_NOT_SUPPORTED",
        ),
        errors.UnsupportedProtocolVersion: (
            *(-32009, 400, "FAILED_PRECONDITION"),
            "VERSION_NOT_SUPPORTED",
        ),
    }
    for leaf, (code, status, grpc, reason) in words.items():
        error = made(leaf)
        assert rpc(error)[1]["error"]["code"] == code
        assert (http(error)[0], http(error)[1]["status"]) == (status, grpc)
        (detail,) = http(error)[1]["details"]
        assert (detail["reason"], detail["domain"]) == (reason, DOMAIN)
    assert all(form.domain == DOMAIN or not form.reason for form in REFUSALS.values())


def test_a_detail_for_the_log_is_told_to_nobody() -> None:
    for leaf in (errors.Internal, errors.TokenInvalid, errors.PeerResponseInvalid):
        error = leaf(DETAIL)
        assert DETAIL not in str(rpc(error)) + str(http(error))


def test_who_has_to_wait_is_told_how_long() -> None:
    error = errors.RateLimited(retry_after=9)
    for dialect in (DIALECT, HTTP_DIALECT):
        status, fields, body = dialect.refusal(error)
        assert status == 429
        assert (b"retry-after", b"9") in fields
        assert b'"retry_after":"9"' in body


def test_a_refusal_of_another_word_is_told_in_that() -> None:
    (detail,) = http(made(errors.PaymentWanted))[1]["details"]
    assert detail["metadata"]["code"] == "payment_required"


@pytest.mark.parametrize("leaf", LEAVES)
def test_who_activated_policy_parts_is_told_a_refusal_by_one(leaf: type[CarnetError]) -> None:
    error = made(leaf)
    error.wanted = (POLICY_URI,)
    part = failure_part(error)
    expected = [] if part is None else [{"@type": POLICY_URI, **part}]
    assert rpc(error)[1]["error"]["data"][1:] == expected
    assert http(error)[1]["details"][1:] == expected
