"""The envelope: what is taken, what is refused, and what our own requests look like."""

import json
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from carnet.core.people.identity import Mode, Secret
from carnet.errors import (
    AddressInvalid,
    CarnetError,
    InvalidJson,
    InvalidRequest,
    NonceInvalid,
    TimestampInvalid,
)
from carnet.wire.dialects.samvad.envelope import (
    Envelope,
    canonical,
    read_envelope,
    read_moment,
    write_envelope,
    write_moment,
)
from tests.wire.dialects.samvad.scene import encoded, fields

MODES: list[Mode] = list(get_args(Mode))
ELSEWHERE = "agent://globex.example"


def read(served: Mode = "sync", /, **changed: Any) -> Envelope:
    return read_envelope(encoded(fields(**changed)), mode=served)


def refused(kind: type[CarnetError], served: Mode = "sync", /, **changed: Any) -> CarnetError:
    with pytest.raises(kind) as caught:
        read(served, **changed)
    return caught.value


# ------------------------------------------------------------------ the whole


def test_the_worked_example_of_the_text_is_read() -> None:
    body = encoded(
        {
            "from": "agent://sender.com",
            "to": "agent://receiver.com",
            "skill": "review-code",
            "mode": "sync",
            "nonce": "a1b2c3d4e5f6",
            "timestamp": "2026-04-11T10:00:00Z",
            "traceId": "root-correlation-uuid",
            "spanId": "this-hop-uuid",
            "parentSpanId": "caller-span-uuid",
            "delegationToken": None,
            "auth": {"scheme": "bearer", "token": "t0ken"},  # the text has dots in its place
            "payload": {"code": "function foo() { return 1 }", "language": "typescript"},
        }
    )
    assert read_envelope(body, mode="sync") == Envelope(
        sender="agent://sender.com",
        recipient="agent://receiver.com",
        skill="review-code",
        mode="sync",
        nonce="a1b2c3d4e5f6",
        at=int(datetime(2026, 4, 11, 10, tzinfo=UTC).timestamp()) * 1_000_000,
        trace_id="root-correlation-uuid",
        span_id="this-hop-uuid",
        parent_span_id="caller-span-uuid",
        auth_scheme="bearer",
        auth=Secret("t0ken"),
        payload={"code": "function foo() { return 1 }", "language": "typescript"},
    )


@pytest.mark.parametrize("mode", MODES)
def test_the_same_envelope_serves_every_mode(mode: Mode) -> None:
    assert replace(read(mode, mode=mode), mode="sync") == read()


REQUIRED = ["from", "to", "skill", "mode", "nonce", "timestamp", "traceId", "spanId"]


@pytest.mark.parametrize("name", REQUIRED)
@pytest.mark.parametrize("value", [..., None, 7, [], {}])
def test_a_required_field_must_be_there_and_be_text(name: str, value: object) -> None:
    with pytest.raises((InvalidRequest, NonceInvalid, TimestampInvalid)) as caught:
        read(**{name: value})
    assert name.lower() in caught.value.safe_text.lower()


@pytest.mark.parametrize("name", ["signature", "kid", "From", "from ", "x", ""])
def test_a_field_that_the_protocol_does_not_have_is_refused(name: str) -> None:
    body = encoded(fields() | {name: "hush-hush"})
    with pytest.raises(InvalidRequest) as caught:
        read_envelope(body, mode="sync")
    assert "hush-hush" not in str(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        b'{"from":"agent://a.example","from":"agent://b.example"}',
        b'{"payload":{"a":1,"a":2}}',
        b'{"payload":NaN}',
        b'{"payload":1e400}',
        b'{"payload":9007199254740993}',
        b'{"payload":' + b"[" * 1000,
        b'{"payload":' + b'{"a":' * 40 + b"1" + b"}" * 41,
        b'{"payload":"\\ud800"}',
        b"\xef\xbb\xbf{}",
        b"{} x",
        b"[]",
        b"1",
        b"",
    ],
)
def test_what_is_not_strict_json_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidJson):
        read_envelope(body, mode="sync")


