"""Signatures of hooks: each scheme as its maker describes it, and no other request."""

import hmac
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from carnet.core.people.identity import Secret
from carnet.errors import HookRefused, InvalidJson, InvalidRequest, TimestampOutOfWindow
from carnet.wire.grammar.headers import Headers
from carnet.wire.hooks.scheme import (
    GITHUB,
    SCHEMES,
    SLACK,
    STANDARD,
    STRIPE,
    TOLERANCE_SECONDS,
    URL,
    WEEK_SECONDS,
    YEAR_SECONDS,
    HookEvent,
    Scheme,
    check_secret,
    new_secret,
    prove,
)

NOW = 1_700_000_000
BODY = json.dumps({"id": "evt_1", "event_id": "Ev1", "type": "order"}).encode()
SECRETS = {scheme.name: new_secret(scheme, "drawn") for scheme in SCHEMES.values()}
OTHER = {scheme.name: new_secret(scheme, "another") for scheme in SCHEMES.values()}

Fields = dict[str, str]


def keyed(secret: Secret, content: bytes) -> str:
    return hmac.new(secret.reveal().encode(), content, "sha256").hexdigest()


def standard(secret: Secret, body: bytes, at: int) -> Fields:
    moment = datetime.fromtimestamp(at, UTC)
    signature = Webhook(secret.reveal()).sign("msg_1", moment, body.decode())
    return {"webhook-id": "msg_1", "webhook-timestamp": str(at), "webhook-signature": signature}


def github(secret: Secret, body: bytes, _: int) -> Fields:
    return {"x-hub-signature-256": f"sha256={keyed(secret, body)}", "x-github-delivery": "d"}


def stripe(secret: Secret, body: bytes, at: int) -> Fields:
    signed = keyed(secret, f"{at}.".encode() + body)
    return {"stripe-signature": f"t={at},v1={signed},v0={'0' * 64}"}


def slack(secret: Secret, body: bytes, at: int) -> Fields:
    signed = keyed(secret, f"v0:{at}:".encode() + body)
    return {"x-slack-request-timestamp": str(at), "x-slack-signature": f"v0={signed}"}


SIGN: Mapping[str, Callable[[Secret, bytes, int], Fields]] = {
    "standard": standard,
    "github": github,
    "stripe": stripe,
    "slack": slack,
}
TIMED = ("standard", "stripe", "slack")


def proved(
    scheme: Scheme,
    fields: Fields,
    body: bytes = BODY,
    *,
    secrets: tuple[Secret, ...] | None = None,
    now: int = NOW,
    shown: str | None = None,
) -> HookEvent:
    headers = Headers([(name.encode(), value.encode()) for name, value in fields.items()])
    return prove(
        scheme, headers, body, secrets=secrets or (SECRETS[scheme.name],), now=now, shown=shown
    )


@pytest.mark.parametrize("name", SIGN)
def test_what_its_maker_signs_holds_under_the_secret_and_the_one_before_it(name: str) -> None:
    fields = SIGN[name](SECRETS[name], BODY, NOW)
    event = proved(SCHEMES[name], fields)
    assert event.body == json.loads(BODY)
    assert proved(SCHEMES[name], fields, secrets=(OTHER[name], SECRETS[name])) == event
    with pytest.raises(HookRefused):
        proved(SCHEMES[name], fields, secrets=(OTHER[name],))


@pytest.mark.parametrize("name", SIGN)
def test_a_body_that_was_changed_or_a_signature_that_is_missing_is_refused(name: str) -> None:
    fields = SIGN[name](SECRETS[name], BODY, NOW)
    with pytest.raises(HookRefused):
        proved(SCHEMES[name], fields, BODY + b" ")
    for missing in set(fields) - {"x-github-delivery"}:
        with pytest.raises(HookRefused):
            proved(SCHEMES[name], {k: v for k, v in fields.items() if k != missing})
    with pytest.raises(HookRefused):
        proved(SCHEMES[name], fields, shown="a" * 40)  # of another scheme


@pytest.mark.parametrize("name", TIMED)
def test_a_stale_request_is_refused_on_both_sides_of_the_window(name: str) -> None:
    scheme = SCHEMES[name]
    for late in (TOLERANCE_SECONDS, -TOLERANCE_SECONDS):
        assert proved(scheme, SIGN[name](SECRETS[name], BODY, NOW - late)).id
        beyond = late + (1 if late > 0 else -1)
        with pytest.raises(TimestampOutOfWindow):
            proved(scheme, SIGN[name](SECRETS[name], BODY, NOW - beyond))
    forged = SIGN[name](OTHER[name], BODY, 0)  # nobody is told the time who cannot sign
    with pytest.raises(HookRefused):
        proved(scheme, forged)


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("standard", "webhook-timestamp", "1e9"),
        ("standard", "webhook-timestamp", "-1"),
        ("standard", "webhook-id", "x" * 257),
        ("standard", "webhook-signature", "v2,AAAA v1a,AAAA v1,!!"),
        ("github", "x-hub-signature-256", "sha1=" + "0" * 40),
        ("github", "x-hub-signature-256", "sha256=" + "G" * 64),
        ("stripe", "stripe-signature", f"t={NOW},t={NOW},v1=" + "0" * 64),
        ("stripe", "stripe-signature", "v1=" + "0" * 64),
        ("slack", "x-slack-request-timestamp", "١"),
        ("slack", "x-slack-signature", "v1=" + "0" * 64),
    ],
)
def test_what_is_no_signature_is_refused(name: str, field: str, value: str) -> None:
    fields = SIGN[name](SECRETS[name], BODY, NOW)
    assert field in fields
    with pytest.raises(HookRefused):
        proved(SCHEMES[name], fields | {field: value})


