"""A gateway with a key, and the requests it signs."""

from typing import Any

from msgspec.structs import replace

from carnet.core.people.identity import Account
from carnet.core.people.proof import Document, Spending
from carnet.wire import travel
from carnet.wire.crypto import digests, ed25519, signatures
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps import STAMPS

SEED = bytes(range(32))
PUBLIC = ed25519.public_of(SEED)
KID = "k-1"
BODY = b'{"model":"critic","messages":[]}'
NOW = 1_800_000_000


def sign(message: bytes) -> bytes:
    return ed25519.sign(SEED, message)


DOCUMENT = Document(
    issuer="a.example",
    audience="b.example",
    issued=NOW,
    expires=NOW + 60,
    run="conv_1",
    turn="conv_1.t0.critic",
    parent_turn="conv_0.t0.front",
    depth=1,
    last_depth=3,
    path=("@researcher@a.example",),
    budget=Spending(money=1_500_000, currency="credits", calls=7, tokens=9),
    deadline_ms=NOW * 1000 + 30_000,
    payer=Account("a.example", "alice"),
    on_behalf_of=("token:alice",),
    digest=digests.write(BODY),
    keyid=KID,
)

FIELDS = {
    "host": "b.example",
    "content-type": "application/json",
    "content-digest": digests.write(BODY),
    "x-tangle-runid": "conv_1",
    "x-tangle-forwarded-depth": "1",
    "traceparent": "00-" + "1" * 32 + "-" + "2" * 16 + "-01",
}


def request(fields: dict[str, str], *more: tuple[str, str], **parts: Any) -> signatures.Request:
    lines = [(name.encode(), value.encode()) for name, value in (*fields.items(), *more)]
    whole: dict[str, Any] = {
        "method": "POST",
        "authority": "b.example",
        "path": "/v1/chat/completions",
        **parts,
    }
    return signatures.Request(headers=Headers(lines), **whole)


def signed(
    fields: dict[str, str] | None = None, *, document: Document | None = DOCUMENT, **how: Any
) -> dict[str, str]:
    """The fields of a request with its signature; `how` is said differently in it."""
    fields = dict(FIELDS if fields is None else fields)
    if document is not None:
        fields["carnet"] = travel.write(document, sign=sign)
    seen = request(fields, **how.pop("parts", {}))
    asked: dict[str, Any] = {
        "components": travel.cover(seen, STAMPS),
        "keyid": KID,
        "created": NOW,
        "nonce": "nonce-0001",
        "tag": "carnet",
        **how,
    }
    return fields | signatures.write(seen, sign=sign, **asked)


def but(**changed: Any) -> Document:
    return replace(DOCUMENT, **changed)
