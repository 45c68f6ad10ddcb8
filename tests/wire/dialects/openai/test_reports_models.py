"""What a model says when it does not answer, as an error of ours with the provider's words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet import errors
from carnet.errors import CarnetError, ProviderError, ProviderTimeout, ProviderUnavailable
from carnet.wire.dialects.openai.reports import MOST_WORDS, read_model_refusal
from carnet.wire.dialects.refusal import BY_STATUS
from carnet.wire.grammar import json


def refusal(status: int, body: object, retry_after: str | None = None) -> CarnetError:
    data = body if isinstance(body, bytes) else json.write(body)
    return read_model_refusal(status, data, currency="credits", retry_after=retry_after).error


def error_body(message: str, **more: str) -> dict[str, dict[str, str]]:
    return {"error": {"message": message, **more}}


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (400, error_body("no"), errors.ModelRefused),
        (422, error_body("no"), errors.ModelRefused),
        (400, error_body("no", code="context_length_exceeded"), errors.ContextTooLong),
        (413, error_body("The prompt is too long: 9 tokens"), errors.ContextTooLong),
        (401, error_body("no"), errors.ModelKeyRefused),
        (403, error_body("context length"), errors.ModelKeyRefused),
        (402, error_body("no"), errors.ModelQuotaExceeded),
        (404, error_body("no"), errors.ModelNotFound),
        (429, error_body("slower"), errors.ModelRateLimited),
        (429, error_body("no", type="insufficient_quota"), errors.ModelQuotaExceeded),
        (429, b"You exceeded your current quota", errors.ModelQuotaExceeded),
        (408, error_body("context length"), ProviderTimeout),
        (425, error_body("no"), ProviderUnavailable),
        (500, error_body("maximum context"), ProviderUnavailable),
        (503, error_body("no"), ProviderUnavailable),
        (307, b"", ProviderError),
    ],
)
def test_the_status_and_the_words_decide_what_a_model_means(
    status: int, body: object, kind: type[CarnetError]
) -> None:
    error = refusal(status, body)
    assert type(error) is kind
    if kind is not ProviderError:
        assert (error.facts["by"], error.facts["peer_status"]) == (BY_STATUS, status)


def test_the_providers_words_are_for_the_operator_and_not_for_the_caller() -> None:
    error = refusal(400, error_body("sk-123 is\nnot\x00well", type="bad", code="c1"))
    assert error.words == error.detail == "400 bad c1 sk-123 is not well"
    assert "sk-123" not in error.safe_text
    assert "sk-123" not in str(error.public_facts())
    assert refusal(500, b"<html>sk-123</html>").words == "500 <html>sk-123</html>"
    assert refusal(307, b"").words == "307"
    assert refusal(307, b"").detail == "the answer has the status 307"


def test_a_time_to_wait_is_kept_and_what_was_charged_is_not_believed() -> None:
    assert refusal(429, error_body("slower"), "7").retry_after == 7
    assert refusal(429, error_body("slower")).retry_after is None
    body = json.write({**error_body("no"), "usage": {"cost": "1", "currency": "credits"}})
    assert read_model_refusal(400, body, currency="credits").usage is None


@given(st.integers(300, 599), st.binary(max_size=50) | st.text(max_size=50).map(str.encode))
def test_whatever_a_provider_sends_is_told_on_one_short_line(status: int, body: bytes) -> None:
    words = refusal(status, body * 100).words
    assert words is not None
    assert words.isprintable()
    assert len(words) <= MOST_WORDS + 4