def test_a_sender_that_changes_its_secret_may_sign_with_both() -> None:
    fields = standard(SECRETS["standard"], BODY, NOW)
    other = standard(OTHER["standard"], BODY, NOW)["webhook-signature"]
    fields["webhook-signature"] = f"{other} {fields['webhook-signature']}"
    assert proved(STANDARD, fields).id == "msg_1"
    signed = stripe(SECRETS["stripe"], BODY, NOW)["stripe-signature"]
    assert proved(STRIPE, {"stripe-signature": f"{signed}, v1={'0' * 64}"}).id == "evt_1"


def test_an_event_is_known_by_what_is_signed_and_by_nothing_else() -> None:
    def event(scheme: Scheme, body: bytes = BODY, **more: str) -> HookEvent:
        fields = SIGN[scheme.name](SECRETS[scheme.name], body, NOW)
        return proved(scheme, fields | {k.replace("_", "-"): v for k, v in more.items()}, body)

    assert event(STANDARD).id == "msg_1"
    assert event(STRIPE).id == "evt_1"
    assert event(SLACK).id == "Ev1"
    assert event(GITHUB).id == sha256(BODY).hexdigest()
    assert event(GITHUB, x_github_delivery="changed") == event(GITHUB)
    assert event(STRIPE, b'{"id":1}').id == sha256(f"{NOW}.".encode() + b'{"id":1}').hexdigest()
    assert event(STRIPE, b"[]").id != event(STRIPE, b"[1]").id
    assert event(STRIPE).remembered_seconds == WEEK_SECONDS
    assert event(GITHUB).remembered_seconds == YEAR_SECONDS
    assert len(event(STANDARD).key) == len(event(GITHUB).key) == 64


def test_senders_that_look_whether_somebody_is_there_begin_nothing() -> None:
    asked = json.dumps({"type": "url_verification", "challenge": "c"}).encode()
    event = proved(SLACK, slack(SECRETS["slack"], asked, NOW), asked)
    assert event.is_test
    assert event.answer == {"challenge": "c"}
    ping = proved(GITHUB, github(SECRETS["github"], BODY, NOW) | {"x-github-event": "ping"})
    assert ping.is_test
    assert ping.answer is None
    assert not proved(SLACK, slack(SECRETS["slack"], BODY, NOW)).is_test


def test_who_knows_the_address_is_believed_and_may_name_its_events() -> None:
    shown = SECRETS["url"].reveal()
    named = proved(URL, {"idempotency-key": "k"}, shown=shown)
    assert (named.id, named.remembered_seconds) == ("k", WEEK_SECONDS)
    assert proved(URL, {"webhook-id": "w"}, shown=shown).id == "w"
    plain = proved(URL, {"webhook-id": "w" * 257}, shown=shown)
    assert (plain.id, plain.remembered_seconds) == (sha256(BODY).hexdigest(), TOLERANCE_SECONDS)
    for wrong in (OTHER["url"].reveal(), shown[:-1], ""):
        with pytest.raises(HookRefused):
            proved(URL, {}, shown=wrong)
    with pytest.raises(HookRefused):
        proved(URL, {})


def test_json_is_read_when_the_signature_holds_and_not_before() -> None:
    bad = b'{"a":1,"a":2}'
    with pytest.raises(InvalidJson):
        proved(GITHUB, github(SECRETS["github"], bad, NOW), bad)
    with pytest.raises(HookRefused):
        proved(GITHUB, github(OTHER["github"], bad, NOW), bad)


@pytest.mark.parametrize("name", SCHEMES)
def test_a_secret_is_one_of_its_scheme_and_is_shown_nowhere(name: str) -> None:
    scheme = SCHEMES[name]
    made = new_secret(scheme, "drawn")
    assert check_secret(scheme, made.reveal()) == made
    assert str(made) == "***"
    for wrong in ("", "short", "white space of some length, which none has"):
        with pytest.raises(InvalidRequest) as refusal:
            check_secret(scheme, wrong)
        assert refusal.value.facts["field"] == "secret"


@given(st.binary(max_size=300), st.text(max_size=300))
def test_no_noise_is_ever_believed(body: bytes, text: str) -> None:
    fields: dict[str, Any] = {
        name: text.encode().hex()
        for signed in SIGN.values()
        for name in signed(SECRETS["stripe"], b"{}", NOW)
        if signed is not standard
    }
    for scheme in SCHEMES.values():
        with pytest.raises(HookRefused):
            proved(scheme, fields, body)
