"""Errors: a closed tree; each leaf can be told to a peer without telling what a peer sent."""

import re

import pytest

import carnet.errors
from carnet.errors import (
    BY_CODE,
    AgentNotFound,
    CarnetError,
    ChainFinal,
    ChainMismatch,
    DepthExceeded,
    Internal,
    InvalidJson,
    InvalidRequest,
    MalformedCallerContext,
    PermissionMissing,
    RateLimited,
    TokenMissing,
    kinds_of,
    leaves,
)
from carnet.wire.dialects.openai.refusals import REFUSALS

LEAVES = list(leaves())


def bare(kind: type[CarnetError]) -> CarnetError:
    """The error with nothing filled in."""
    error = kind.__new__(kind)
    CarnetError.__init__(error)
    return error


def test_every_leaf_has_a_code_of_its_own() -> None:
    assert len(BY_CODE) == len(LEAVES)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", code) for code in BY_CODE)


@pytest.mark.parametrize("kind", LEAVES)
def test_every_leaf_says_what_happened_what_it_means_and_what_to_do(
    kind: type[CarnetError],
) -> None:
    error = bare(kind)
    assert error.safe_text
    assert error.next_step
    assert kind.__doc__
    assert 400 <= kind.status <= 599
    spoken = {*re.findall(r"{(\w+)}", kind.template), "suggestion"}  # may be absent
    spoken |= {"needed", "left"}  # told where they are the caller's to know
    spoken |= {"reason", "covers"}  # of a payment: in one word, and how much it is worth
    spoken |= {"said"}  # by whoever ends the turn with its own words (R43)
    spoken |= {"stamp", "ceiling", "root"}  # of the limit that ended a chain
    spoken |= {"peer_code", "peer_reason", "peer_field", "peer_detail"}
    assert set(kind.public) <= spoken
    assert not any(kind is not other and issubclass(kind, other) for other in LEAVES)


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = set(re.findall(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)*\b", str(carnet.errors.__doc__)))
    assert {kind.__name__ for kind in LEAVES} <= drawn


def test_a_fact_that_nobody_gave_does_not_hide_the_error() -> None:
    assert RateLimited().safe_text.endswith("unknown s.")
    assert PermissionMissing().next_step.endswith("--scope unknown.")


def test_the_log_gets_the_detail_and_the_peer_does_not() -> None:
    error = TokenMissing("from 10.0.0.7")
    assert str(error) == f"token_missing: {error.safe_text} (from 10.0.0.7)"
    assert str(TokenMissing()) == f"token_missing: {error.safe_text}"
    assert "10.0.0.7" not in error.safe_text


def test_every_code_that_a_client_sees_tells_all_that_it_may_mean() -> None:
    for kind, (_, code) in REFUSALS.items():
        assert code == (kind.sent_as or kind.code)
        assert kind in kinds_of(code)
        assert kinds_of(code)[0].code == code
    assert [kind.code for kind in kinds_of("payment_required")] == [
        "payment_required",
        "payment_wanted",
    ]
    assert kinds_of("no_such_code") == []


def test_a_retry_time_is_known_or_none() -> None:
    assert RateLimited(retry_after=7).retry_after == 7
    assert RateLimited(retry_after="soon").retry_after is None
    assert RateLimited().retry_after is None


def test_facts_for_machines_are_those_the_leaf_names() -> None:
    assert DepthExceeded(observed=5, limit=4).public_facts() == {"observed": 5, "limit": 4}
    assert ChainFinal(hop=4, hops=4).public_facts() == {"hop": 4, "hops": 4}
    assert PermissionMissing(permission=None).public_facts() == {}
    assert RateLimited(retry_after=7).public_facts() == {}
    assert Internal("boom", incident="i-1").public_facts() == {"incident": "i-1"}


def test_a_refusal_by_depth_names_both_numbers_and_is_final() -> None:
    error = DepthExceeded(observed=4, limit=4)
    assert (error.status, error.code, error.retryable) == (429, "bridge_depth_exceeded", False)
    assert "depth 4" in error.safe_text
    assert "limit here is 4" in error.safe_text
    assert error.retry_after is None


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (InvalidJson("empty"), "not valid JSON: empty"),
        (InvalidRequest("model", "is missing"), "'model' is missing"),
        (MalformedCallerContext("x-tangle-runid", "is bad"), "'x-tangle-runid' is bad"),
        (ChainMismatch("two runs"), "contradict one another: two runs"),
        (AgentNotFound(), "No agent of that name is served here."),
        (AgentNotFound(suggestion="echo"), "Did you mean 'echo'?"),
    ],
)
def test_a_refusal_names_our_field_and_our_reason(error: CarnetError, text: str) -> None:
    assert text in error.safe_text
