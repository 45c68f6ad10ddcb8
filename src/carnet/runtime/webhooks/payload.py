"""The request of a webhook, and how its receiver knows that it came from us.

Every attempt is signed anew, in two forms that stand side by side:

    SAMVAD              method, path and digest of the body, under our key (label sig1)
    Standard Webhooks   "id.timestamp.body", with a shared secret (v1) and under our key (v1a)

Law 1. The id of a delivery is the same at every attempt, and its time is that of the attempt.
Law 2. A secret never stands in a header, in a log line or in an error.
Law 3. `verify_webhook` takes what `Webhooks.request` makes, and nothing that was changed or is old.
"""

import hmac
import re
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from carnet.core.people.identity import Secret
from carnet.core.people.proof import SECOND_US
from carnet.errors import (
    KeyInvalid,
    SignatureInvalid,
    SignatureMissing,
    TimestampInvalid,
    TimestampOutOfWindow,
)
from carnet.ports.calls.tasks import Callback
from carnet.ports.trust.keys import OwnKeys
from carnet.ports.world.clock import Clock
from carnet.ports.world.http_client import Bounds, Outbound
from carnet.ports.world.outbox import Delivery
from carnet.runtime.peers.signing import Signing
from carnet.runtime.system import SystemClock
from carnet.version import __version__
from carnet.wire.crypto import digests, ed25519, signatures
from carnet.wire.grammar import json
from carnet.wire.grammar.headers import Headers
from carnet.wire.grammar.structured import StructuredInvalid, read_base64
from carnet.wire.stamps.stamp import MINIMUM

ID: Final = "webhook-id"
TIMESTAMP: Final = "webhook-timestamp"
SIGNATURE: Final = "webhook-signature"
TASK: Final = "carnet-task"
TOKEN: Final = "x-a2a-notification-token"  # noqa: S105  a header
SECRET_PREFIX: Final = "whsec_"  # noqa: S105  what secrets of the standard begin with
KEY_PREFIX: Final = "whpk_"
TOLERANCE_SECONDS: Final = 300
MOST_ANSWER: Final = 64 * 1024  # bytes of an answer, which nobody reads
CONNECT_SECONDS: Final = 3.0

_MOST_SIGNATURES: Final = 16
_MOST_LEVELS: Final = 70  # of an envelope: a result may have 64
_SECONDS: Final = re.compile(r"[0-9]{1,12}", re.ASCII)


def write_secret(raw: bytes) -> Secret:
    """A shared secret as receivers are given it."""
    return Secret(SECRET_PREFIX + b64encode(raw).decode())


def read_secret(text: str) -> bytes:
    """The bytes of a shared secret."""
    try:
        raw = read_base64(text.removeprefix(SECRET_PREFIX))
    except StructuredInvalid:
        raw = b""
    if not raw:
        raise KeyInvalid("it is not a secret of the form whsec_BASE64")
    return raw


# ------------------------------------------------------------------------------------- sending


