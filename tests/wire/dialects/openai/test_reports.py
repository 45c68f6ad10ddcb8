"""What a peer says when it does not answer, as an error of ours."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carnet import errors
from carnet.core.messages.events import Failed, Usage
from carnet.errors import (
    BY_CODE,
    CarnetError,
    ChainFinal,
    PeerBusy,
    PeerRefused,
    ProviderError,
    ProviderTimeout,
    ProviderUnavailable,
)
from carnet.wire.dialects.openai import error_object, read_refusal, write_error
from carnet.wire.dialects.openai.reports import read_failure
from carnet.wire.dialects.outbound import Refusal
from carnet.wire.dialects.refusal import BY_CALLEE, BY_PEER, BY_STATUS, UNRECOGNISED
from carnet.wire.grammar import json

NAMES = ("observed", "limit", "hop", "hops", "retry_after", "peer_status", "peer_code", "incident")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2),
    max_leaves=3,
)
reports = st.fixed_dictionaries(
    {},
    optional={
        "code": st.sampled_from(sorted(BY_CODE)) | json_values,
        **dict.fromkeys(NAMES, json_values),
    },
)


def read(status: int, body: object, **headers: str | None) -> Refusal:
    return read_refusal(status, json.write(body), currency="credits", **headers)


def refusal(status: int, body: object, retry_after: str | None = None) -> CarnetError:
    return read(status, body, retry_after=retry_after).error


def coded(status: int, code: str, **facts: object) -> CarnetError:
    return refusal(status, {"error": {"code": code, "message": "sk-123", **facts}, "code": code})


# ------------------------------------------------------------------ a status nobody explains


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
    error = refusal(status, {"error": {"message": "no"}})
    assert type(error) is kind
    unexplained = kind in {ProviderTimeout, ProviderUnavailable}
    assert error.facts.get("by") == (BY_STATUS if unexplained else None)


@pytest.mark.parametrize("status", [429, 503])
def test_an_unknown_refusal_that_says_for_how_long_is_a_busy_peer(status: int) -> None:
    error = refusal(status, {}, "12")
    assert isinstance(error, PeerBusy)
    assert error.facts == {"peer_status": status, "peer_code": UNRECOGNISED, "retry_after": 12}


def test_another_fault_that_says_for_how_long_stays_a_fault() -> None:
    error = refusal(502, {}, "12")
    assert isinstance(error, ProviderUnavailable)
    assert error.facts == {"by": BY_STATUS, "peer_status": 502, "retry_after": 12}


# ------------------------------------------------------------------ an outcome that is reported


@pytest.mark.parametrize(
    ("status", "code", "kind", "by"),
    [
        (500, "agent_failed", ProviderError, BY_PEER),
        (502, "provider_error", ProviderError, BY_PEER),
        (500, "internal", ProviderError, BY_CALLEE),
        (503, "outcome_unknown", ProviderError, BY_CALLEE),
        (503, "provider_unavailable", ProviderUnavailable, BY_PEER),
        (503, "circuit_open", ProviderUnavailable, BY_PEER),
        (503, "storage_unavailable", ProviderUnavailable, BY_CALLEE),
        (504, "provider_timeout", ProviderTimeout, BY_PEER),
        (408, "header_timeout", ProviderTimeout, BY_CALLEE),
        (408, "body_timeout", ProviderTimeout, BY_CALLEE),
        (503, "peer_busy", PeerBusy, BY_PEER),
    ],
)
def test_an_outcome_that_the_peer_reports_keeps_its_meaning_and_is_marked(
    status: int, code: str, kind: type[CarnetError], by: str
) -> None:
    error = coded(status, code)
    assert type(error) is kind
    assert error.facts["by"] == by
    in_stream = read_failure({"code": code})
    assert type(in_stream.error()) is kind
    assert in_stream.facts["by"] == BY_PEER
    assert "by" not in error.public_facts()


def test_the_time_an_open_circuit_asks_for_is_kept() -> None:
    error = refusal(503, {"code": "circuit_open"}, "12")
    assert error.facts == {"by": BY_PEER, "retry_after": 12}
    assert "retry_after" not in coded(503, "circuit_open").facts


@pytest.mark.parametrize(
    ("status", "code"),
    [(409, "cancelled"), (409, "definition_changed"), (502, "egress_refused"), (500, "not_found")],
)
def test_what_the_peer_has_decided_is_a_refusal(status: int, code: str) -> None:
    error = coded(status, code)
    assert isinstance(error, PeerRefused)
    assert error.facts == {"peer_status": status, "peer_code": code}


def test_a_refusal_by_the_peers_peer_keeps_its_status_and_a_code_we_know() -> None:
    report = {"code": "peer_refused", "peer_status": 402, "peer_code": "payment_required"}
    facts: dict[str, errors.Fact] = {"peer_status": 402, "peer_code": "payment_required"}
    assert read_failure(report) == Failed("peer_refused", facts)
    assert read_failure(report | {"peer_code": "sk-123"}).facts["peer_code"] == UNRECOGNISED
    error = refusal(502, {"error": report})
    assert isinstance(error, PeerRefused)
    assert error.facts == facts


def test_a_peer_whose_peer_is_busy_is_told_as_such() -> None:
    report = {"code": "peer_busy", "peer_status": 429, "peer_code": "rate_limited"}
    error = refusal(503, {"error": report}, "7")
    assert isinstance(error, PeerBusy)
    assert error.facts == {
        "peer_status": 429,
        "peer_code": "rate_limited",
        "by": BY_PEER,
        "retry_after": 7,
    }


def test_a_final_hop_that_called_on_is_told_as_such() -> None:
    error = coded(429, "chain_final", hop=3, hops=3)
    assert isinstance(error, ChainFinal)
    assert error.facts == {"hop": 3, "hops": 3}


# ------------------------------------------------------------------ a peer that is busy


BUSY = (
    *("rate_limited", "too_many_calls", "too_many_streams", "overloaded", "shutting_down"),
    "in_progress",
)


@pytest.mark.parametrize("code", BUSY)
@pytest.mark.parametrize("status", [409, 429, 503])
def test_a_peer_that_is_busy_says_so_and_for_how_long(status: int, code: str) -> None:
    error = refusal(status, {"error": {"code": code}}, "7")
    assert isinstance(error, PeerBusy)
    assert error.facts == {"peer_status": status, "peer_code": code, "retry_after": 7}
    assert coded(status, code).retry_after == 1
    assert read_failure({"code": code}).facts["retry_after"] == 1


@pytest.mark.parametrize("code", sorted(set(BY_CODE) - set(BUSY)))
def test_no_other_word_of_ours_is_a_busy_peer(code: str) -> None:
    for status in (409, 429, 500, 503):
        error = coded(status, code)
        assert not isinstance(error, PeerBusy) or error.facts["by"] == BY_PEER


DATE = "Wed, 21 Oct 2026 07:28:00 GMT"


@pytest.mark.parametrize(
    ("retry_after", "date", "wait"),
    [
        ("Wed, 21 Oct 2026 07:28:09 GMT", DATE, 9),
        (DATE, DATE, 0),
        ("Wed, 21 Oct 2026 07:27:00 GMT", DATE, 0),
        ("Sun, 01 Nov 2026 21:14:39 GMT", DATE, 999_999),
        ("Sun, 01 Nov 2026 21:14:40 GMT", DATE, None),
        ("Fri, 31 Dec 9999 23:59:59 GMT", DATE, None),
        (DATE, None, None),
        (DATE, "yesterday", None),
        (DATE, "Wed, 31 Feb 2026 07:28:00 GMT", None),
        ("Wed, 21 Oct 2026 25:28:00 GMT", DATE, None),
        ("Wed, 21 Oct 2026 07:28:09 +0000", DATE, None),
        ("Wednesday, 21-Oct-26 07:28:09 GMT", DATE, None),
        ("Wed, ٢١ Oct 2026 07:28:09 GMT", DATE, None),
        ("Wed, 21 Oct 2026 07:28:09 GMT\n", DATE, None),
        ("Wed, 21 Oct 0000 07:28:09 GMT", DATE, None),
        ("9", DATE, 9),
    ],
)
def test_a_date_to_come_back_at_is_measured_from_the_date_of_the_answer(
    retry_after: str, date: str | None, wait: int | None
) -> None:
    assert read(429, {}, retry_after=retry_after, date=date).error.retry_after == wait


@pytest.mark.parametrize("text", ["-1", "٣", "1" * 7, "", " 1", "1.5", "1\n", "soon"])
def test_what_is_no_waiting_time_says_nothing(text: str) -> None:
    assert read(429, {}, retry_after=text, date=DATE).error.retry_after is None
    assert refusal(429, {"code": "rate_limited"}, text).retry_after == 1


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (429, "run_calls_exceeded"),
        (429, "chain_final"),
        (403, "something_else"),
        (402, "spending_limit_reached"),
        (409, "cancelled"),
    ],
)
def test_a_refusal_that_is_final_carries_no_time_to_wait(status: int, code: str) -> None:
    assert refusal(status, {"error": {"code": code}}, "7").retry_after is None


# ------------------------------------------------------------------ whatever else it says


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


@pytest.mark.parametrize(
    ("code", "field", "kept"),
    [
        ("schema_invalid", "lines[0].sku", {"peer_field": "lines[0].sku"}),
        ("schema_invalid", "is not a field", {}),
        ("invalid_request", "messages", {}),
    ],
)
def test_of_a_refused_input_the_name_of_the_field_is_kept(
    code: str, field: str, kept: dict[str, str]
) -> None:
    body = json.write({"error": {"code": code, "message": "hush", "field": field}})
    error = read_refusal(422, body, currency="credits").error
    assert error.facts == {"peer_status": 422, "peer_code": code, **kept}
    assert ("about the field 'lines[0].sku'" in error.next_step) == bool(kept)


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"code":"not_found"', b"\xff", b"[" * 10_000])
def test_a_refusal_that_cannot_be_read_is_still_a_refusal(body: bytes) -> None:
    report = read_refusal(404, body, currency="credits")
    assert report.error.facts == {"peer_status": 404, "peer_code": UNRECOGNISED}
    assert report.usage is None


def test_nothing_of_the_peers_text_is_kept() -> None:
    secret = "sk-123 /srv/app"
    error = refusal(400, {"error": {"message": secret, "code": secret}, "message": secret}, secret)
    assert secret not in str(error)
    assert secret not in write_error(error)[2].decode()


@given(st.integers(100, 599), st.binary(max_size=60), st.none() | st.text(max_size=8))
def test_whatever_a_peer_says_it_becomes_an_error_that_can_be_written(
    status: int, body: bytes, retry_after: str | None
) -> None:
    report = read_refusal(
        status, body, currency="credits", retry_after=retry_after, date=retry_after
    )
    assert write_error(report.error)[0] >= 400


# ------------------------------------------------------------------ what it has cost


amounts = st.integers(1, 10**15)
counts = st.integers(0, 10**12)


@given(st.builds(Usage, counts, counts, amounts, st.none() | amounts, st.just("credits")))
def test_a_cost_beside_an_error_is_read_back_as_it_was(usage: Usage) -> None:
    status, _, body = write_error(errors.AgentFailed(), usage=usage, currency="credits")
    report = read_refusal(status, body, currency="credits")
    assert isinstance(report.error, ProviderError)
    assert report.usage == usage


@pytest.mark.parametrize(
    "usage",
    [
        None,
        "0.5",
        [],
        {},
        {"cost": "0", "currency": "credits"},
        {"cost": None, "currency": "credits"},
        {"cost": "0.5", "currency": "USD"},
        {"cost": "0.5"},
        {"cost": 0.5, "currency": "credits"},
        {"cost": "-0.5", "currency": "credits"},
        {"cost": "0.5", "currency": "credits", "prompt_tokens": -1},
        {"cost": "0.5", "currency": "credits", "prompt_tokens": 10**12 + 1},
    ],
)
def test_a_cost_that_is_none_or_not_ours_is_not_told(usage: object) -> None:
    report = read(500, {"error": {"code": "agent_failed"}, "usage": usage})
    assert isinstance(report.error, ProviderError)
    assert report.usage is None


def test_a_cost_is_read_where_we_write_it_and_nowhere_else() -> None:
    usage = {"cost": "0.5", "currency": "credits"}
    assert read(500, {"error": {"code": "internal", "usage": usage}}).usage is None
    assert read(500, {"code": "internal", "usage": usage}).usage == Usage(
        cost=500_000, currency="credits"
    )


# ------------------------------------------------------------------ an error inside a stream


def test_a_code_about_the_chain_is_kept_with_its_numbers() -> None:
    report = {"code": "bridge_depth_exceeded", "observed": 5, "limit": 4, "message": "no", "x": 1}
    assert read_failure(report) == Failed("bridge_depth_exceeded", {"observed": 5, "limit": 4})


@pytest.mark.parametrize("report", ["boom", {}, {"code": "boom"}, {"code": 500}, [], 1, False])
def test_a_code_that_is_not_ours_is_a_providers_error(report: object) -> None:
    assert read_failure(report) == Failed("provider_error")


def test_a_code_whose_sentence_needs_the_peers_words_is_told_as_the_peers() -> None:
    report = {"code": "invalid_request", "field": "sk-123", "reason": "sk-123"}
    assert read_failure(report) == Failed(
        "peer_refused", {"peer_status": 400, "peer_code": "invalid_request"}
    )
    internal = read_failure({"code": "internal", "incident": "sk-123"})
    assert internal == Failed("provider_error", {"by": BY_PEER})


@pytest.mark.parametrize(
    ("code", "ours", "status"),
    [
        ("token_invalid", "peer_refused", 401),
        ("payment_required", "peer_refused", 402),
        ("rate_limited", "peer_busy", 429),
        ("shutting_down", "peer_busy", 503),
    ],
)
def test_what_a_peer_says_of_us_is_not_said_of_our_caller(
    code: str, ours: str, status: int
) -> None:
    failed = read_failure({"code": code, "retry_after": 3})
    assert (failed.code, failed.facts["peer_status"]) == (ours, status)
    assert failed.facts["peer_code"] == code


@given(reports)
def test_whatever_a_stream_reports_it_can_be_said_in_words_of_ours(report: dict[str, Any]) -> None:
    error = read_failure(report).error()
    assert error_object(error, run=None)["message"] == error.safe_text
    words = [fact for fact in error.facts.values() if isinstance(fact, str)]
    assert all(word in {*BY_CODE, UNRECOGNISED, BY_PEER} for word in words)
