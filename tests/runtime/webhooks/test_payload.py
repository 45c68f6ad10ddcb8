"""What receivers of our deliveries can verify: with the standard's package, the SDK's, and ours."""

import base64
import time
from datetime import UTC, datetime
from typing import Any

import pytest
import samvad.signing
from standardwebhooks import Webhook, WebhookVerificationError

import carnet
from carnet.errors import (
    DigestMismatch,
    InvalidJson,
    KeyInvalid,
    SignatureInvalid,
    SignatureMissing,
    TimestampInvalid,
    TimestampOutOfWindow,
)
from carnet.runtime.system import SystemClock
from carnet.runtime.webhooks.payload import read_secret, verify_webhook, write_secret
from carnet.testing.clock import FakeClock
from carnet.wire.crypto import ed25519, signatures
from carnet.wire.grammar.headers import Headers
from tests.runtime.peers.test_signing import PUBLIC, SEED
from tests.runtime.webhooks.deliveries import BODY, SECRET, delivery, webhooks

KEY = base64.b64encode(PUBLIC).decode()
OTHER_KEY = base64.b64encode(ed25519.public_of(bytes(32))).decode()
TEXT = SECRET.reveal()
OTHER = write_secret(bytes(32)).reveal()
ENVELOPE = {"traceId": "run_1", "spanId": "s", "status": "ok", "result": {"text": "naïve"}}
PATH = "/in"
EITHER: tuple[dict[str, Any], ...] = ({"secret": TEXT}, {"key": KEY})


def sent(clock: Any = None, **fields: Any) -> dict[str, str]:
    """The headers of an attempt that was made now."""
    return dict(webhooks(clock or SystemClock()).request(delivery(**fields)).headers)


def at(seconds: float) -> FakeClock:
    """A clock that differs from the machine's."""
    return FakeClock(wall_us=int((time.time() + seconds) * 1_000_000))  # noqa: TID251


# ------------------------------------------------------------------------- what is sent


def test_an_attempt_says_what_it_is_about() -> None:
    request = webhooks(FakeClock()).request(delivery())
    assert (request.method, request.url, request.body) == ("POST", "https://hooks.example/in", BODY)
    assert request.headers["carnet-task"] == "task-1"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"] == f"carnet/{carnet.__version__}"
    assert request.headers["webhook-id"] == "msg_1"
    assert request.headers["webhook-timestamp"] == "1800000000"
    assert request.kind == "learned"
    bounds = request.bounds
    assert (bounds.total_seconds, bounds.connect_seconds, bounds.max_bytes) == (10, 3, 64 * 1024)


def test_what_the_operator_wrote_down_is_sent_as_named_and_a_notice_has_no_task() -> None:
    request = webhooks(FakeClock()).request(delivery(learned=False, kind="notice", task=None))
    assert request.kind == "named"
    assert "carnet-task" not in request.headers


def test_no_header_holds_the_secret() -> None:
    assert read_secret(TEXT).hex() not in str(sent())
    assert TEXT.removeprefix("whsec_") not in str(sent())


# ------------------------------------------------------------------------- the standard's package


def test_the_package_of_the_standard_verifies_it() -> None:
    assert Webhook(TEXT).verify(BODY, sent()) == ENVELOPE


@pytest.mark.parametrize(
    ("secret", "body", "seconds"),
    [(OTHER, BODY, 0), (TEXT, BODY + b" ", 0), (TEXT, BODY, -301), (TEXT, BODY, 301)],
    ids=["wrong secret", "tampered", "replayed later", "ahead"],
)
def test_the_package_of_the_standard_refuses_what_is_not_ours(
    secret: str, body: bytes, seconds: int
) -> None:
    with pytest.raises(WebhookVerificationError):
        Webhook(secret).verify(body, sent(at(seconds)))


def test_the_package_of_the_standard_refuses_another_id() -> None:
    with pytest.raises(WebhookVerificationError):
        Webhook(TEXT).verify(BODY, {**sent(), "webhook-id": "msg_2"})


def test_what_the_package_of_the_standard_signs_is_verified_by_ours() -> None:
    signed = Webhook(TEXT).sign("msg_9", datetime.fromtimestamp(1_800_000_000, UTC), BODY.decode())
    headers = {"webhook-id": "msg_9", "webhook-timestamp": "1800000000"}
    headers["Webhook-Signature"] = signed
    clock = FakeClock(wall_us=1_800_000_000_000_000)
    assert verify_webhook(headers, BODY, secret=TEXT, clock=clock) == ENVELOPE


# ------------------------------------------------------------------------- the SDK of SAMVAD


def test_the_sdk_verifies_the_signature_and_the_digest() -> None:
    headers = sent(url="https://hooks.example/deep/in?x=1")
    assert samvad.signing.content_digest(BODY) == headers["content-digest"]
    assert samvad.signing.verify_request("POST", "/deep/in", headers, KEY)
    assert not samvad.signing.verify_request("POST", "/in", headers, KEY)
    assert not samvad.signing.verify_request("POST", "/deep/in", headers, OTHER_KEY)
    changed = {**headers, "content-digest": samvad.signing.content_digest(BODY + b" ")}
    assert not samvad.signing.verify_request("POST", "/deep/in", changed, KEY)


def test_a_url_without_a_path_is_signed_for_the_root() -> None:
    headers = sent(url="https://hooks.example")
    assert samvad.signing.verify_request("POST", "/", headers, KEY)
    assert carnet.verify_webhook(headers, BODY, key=KEY, path="/") == ENVELOPE


