"""How a hook knows who sends to it: five ways to sign, each as its maker describes it.

    standard    webhook-id, webhook-timestamp, webhook-signature     id.timestamp.body
    github      x-hub-signature-256                                  body
    stripe      stripe-signature: t=..., v1=...                      timestamp.body
    slack       x-slack-request-timestamp, x-slack-signature         v0:timestamp:body
    url         a secret in the address; nothing is signed

Law 1. Nothing that a request says is believed, and nothing of it is read as JSON, before its
       signature holds. Who cannot sign is told one thing, whatever is wrong.
Law 2. Secrets and signatures are compared in constant time, all with all.
Law 3. What tells two events apart is covered by the signature: its id where that is signed, else a
       digest of what is. A name in a header that anybody could change is not looked at.
Law 4. Where the time is signed, a request that is older than five minutes, or as far ahead, is
       refused, however good its signature is.
"""

import hmac
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from msgspec import Struct

from carnet.core.people.identity import Secret
from carnet.errors import HookRefused, InvalidRequest, TimestampOutOfWindow
from carnet.wire.grammar import json
from carnet.wire.grammar.headers import Headers
from carnet.wire.grammar.structured import StructuredInvalid, read_base64

TOLERANCE_SECONDS: Final = 300
DAY_SECONDS: Final = 86_400
# How long an event is remembered. Senders repeat theirs for days, with a new time and the same id;
# GitHub signs no time, so that what was once sent could be sent again for as long as it liked.
WEEK_SECONDS: Final = 7 * DAY_SECONDS
YEAR_SECONDS: Final = 365 * DAY_SECONDS
PREFIX: Final = "whsec_"

_MOST_SIGNATURES: Final = 16
_MOST_ID: Final = 256
_SECONDS: Final = re.compile(r"[0-9]{1,12}", re.ASCII)
_HEX: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
_SECRET: Final = re.compile(r"[\x21-\x7e]{16,512}", re.ASCII)
_IN_URL: Final = re.compile(r"[A-Za-z0-9_-]{32,128}", re.ASCII)


class HookEvent(Struct, frozen=True, kw_only=True):
    """What a hook was told, by whom it trusts."""

    id: str  # its sender's own, or a digest
    body: Any
    remembered_seconds: int  # for how long a repeat of it is known as one
    is_test: bool = False  # the sender only looks whether there is somebody
    answer: Mapping[str, str] | None = None  # what it wants to be answered then

    @property
    def key(self) -> str:
        """What it is remembered by, of one length."""
        return sha256(self.id.encode()).hexdigest()


class _Signed(Struct, frozen=True):
    """What a request says it is signed with."""

    content: bytes
    given: tuple[bytes, ...]  # signatures
    at: int | None = None  # when, in seconds
    id: str | None = None  # if that is signed too


Read = Callable[[Headers, bytes], _Signed]
Key = Callable[[str], bytes]


class Scheme(Struct, frozen=True, kw_only=True):
    """One way to sign."""

    name: str
    title: str
    read: Read | None  # None: nothing is signed
    key: Key  # what a secret is as a key; raises ValueError if it is none
    id_member: str | None = None  # of the body, where the event's id is
    remembered_seconds: int = WEEK_SECONDS


# ------------------------------------------------------------------------------------ proving


def prove(
    scheme: Scheme,
    headers: Headers,
    body: bytes,
    *,
    secrets: Sequence[Secret],
    now: int,
    shown: str | None = None,
) -> HookEvent:
    """The event that a request tells, if it holds for one of the secrets; `now` is in seconds.

    `shown` is the secret that stands in its address.
    """
    if (shown is None) != (scheme.read is not None):
        raise HookRefused
    if scheme.read is None:
        given = (shown or "").encode()
        _need([hmac.compare_digest(given, secret.reveal().encode()) for secret in secrets])
        signed = _Signed(body, ())
    else:
        signed = scheme.read(headers, body)
        keys = [scheme.key(secret.reveal()) for secret in secrets]
        digests = [hmac.digest(key, signed.content, "sha256") for key in keys]
        _need([hmac.compare_digest(one, each) for one in digests for each in signed.given])
        if signed.at is not None and abs(now - signed.at) > TOLERANCE_SECONDS:
            raise TimestampOutOfWindow
    return _event(scheme, signed, headers, json.read(body))


def _need(verdicts: Sequence[bool]) -> None:
    if not any(verdicts):
        raise HookRefused


