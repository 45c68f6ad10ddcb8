"""What a provider of Anthropic's messages says when it does not answer (R51)."""

import pytest

from carnet.runtime.wrappers.retrying import may_repeat
from carnet.wire.dialects.anthropic.reports import MOST_WORDS, read_failure, read_refusal
from tests.wire.dialects.anthropic.scene import error, refused


@pytest.mark.parametrize(
    ("status", "kind", "code", "again"),
    [
        (400, "invalid_request_error", "model_refused", ""),
        (401, "authentication_error", "model_key_refused", ""),
        (402, "billing_error", "model_quota_exceeded", ""),
        (403, "permission_error", "model_key_refused", ""),
        (404, "not_found_error", "model_not_found", ""),
        (413, "request_too_large", "context_length_exceeded", ""),
        (429, "rate_limit_error", "model_rate_limited", "again"),
        (500, "api_error", "provider_unavailable", "again"),
        (504, "timeout_error", "provider_timeout", "again"),
        (529, "overloaded_error", "provider_unavailable", "again"),
        (529, "", "provider_unavailable", "again"),
        (418, "new_error", "model_refused", ""),
        (503, "", "provider_unavailable", "again"),
        (302, "", "provider_error", ""),
    ],
)
def test_a_refusal_keeps_its_meaning_and_is_asked_again_where_that_may_help(
    status: int, kind: str, code: str, again: str
) -> None:
    answer = refused(status, kind, "try sk-ant-123456")
    failure = read_refusal(status, answer.body, currency="credits").error
    assert failure.code == code
    assert may_repeat(failure) is bool(again)
    assert failure.words == " ".join(filter(None, [str(status), kind, "try sk-ant-123456"]))
    assert "try" not in failure.safe_text


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("prompt is too long: 200251 tokens > 200000 maximum", "context_length_exceeded"),
        (
            "input length and `max_tokens` exceed context limit: 1 + 2 > 2",
            "context_length_exceeded",
        ),
        ("tools.0: the prompt is too long for context", "model_refused"),
    ],
)
def test_a_conversation_that_is_too_long_is_told_by_how_a_message_begins(
    message: str, code: str
) -> None:
    answer = refused(400, "invalid_request_error", message)
    assert read_refusal(400, answer.body, currency="").error.code == code
    inside = error("invalid_request_error", message)["error"]
    assert read_failure(inside).code == code


def test_how_long_to_wait_is_kept() -> None:
    found = read_refusal(429, refused(429, "rate_limit_error").body, currency="", retry_after="7")
    assert found.error.retry_after == 7


@pytest.mark.parametrize("body", [b"", b"<html>\n gone</html>", b'{"error":"no"}', b"\xff" * 9000])
def test_whatever_else_came_is_told_by_its_status(body: bytes) -> None:
    failure = read_refusal(500, body, currency="").error
    assert failure.code == "provider_unavailable"
    assert failure.words is not None
    assert failure.words.startswith("500")
    assert failure.words.isprintable()
    assert len(failure.words) <= MOST_WORDS + 4