# ------------------------------------------------------------------------- ours


def test_our_verifier_takes_the_secret_the_key_or_both() -> None:
    headers = sent()
    for given in (*EITHER, {"secret": TEXT, "key": KEY}):
        assert carnet.verify_webhook(headers, BODY, **given) == ENVELOPE
    assert carnet.verify_webhook(headers, BODY, key=f"whpk_{KEY}", path=PATH) == ENVELOPE


def test_our_verifier_needs_one_of_them() -> None:
    with pytest.raises(ValueError, match="the secret, the key, or both"):
        verify_webhook(sent(), BODY)


def test_our_verifier_takes_a_path_with_the_key_alone() -> None:
    with pytest.raises(ValueError, match="needs the key"):
        verify_webhook(sent(), BODY, secret=TEXT, path=PATH)


@pytest.mark.parametrize(
    "given",
    [
        {"secret": OTHER},
        {"key": OTHER_KEY},
        {"secret": TEXT, "key": OTHER_KEY},
        {"secret": OTHER, "key": KEY},
        {"key": KEY, "path": "/elsewhere"},
    ],
)
def test_our_verifier_refuses_what_was_signed_by_others_or_for_elsewhere(given: Any) -> None:
    with pytest.raises(SignatureInvalid):
        verify_webhook(sent(), BODY, **given)


@pytest.mark.parametrize("given", EITHER)
def test_our_verifier_refuses_a_body_that_was_changed(given: Any) -> None:
    with pytest.raises(SignatureInvalid):
        verify_webhook(sent(), BODY.replace(b"ok", b"no"), **given)


@pytest.mark.parametrize("seconds", [-301.5, 301.5])
def test_our_verifier_refuses_what_is_five_minutes_old_or_ahead(seconds: float) -> None:
    headers = sent(at(seconds))
    for given in EITHER:
        with pytest.raises(TimestampOutOfWindow):
            verify_webhook(headers, BODY, **given)
    assert verify_webhook(headers, BODY, secret=TEXT, clock=at(seconds)) == ENVELOPE


@pytest.mark.parametrize("timestamp", ["-1", "1e9", " 1800000000", "١٢٣", "1" * 13, "now"])
def test_our_verifier_refuses_a_time_that_is_none(timestamp: str) -> None:
    with pytest.raises(TimestampInvalid):
        verify_webhook({**sent(), "webhook-timestamp": timestamp}, BODY, secret=TEXT)


@pytest.mark.parametrize("name", ["webhook-id", "webhook-timestamp", "webhook-signature"])
def test_our_verifier_refuses_what_lacks_a_header(name: str) -> None:
    headers = sent()
    del headers[name]
    with pytest.raises(SignatureMissing):
        verify_webhook(headers, BODY, secret=TEXT)


@pytest.mark.parametrize(
    "signature", ["v1,", "v1", "v1a,AAAA", "v2,AAAA", "v1,not base64", "v1,AAAA v1a,é", ","]
)
def test_our_verifier_refuses_signatures_that_are_none(signature: str) -> None:
    headers = {**sent(), "webhook-signature": signature}
    for given in EITHER:
        with pytest.raises(SignatureInvalid):
            verify_webhook(headers, BODY, **given)


def test_while_a_secret_is_replaced_one_of_two_signatures_suffices() -> None:
    headers = sent()
    headers["webhook-signature"] = (
        f"v1,{base64.b64encode(bytes(32)).decode()} " + headers["webhook-signature"]
    )
    assert verify_webhook(headers, BODY, secret=TEXT) == ENVELOPE


def test_the_samvad_signature_must_hold_for_this_body_and_be_fresh() -> None:
    headers = sent()
    wrong = {**headers, "content-digest": samvad.signing.content_digest(b"{}")}
    with pytest.raises(DigestMismatch):
        verify_webhook(wrong, BODY, key=KEY, path=PATH)
    old = sent(at(-400))
    stale = {**headers, "signature": old["signature"], "signature-input": old["signature-input"]}
    with pytest.raises(TimestampOutOfWindow):
        verify_webhook(stale, BODY, key=KEY, path=PATH)
    del headers["signature"]
    with pytest.raises(SignatureMissing):
        verify_webhook(headers, BODY, key=KEY, path=PATH)


def test_a_samvad_signature_that_covers_less_is_refused() -> None:
    headers = sent()
    digest = {"content-digest": headers["content-digest"]}
    fields = signatures.write(
        signatures.Request(
            method="POST",
            authority="",
            path=PATH,
            headers=Headers([(b"content-digest", digest["content-digest"].encode())]),
        ),
        components=("@method", "@path"),
        keyid="k-1",
        created=int(headers["webhook-timestamp"]),
        sign=lambda base: ed25519.sign(SEED, base),
        newline=True,
    )
    with pytest.raises(SignatureInvalid):
        verify_webhook({**headers, **fields}, BODY, key=KEY, path=PATH)


def test_what_is_authentic_and_no_envelope_is_told_as_such() -> None:
    request = webhooks(SystemClock()).request(delivery(body=b"[1]"))
    with pytest.raises(InvalidJson):
        verify_webhook(request.headers, b"[1]", secret=TEXT)


@pytest.mark.parametrize("text", ["", "whsec_", "whsec_!!!", "whsec_AAA"])
def test_a_secret_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(KeyInvalid):
        verify_webhook(sent(), BODY, secret=text)


def test_a_secret_survives_being_written() -> None:
    assert read_secret(write_secret(b"some bytes").reveal()) == b"some bytes"
