"""Signed requests of Envoys: `.../extensions/envoys-rfc9421-signing/v1` of the A2A samples.

RFC 9421 with Ed25519 over `@method`, `@path` and `content-digest`, and `@authority` where the
sender knows it; `keyid` is the https address of the key, `created` and `nonce` are there.

Law 1. The sender is the host of its `keyid`. Its key is looked up as that of every signed sender:
       one that the operator pinned or that its card shows. The address itself is not fetched:
       anybody can write one (A18).
Law 2. Who does not cover `@authority` has signed for every host, and is refused here.
Law 3. What tells the chain, the payer or an identity is covered, or the request is refused (R9).
Law 4. `read_key(write_key(address, key)) == (address, key)`; a DID document is read as well.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from carnet.core.people.address import AGENT, check_identity
from carnet.core.people.proof import SECOND_US, Asking, Proof
from carnet.errors import (
    AddressInvalid,
    InsufficientCoverage,
    KeyInvalid,
    NonceInvalid,
    SignatureInvalid,
    TimestampInvalid,
)
from carnet.wire.crypto import digests, ed25519, signatures
from carnet.wire.crypto.signatures import Request
from carnet.wire.dialects.a2a.extensions.row import (
    ExtensionRow,
    PayloadBroken,
    items,
    members,
    word,
)
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps.stamp import MINIMUM, QUERY, Stamps, check_coverage, protected_names

ENVOYS_URI: Final = "https://github.com/a2aproject/a2a-samples/extensions/envoys-rfc9421-signing/v1"
AUTHORITY: Final = "@authority"
KEY_PATH: Final = "/.well-known/agent-key"
MOST_KEYS: Final = 16

_FIELD: Final = b"\nsignature-input"
_KEYID: Final = re.compile(r"https://([a-z0-9.-]{1,253})(?:/[!-~]{0,256})?", re.ASCII)
_NONCE: Final = re.compile(r"[\x21-\x7e]{8,64}", re.ASCII)
_HEX: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)


def is_presented(headers: Headers) -> bool:
    """Whether a request is signed in this form: its key is named by an address."""
    if _FIELD not in headers.joined():  # nearly every request
        return False
    return any('keyid="https://' in value for value in headers.get_all("signature-input"))


def read_proof(
    request: Request, body: bytes | None, stamps: Stamps, *, recipient: str | None
) -> Proof:
    """The proof that a request brings along, strictly.

    Args:
        request: What its signature may cover.
        body: The whole body as received; None while there is only a head.
        stamps: Whose fields must not stand outside the signature.
        recipient: The identity of the agent that it was sent to; None at a host that is not ours.
    """
    presented = signatures.read(request.headers)
    has_query = request.query is not None
    least = (*MINIMUM, AUTHORITY)
    if presented.tag is not None:
        raise SignatureInvalid("the signature is meant for something else")
    check_coverage(presented.components, least, request.headers, has_query=has_query, stamps=stamps)
    if presented.nonce is None or _NONCE.fullmatch(presented.nonce) is None:
        raise NonceInvalid
    if presented.created is None or presented.created < 0:
        raise TimestampInvalid
    if body is not None:
        digests.check(", ".join(request.headers.get_all("content-digest")), body)
    keyid = presented.keyid or ""
    return Proof(
        profile="samvad",
        sender=sender_of(keyid),
        keyid=keyid,
        signature=presented.signature,
        bases=(signatures.base(presented, request),),
        nonce=presented.nonce,
        at=presented.created * SECOND_US,
        expires=presented.expires,
        recipient=recipient,
    )


def read_asking(request: Request, body: bytes, stamps: Stamps) -> Asking:
    """The same of a question about a task, which changes nothing: its nonce is not kept."""
    proof = read_proof(request, body, stamps, recipient=None)
    return Asking(
        profile=proof.profile,
        keyid=proof.keyid,
        signature=proof.signature,
        bases=proof.bases,
        at=proof.at,
        expires=proof.expires,
    )


def sender_of(keyid: str) -> str:
    """The identity whose key an address names."""
    match = _KEYID.fullmatch(keyid)
    try:
        return check_identity(AGENT + match[1]) if match else _refuse()
    except AddressInvalid:
        return _refuse()


def _refuse() -> str:
    raise SignatureInvalid("the keyid is not the https address of a key")


def write(
    request: Request,
    *,
    keyid: str,
    created: int,
    nonce: str,
    sign: Callable[[bytes], bytes],
    stamps: Stamps,
) -> dict[str, str]:
    """Sign a request: the two header fields to add to it."""
    if request.headers.get("content-digest") is None:
        raise InsufficientCoverage
    query = () if request.query is None else (QUERY,)
    names = (*MINIMUM, AUTHORITY, *query, *protected_names(request.headers, stamps))
    return signatures.write(
        request, components=names, keyid=keyid, created=created, nonce=nonce, sign=sign
    )


def address_of(domain: str, kid: str) -> str:
    """Where a key of ours is shown."""
    return f"https://{domain}{KEY_PATH}/{kid}"


def write_key(address: str, public: bytes) -> dict[str, str]:
    """What the address of a key answers."""
    return {"address": address, "public_key": ed25519.write_public_key(public)}


def read_key(page: object, keyid: str = "") -> bytes:
    """The key that a page shows: in the form of Envoys, or of a DID document."""
    try:
        given = members(page)
        if "verificationMethod" in given:
            return _read_did(given, keyid)
        text = word(given, "public_key", 64) or ""
    except PayloadBroken as broken:
        raise KeyInvalid(f"its page {broken}") from None
    return _read_text(text)


def _read_did(given: dict[str, Any], keyid: str) -> bytes:
    methods = [members(each) for each in items(given["verificationMethod"], MOST_KEYS)]
    named = [each for each in methods if each.get("id") == keyid] or methods
    if len(named) != 1:
        raise KeyInvalid("its page does not say which of several keys is meant")
    return _read_text(word(named[0], "publicKeyHex", 64) or "")


def _read_text(text: str) -> bytes:
    if _HEX.fullmatch(text):
        return ed25519.check_public_key(bytes.fromhex(text))
    return ed25519.read_public_key(text)


ENVOYS: Final = ExtensionRow(
    name="envoys",
    uris=(ENVOYS_URI,),
    keys=(),
    is_declared=True,
    description="Requests that are signed with a key whose address is the keyid (RFC 9421).",
    reads="the signature of a request, whose keyid is the address of a key",
    writes="the signature of a request, with the host, the query and every chain header in it",
    believes="who signed, once the signature holds under a key that is known to be that host's",
)