@pytest.mark.parametrize("body", [json.dumps(fields(), indent=3), json.dumps(fields())])
def test_any_spelling_of_the_json_is_taken(body: str) -> None:
    assert read_envelope(body.encode(), mode="sync") == read()
    turned = json.dumps(dict(reversed(fields().items())), separators=(",", ":"))
    assert read_envelope(turned.encode(), mode="sync") == read()


# ------------------------------------------------------------------ field by field


@pytest.mark.parametrize("name", ["from", "to"])
@pytest.mark.parametrize(
    "identity",
    [
        "agent://A.example",
        "agent://a.example.",
        "agent://a..example",
        "agent://a_b.example",
        "agent://receiv\u0435r.com",
        "agent://exam\u200bple.com",
        "agent://a.example/../b",
        "agent://user@a.example",
        "agent://a.example?x",
        "agent://a.example\n",
        "AGENT://a.example",
        "agent:/a.example",
        "agent://",
        "agent://a.example:8443",
        "agent://2130706433",
        "a.example",
        "https://a.example",
    ],
)
def test_identities_are_taken_in_their_stored_form_alone(name: str, identity: str) -> None:
    error = refused(AddressInvalid, **{name: identity})
    assert f"'{name}'" in error.safe_text


@pytest.mark.parametrize("identity", [ELSEWHERE, "agent://client-acme-7f3a", "agent://localhost"])
def test_a_domain_and_one_label_are_identities_by_their_shape(identity: str) -> None:
    assert read(from_=identity).sender == identity
    assert read(to=identity).recipient == identity


@pytest.mark.parametrize("skill", ["", "x" * 65, "a\nb", "a\0"])
def test_a_skill_is_1_to_64_characters(skill: str) -> None:
    assert refused(InvalidRequest, skill=skill).public_facts() == {"field": "skill"}
    assert read(skill="x" * 64).skill == "x" * 64


@pytest.mark.parametrize("mode", ["Sync", "batch", ""])
def test_a_mode_is_one_of_three(mode: str) -> None:
    assert "must be one of sync, async, stream" in refused(InvalidRequest, mode=mode).safe_text


@pytest.mark.parametrize("asked", MODES)
@pytest.mark.parametrize("served", MODES)
def test_the_mode_must_be_that_of_the_endpoint(asked: Mode, served: Mode) -> None:
    if asked == served:
        assert read(served, mode=asked).mode == asked
    else:
        for payload in (..., {"code": "x"}):  # also where nothing else is unusual
            error = refused(InvalidRequest, served, mode=asked, payload=payload)
            assert error.safe_text == f"The field 'mode' must be {served} at this endpoint."


@pytest.mark.parametrize(
    "nonce",
    ["", "1234567", "x" * 65, "x" * 10_000, "12345678\0", "1234 5678", "1234567é", "12345678\n"],
)
def test_a_nonce_is_8_to_64_visible_characters(nonce: str) -> None:  # A15
    refused(NonceInvalid, nonce=nonce)
    assert read(nonce="12345678").nonce == "12345678"
    assert read(nonce="~" * 64).nonce == "~" * 64
    assert read(nonce="abcdefgh").nonce != read(nonce="ABCDEFGH").nonce


@pytest.mark.parametrize("name", ["traceId", "spanId", "parentSpanId"])
@pytest.mark.parametrize("value", ["", " x", "x ", "a\tb", "a\n", "é", "x" * 257])
def test_ids_are_bounded_visible_characters(name: str, value: str) -> None:
    assert refused(InvalidRequest, **{name: value}).public_facts() == {"field": name}


def test_a_trace_is_as_long_as_a_run_and_a_span_as_a_turn() -> None:
    whole = read(traceId="t" * 128, spanId="s" * 256, parentSpanId="p" * 256)
    assert (whole.trace_id, whole.span_id, whole.parent_span_id) == (
        "t" * 128,
        "s" * 256,
        "p" * 256,
    )
    refused(InvalidRequest, traceId="t" * 129)
    refused(InvalidRequest, spanId="s" * 257)


@pytest.mark.parametrize("name", ["parentSpanId", "delegationToken", "auth", "callbackUrl"])
def test_null_is_absent_where_a_field_may_be_absent(name: str) -> None:
    assert read(**{name: None}) == read()