class Webhooks:
    """Makes the request of one attempt."""

    def __init__(
        self,
        *,
        signing: Signing,
        keys: OwnKeys,
        clock: Clock,
        secret_of: Callable[[str], bytes],
        timeout: float,
    ) -> None:
        """`secret_of` gives the secret that is shared with an identity; `timeout` is in seconds."""
        self._signing = signing
        self._keys = keys
        self._clock = clock
        self._secret_of = secret_of
        self._bounds = Bounds(
            connect_seconds=min(CONNECT_SECONDS, timeout),
            first_byte_seconds=timeout,
            idle_seconds=timeout,
            total_seconds=timeout,
            max_bytes=MOST_ANSWER,
        )

    def request(self, delivery: Delivery, named: Callback | None = None) -> Outbound:
        """The request of one attempt, signed for this moment; `named` is where it goes."""
        request = Outbound(
            url=delivery.url,
            body=delivery.body,
            headers={
                "content-type": "application/json",
                "user-agent": f"carnet/{__version__}",
                **({} if delivery.task is None else {TASK: delivery.task}),
                **self._standard(delivery),
                **_shown(named),
            },
            kind="learned" if delivery.learned else "named",
            is_body_read=False,
            bounds=self._bounds,
        )
        return self._signing.sign_samvad(request, path=urlsplit(delivery.url).path or "/")

    def _standard(self, delivery: Delivery) -> dict[str, str]:
        timestamp = str(self._clock.wall_us() // SECOND_US)
        content = _content(delivery.id, timestamp, delivery.body)
        own = f"v1a,{b64encode(self._keys.signer().sign(content)).decode()}"
        secret = self._secret_of(delivery.secret_of)
        shared = f"v1,{b64encode(_keyed(secret, content)).decode()}"
        return {ID: delivery.id, TIMESTAMP: timestamp, SIGNATURE: f"{shared} {own}"}


def _shown(named: Callback | None) -> dict[str, str]:
    """What a receiver wants to be shown, as whoever named it says."""
    if named is None:
        return {}
    shown = {} if named.token is None else {TOKEN: named.token}
    if named.authorization is not None:
        shown["authorization"] = named.authorization.reveal()
    return shown


def _content(delivery: str, timestamp: str, body: bytes) -> bytes:
    return f"{delivery}.{timestamp}.".encode() + body


def _keyed(secret: bytes, content: bytes) -> bytes:
    return hmac.digest(secret, content, "sha256")


# ----------------------------------------------------------------------------------- receiving


def verify_webhook(
    headers: Mapping[str, str],
    body: bytes,
    *,
    secret: str | None = None,
    key: str | None = None,
    path: str | None = None,
    clock: Clock | None = None,
) -> dict[str, Any]:
    """The envelope that a webhook of a Carnet tells, if it is authentic and not five minutes old.

    The same webhook may come more than once: its `webhook-id` is the same each time.

    Args:
        headers: Of the request that was received.
        body: As it was received, byte for byte.
        secret: What is shared with the gateway, `whsec_...`.
        key: The public key of the gateway, as its card shows it.
        path: Where it was received. With it the SAMVAD signature must hold for the key as well.
        clock: Tells the time, if not the machine.

    Raises:
        CarnetError: SignatureMissing, SignatureInvalid, DigestInvalid, DigestMismatch,
            TimestampInvalid or TimestampOutOfWindow; KeyInvalid for a secret or key that is none.
    """
    if secret is None and key is None:
        raise ValueError("give the secret, the key, or both")
    if path is not None and key is None:
        raise ValueError("a path needs the key: it is what the SAMVAD signature covers")
    now = (clock or SystemClock()).wall_us() // SECOND_US
    fields = {name.lower(): value for name, value in headers.items()}
    content = _content_of(fields, body, now)
    if secret is not None:
        expected = _keyed(read_secret(secret), content)
        _need(any(hmac.compare_digest(expected, one) for one in _given(fields, "v1")))
    if key is not None:
        public = ed25519.read_public_key(key.removeprefix(KEY_PREFIX))
        _need(any(ed25519.holds(public, content, one) for one in _given(fields, "v1a")))
        if path is not None:
            _check_samvad(fields, body, public, path, now)
    return json.read_object(body, max_levels=_MOST_LEVELS)


def _content_of(fields: Mapping[str, str], body: bytes, now: int) -> bytes:
    delivery, timestamp = fields.get(ID), fields.get(TIMESTAMP)
    if not delivery or not timestamp or SIGNATURE not in fields:
        raise SignatureMissing
    if _SECONDS.fullmatch(timestamp) is None:
        raise TimestampInvalid
    _check_time(int(timestamp), now)
    return _content(delivery, timestamp, body)


def _check_time(at: int, now: int) -> None:
    if abs(now - at) > TOLERANCE_SECONDS:
        raise TimestampOutOfWindow


def _given(fields: Mapping[str, str], version: str) -> Iterator[bytes]:
    """The signatures of a version; while a secret is being replaced there may be two."""
    for word in fields[SIGNATURE].split(" ")[:_MOST_SIGNATURES]:
        kind, _, text = word.partition(",")
        if kind != version:
            continue
        try:
            yield read_base64(text)
        except StructuredInvalid:
            continue


def _check_samvad(
    fields: Mapping[str, str], body: bytes, public: bytes, path: str, now: int
) -> None:
    digests.check(fields.get("content-digest"), body)
    received = Headers([(name.encode(), value.encode()) for name, value in fields.items()])
    presented = signatures.read(received)
    if presented.created is None or not set(MINIMUM) <= set(presented.components):
        raise SignatureInvalid("it does not cover method, path and body, or has no time")
    _check_time(presented.created, now)
    request = signatures.Request(method="POST", authority="", path=path, headers=received)
    base = signatures.base(presented, request, newline=True)
    _need(ed25519.holds(public, base, presented.signature))


def _need(holds: bool) -> None:  # noqa: FBT001  the one thing it asks
    if not holds:
        raise SignatureInvalid
