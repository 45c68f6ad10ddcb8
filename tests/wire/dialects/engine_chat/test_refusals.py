"""What went wrong, in the words of the contract."""

import pytest

from carnet import errors
from carnet.core.messages.events import Done, Failed
from carnet.errors import (
    CarnetError,
    InvalidRequest,
    ModelRefused,
    Overloaded,
    ProviderError,
    TokenInvalid,
    Upstream,
)
from carnet.wire.dialects.engine_chat.refusals import (
    BEFORE,
    FAILURES,
    MESSAGES,
    end_of,
    write_refusal,
)
from carnet.wire.grammar import json
from tests.wire.dialects.openai.test_refusals import LEAVES, made

CODES = {"provider_error", "tool_error", "context_overflow"}
REASONS = {"cancelled", "shutting_down", "budget_exceeded"}


def test_there_are_three_codes_with_one_sentence_each() -> None:
    assert set(MESSAGES) == set(FAILURES) == CODES
    assert len(set(MESSAGES.values())) == len(CODES)


@pytest.mark.parametrize("leaf", [leaf for leaf in LEAVES if issubclass(leaf, Upstream)])
def test_every_failure_of_somebody_we_called_has_a_code(leaf: type[CarnetError]) -> None:
    end = end_of(made(leaf))
    # A fault of the loop itself, or of no loop: it is never asked.
    if leaf in {errors.AgentFailed, errors.FaultInjected}:
        assert end is None
    else:
        assert isinstance(end, Failed)
        assert end.code in CODES


@pytest.mark.parametrize("leaf", LEAVES)
def test_every_error_is_a_code_a_reason_or_a_fault(leaf: type[CarnetError]) -> None:
    match end_of(made(leaf)):
        case Failed(code=code):
            assert code in CODES
        case Done(reason=reason):
            assert reason in REASONS
        case other:
            assert other is None


def test_the_cause_decides_and_never_the_words() -> None:
    words = "context length exceeded: too many tokens, 401 unauthorized, ENOENT tool failed"
    for kind in (ProviderError, ModelRefused):
        assert end_of(kind(words)) == Failed("provider_error")


def test_an_error_that_somebody_derived_is_told_as_the_one_it_is() -> None:
    class Derived(ProviderError):
        pass

    assert end_of(Derived()) == Failed("provider_error")


def test_what_a_code_stands_for_is_written_as_that_code_again() -> None:
    for code, kind in FAILURES.items():
        assert end_of(kind()) == Failed(code)


@pytest.mark.parametrize("leaf", LEAVES)
def test_before_the_stream_every_error_is_a_status_a_code_and_a_message(
    leaf: type[CarnetError],
) -> None:
    status, body = write_refusal(made(leaf))
    page = json.read_object(body)
    assert list(page) == ["code", "message"]
    assert page["code"] == BEFORE[status][0]
    assert (status < 500) is (leaf.status < 500)


def test_the_statuses_of_the_design_have_their_codes() -> None:
    refusals = {
        InvalidRequest("messages", "must be a list of at least one message"): (
            400,
            {
                "code": "invalid_request",
                "message": "The field 'messages' must be a list of at least one message.",
            },
        ),
        TokenInvalid("sk-1"): (
            401,
            {"code": "unauthorized", "message": "The request needs a valid credential."},
        ),
        Overloaded("/srv/var"): (
            503,
            {"code": "engine_unavailable", "message": "The engine takes no request at the moment."},
        ),
    }
    for error, (status, page) in refusals.items():
        found, body = write_refusal(error)
        assert (found, json.read_object(body)) == (status, page)