def _event(scheme: Scheme, signed: _Signed, headers: Headers, body: Any) -> HookEvent:
    """The event of a request that holds."""
    found = signed.id
    if found is None and scheme.id_member is not None and isinstance(body, dict):
        member = body.get(scheme.id_member)
        found = member if isinstance(member, str) and 0 < len(member) <= _MOST_ID else None
    remembered = scheme.remembered_seconds
    if found is None and scheme.read is None:
        found = _named(headers)
        if found is None:  # the same words may come again tomorrow, and mean something new
            remembered = TOLERANCE_SECONDS
    challenge = body.get("challenge") if isinstance(body, dict) else None
    is_asked = scheme is SLACK and isinstance(challenge, str) and len(challenge) <= _MOST_ID
    is_ping = scheme is GITHUB and headers.get("x-github-event") == "ping"
    return HookEvent(
        id=found or sha256(signed.content).hexdigest(),
        body=body,
        remembered_seconds=remembered,
        is_test=is_asked or is_ping,
        answer={"challenge": str(challenge)} if is_asked else None,
    )


def _named(headers: Headers) -> str | None:
    """How the sender of a request that is not signed names it, if it does."""
    for name in ("webhook-id", "idempotency-key"):
        given = headers.get(name)
        if given is not None and len(given) <= _MOST_ID:
            return given
    return None


# ------------------------------------------------------------------------------------ reading


def _standard(headers: Headers, body: bytes) -> _Signed:
    name, at = headers.get("webhook-id"), _time(headers.get("webhook-timestamp"))
    if name is None or len(name) > _MOST_ID:
        raise HookRefused
    words = (headers.get("webhook-signature") or "").split(" ")[:_MOST_SIGNATURES]
    given = tuple(_decoded(word[3:]) for word in words if word.startswith("v1,"))
    return _Signed(f"{name}.{at}.".encode() + body, given, int(at), name)


def _github(headers: Headers, body: bytes) -> _Signed:
    return _Signed(body, _hex([headers.get("x-hub-signature-256") or ""], "sha256="))


def _stripe(headers: Headers, body: bytes) -> _Signed:
    words = [word.strip(" ") for word in (headers.get("stripe-signature") or "").split(",")]
    times = [word[2:] for word in words if word.startswith("t=")]
    at = _time(times[0] if len(times) == 1 else None)
    return _Signed(f"{at}.".encode() + body, _hex(words[:_MOST_SIGNATURES], "v1="), int(at))


def _slack(headers: Headers, body: bytes) -> _Signed:
    at = _time(headers.get("x-slack-request-timestamp"))
    given = _hex([headers.get("x-slack-signature") or ""], "v0=")
    return _Signed(f"v0:{at}:".encode() + body, given, int(at))


def _time(text: str | None) -> str:
    if text is None or _SECONDS.fullmatch(text) is None:
        raise HookRefused
    return text


def _decoded(text: str) -> bytes:
    try:
        return read_base64(text)
    except StructuredInvalid:
        return b""


def _hex(words: Sequence[str], prefix: str) -> tuple[bytes, ...]:
    def found() -> Iterator[bytes]:
        for word in words:
            if word.startswith(prefix) and _HEX.fullmatch(word[len(prefix) :]):
                yield bytes.fromhex(word[len(prefix) :])

    return tuple(found())


# ------------------------------------------------------------------------------------ secrets


def _standard_key(text: str) -> bytes:
    raw = _decoded(text.removeprefix(PREFIX))
    if not 16 <= len(raw) <= 128:  # noqa: PLR2004  bytes; the standard asks for 24 to 64
        raise ValueError("it is not whsec_BASE64 of 16 to 128 bytes")
    return raw


def _text_key(text: str) -> bytes:
    if _SECRET.fullmatch(text) is None:
        raise ValueError("it is not 16 to 512 visible ASCII characters")
    return text.encode()


def _url_key(text: str) -> bytes:
    if _IN_URL.fullmatch(text) is None:
        raise ValueError("it is not 32 to 128 of A-Z, a-z, 0-9, '_' and '-'")
    return text.encode()


STANDARD: Final = Scheme(
    name="standard", title="Standard Webhooks", read=_standard, key=_standard_key
)
GITHUB: Final = Scheme(
    name="github",
    title="GitHub",
    read=_github,
    key=_text_key,
    remembered_seconds=YEAR_SECONDS,
)
STRIPE: Final = Scheme(name="stripe", title="Stripe", read=_stripe, key=_text_key, id_member="id")
SLACK: Final = Scheme(name="slack", title="Slack", read=_slack, key=_text_key, id_member="event_id")
URL: Final = Scheme(name="url", title="a secret URL", read=None, key=_url_key)

SCHEMES: Final[dict[str, Scheme]] = {
    scheme.name: scheme for scheme in (STANDARD, GITHUB, STRIPE, SLACK, URL)
}


def check_secret(scheme: Scheme, text: str) -> Secret:
    """A secret that was given by hand, if it can be one."""
    try:
        scheme.key(text)
    except ValueError as error:
        raise InvalidRequest("secret", f"cannot be one of {scheme.title}: {error}") from None
    return Secret(text)


def new_secret(scheme: Scheme, drawn: str) -> Secret:
    """A secret of what was drawn at random, in the form that the scheme's senders take."""
    raw = sha256(drawn.encode()).digest()
    return Secret(PREFIX + b64encode(raw).decode() if scheme is STANDARD else raw.hex())