def test_a_delegation_token_is_kept_as_it_came() -> None:
    assert read(delegationToken="ey.J.x").delegation_token == "ey.J.x"
    assert read(delegationToken="").delegation_token == ""
    refused(InvalidRequest, delegationToken=7)
    assert read(delegationToken=" x" * 8193).delegation_token == " x" * 8193  # judged later


def test_a_credential_is_lifted_into_a_secret() -> None:
    whole = read(auth={"scheme": "bearer", "token": "sk-hush"})
    assert whole.auth == Secret("sk-hush")
    assert "sk-hush" not in repr(whole)
    assert read(auth={"token": "sk-hush"}).auth == Secret("sk-hush")


@pytest.mark.parametrize(
    ("auth", "scheme"),
    [
        ({"scheme": "bearer"}, "bearer"),
        ({"scheme": "bearer", "token": ""}, "bearer"),
        ({"scheme": "bearer", "token": None}, "bearer"),
        ({"scheme": "none", "token": "x"}, "none"),
        ({"scheme": "none"}, "none"),
        ({"scheme": "none", "realm": "whatever the schema lets pass"}, "none"),
    ],
)
def test_no_credential_is_none_and_the_skill_may_not_ask_for_one(auth: Any, scheme: str) -> None:
    assert (read(auth=auth).auth_scheme, read(auth=auth).auth) == (scheme, None)


@pytest.mark.parametrize(
    "auth",
    [
        "x",
        [],
        {"scheme": "basic"},
        {"scheme": None},
        {"token": 7},
        {"token": "a b"},
        {"token": "é"},
    ],
)
def test_another_scheme_or_a_token_that_is_none_is_refused(auth: object) -> None:
    assert str(refused(InvalidRequest, auth=auth).public_facts()["field"]).startswith("auth")


def test_a_callback_is_for_the_mode_async_alone() -> None:
    url = "https://my-service.com/x"
    assert read("async", mode="async", callbackUrl=url).callback_url == url
    for mode in MODES:
        if mode == "async":
            continue
        error = refused(InvalidRequest, mode, mode=mode, callbackUrl=url)
        assert error.safe_text == "The field 'callbackUrl' is for the mode async alone."
    refused(InvalidRequest, "async", mode="async", callbackUrl="not a url")
    refused(InvalidRequest, "async", mode="async", callbackUrl=7)


def test_a_payload_that_is_absent_or_null_is_empty() -> None:
    assert read().payload == read(payload=None).payload == {}
    assert read(payload={"a": [1]}).payload == {"a": [1]}


@pytest.mark.parametrize("payload", ["x", 7, [], False, 0])
def test_a_payload_is_an_object(payload: object) -> None:
    assert refused(InvalidRequest, payload=payload).public_facts() == {"field": "payload"}


def test_a_refusal_carries_the_trace_if_that_could_be_read() -> None:
    assert refused(NonceInvalid, nonce="").run == "trace-1"
    assert refused(InvalidRequest, traceId="\n").run is None
    assert refused(InvalidRequest, traceId=7).run is None


# ------------------------------------------------------------------ moments


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01+00:00", 1_000_000),
        ("1970-01-01T00:00:00.5Z", 500_000),
        ("1970-01-01T00:00:00.000001Z", 1),
        ("1970-01-01T00:00:00.123456789Z", 123_456),
        ("1969-12-31T23:59:59Z", -1_000_000),
        ("2024-02-29T12:00:00Z", 1_709_208_000_000_000),
        ("9999-12-31T23:59:59Z", 253_402_300_799_000_000),  # well formed; the window refuses it
    ],
)
def test_a_moment_is_read_by_one_form(text: str, microseconds: int) -> None:
    assert read_moment(text) == microseconds


