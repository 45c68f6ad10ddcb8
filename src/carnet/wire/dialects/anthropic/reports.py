"""What a provider says when it does not answer: its refusals and failures as errors of ours (R51).

Law 1. The type of an error says what it is; where none is known, the status does.
Law 2. There is no type for a conversation that is too long: two fixed sentences say that, at the
       beginning of a message and nowhere else.
Law 3. The provider's own words are for the operator alone, cut at a bound.
"""

import re
from typing import Any, Final

from carnet import errors
from carnet.errors import CarnetError, InvalidJson, ProviderError, ProviderUnavailable
from carnet.wire.dialects.outbound import Refusal
from carnet.wire.dialects.refusal import BY_STATUS, unexplained, waiting
from carnet.wire.grammar import json
from carnet.wire.grammar.retry_after import read_wait

MOST_WORDS: Final = 1000  # characters of what a provider says

STATUSES: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 503,  # with the status 529, which nobody else has
}
_OVERLOADED: Final = 529
_KINDS: Final[dict[int, type[CarnetError]]] = {
    401: errors.ModelKeyRefused,
    402: errors.ModelQuotaExceeded,
    403: errors.ModelKeyRefused,
    404: errors.ModelNotFound,
    413: errors.ContextTooLong,
    429: errors.ModelRateLimited,
}
_TOO_LONG: Final = re.compile(
    r"prompt is too long|input length and `?max_tokens`? exceed context limit",
    re.ASCII | re.IGNORECASE,
)


def read_refusal(
    status: int,
    body: bytes,
    *,
    currency: str,
    retry_after: str | None = None,
    date: str | None = None,
) -> Refusal:
    """What an answer that is none stands for, with the provider's words."""
    del currency  # what a model costs is ours to say
    error, wait = _error_in(body), read_wait(retry_after, date)
    kind = STATUSES.get(str(error.get("type")))
    if not 400 <= status < 600:  # noqa: PLR2004  neither an answer nor a refusal
        failure: CarnetError = ProviderError(f"the answer has the status {status}")
    else:
        failure = _failure(kind or (503 if status == _OVERLOADED else status), error, wait)
    failure.words = f"{status} {_words(error, body)}".strip()
    failure.detail = failure.detail or failure.words
    return Refusal(error=failure)


def read_failure(error: dict[str, Any]) -> CarnetError:
    """What an error inside a stream stands for, with the provider's words."""
    status = STATUSES.get(str(error.get("type")))
    failure = ProviderError() if status is None else _failure(status, error, None)
    failure.words = failure.detail = _words(error, b"")
    return failure


def _failure(status: int, error: dict[str, Any], wait: int | None) -> CarnetError:
    if status == 400 and _TOO_LONG.match(str(error.get("message"))):  # noqa: PLR2004
        return errors.ContextTooLong(by=BY_STATUS, peer_status=status)
    kind = _KINDS.get(status)
    if kind is not None:
        return kind(by=BY_STATUS, peer_status=status, **waiting(wait))
    if status in {408, 425, 504}:
        return unexplained(status, wait)
    if status >= 500:  # noqa: PLR2004  the class of faults
        return ProviderUnavailable(by=BY_STATUS, peer_status=status, **waiting(wait))
    return errors.ModelRefused(by=BY_STATUS, peer_status=status)


def _error_in(body: bytes) -> dict[str, Any]:
    try:
        error = json.read_object(body).get("error")
    except InvalidJson:
        return {}
    return error if isinstance(error, dict) else {}


def _words(error: dict[str, Any], body: bytes) -> str:
    """What a provider says, on one line: its error, or whatever it sent."""
    parts = [str(error.get(name) or "") for name in ("type", "message")]
    text = " ".join(filter(None, parts)) or body[: 4 * MOST_WORDS].decode(errors="replace")
    plain = "".join(sign if sign.isprintable() else " " for sign in text[:MOST_WORDS])
    return " ".join(plain.split())