@pytest.mark.parametrize(
    "value",
    [
        "20260411T100000Z",
        "2026-W15-6T10:00:00Z",
        "2026-04-11 10:00:00Z",
        "2026-04-11T10:00:00",
        "2026-04-11",
        "2026-04-11T10:00:00+23:59",
        "2026-04-11T10:00:00-00:00",
        "2026-04-11T10:00:00,5Z",
        "2026-04-11T24:00:00Z",
        "2026-04-11T10:00:60Z",
        "2026-04-11t10:00:00z",
        "\uff12026-04-11T10:00:00Z",
        "0000-00-00T00:00:00Z",
        "2026-02-29T10:00:00Z",
        "2026-04-11T10:00:00.Z",
        "2026-04-11T10:00:00.1234567890Z",
        "2026-04-11T10:00:00Z\n",
        "",
        1_776_146_908,
        0,
        -1,
        1.5,
        None,
    ],
)
def test_any_other_moment_is_refused(value: object) -> None:  # A16
    with pytest.raises(TimestampInvalid):
        read_moment(value)


@given(st.integers(min_value=-62_000_000_000_000_000, max_value=253_000_000_000_000_000))
def test_a_moment_is_read_as_it_was_written(at: int) -> None:
    assert read_moment(write_moment(at)) == at


# ------------------------------------------------------------------ writing

IDS = st.from_regex(r"[!-~]{1,128}", fullmatch=True)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
ENVELOPES = st.builds(
    Envelope,
    sender=st.sampled_from([ELSEWHERE, "agent://client-x"]),
    recipient=st.just("agent://acme.example"),
    skill=st.from_regex(r"[a-z-]{1,64}", fullmatch=True),
    mode=st.just("async"),
    nonce=st.from_regex(r"[!-~]{8,64}", fullmatch=True),
    at=st.integers(min_value=0, max_value=4_000_000_000_000_000),
    trace_id=IDS,
    span_id=IDS,
    parent_span_id=st.none() | IDS,
    delegation_token=st.none() | IDS,
    auth_scheme=st.just("bearer"),
    auth=st.none() | IDS.map(Secret),
    callback_url=st.none() | IDS,
    payload=st.dictionaries(st.from_regex(r"[a-z]{1,5}", fullmatch=True), VALUES, max_size=3),
)


@given(ENVELOPES)
def test_an_envelope_is_read_as_it_was_written(envelope: Envelope) -> None:
    assert read_envelope(write_envelope(envelope), mode="async") == envelope


@given(st.binary(max_size=200))
def test_any_bytes_are_an_envelope_or_refused(body: bytes) -> None:
    with pytest.raises(CarnetError):
        read_envelope(body, mode="sync")


@given(st.dictionaries(st.sampled_from([*fields(), "payload", "auth", "parentSpanId"]), VALUES))
def test_any_value_of_any_field_is_taken_or_refused(changed: dict[str, Any]) -> None:
    with suppress(CarnetError):
        read(**changed)


def test_what_is_written_is_sorted_and_compact_and_says_nothing_twice() -> None:
    envelope = read(payload={"text": "भारत", "b": {"y": 2, "x": 1}})
    assert write_envelope(envelope).decode() == (
        '{"from":"agent://sender.com","mode":"sync","nonce":"a1b2c3d4e5f6",'
        '"payload":{"b":{"x":1,"y":2},"text":"भारत"},"skill":"review-code","spanId":"span-1",'
        '"timestamp":"2026-04-11T10:00:00.000000Z","to":"agent://receiver.com",'
        '"traceId":"trace-1"}'
    )


def test_a_credential_is_written_as_a_bearer() -> None:
    def auth(**given: Any) -> object:
        return json.loads(write_envelope(replace(read(), **given))).get("auth")

    assert auth(auth=Secret("sk-hush")) == {"scheme": "bearer", "token": "sk-hush"}
    assert auth(auth_scheme="none") == {"scheme": "none"}
    assert auth() is None


def deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize("value", [float("nan"), {1: "a", "b": 2}, object(), "\ud800"])
def test_what_json_has_no_form_for_is_refused_before_it_leaves(value: object) -> None:
    with pytest.raises(InvalidRequest):
        canonical({"payload": value})


def test_a_payload_that_is_too_deep_is_refused_before_it_leaves() -> None:
    with pytest.raises(InvalidRequest):
        canonical(deep())
