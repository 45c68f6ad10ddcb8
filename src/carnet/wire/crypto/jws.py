"""JWS with EdDSA (RFC 7515, RFC 8037): what we sign, and what we look at before the curve.

A token is compact and holds what it says. A detached signature is two texts, and what it covers
stands elsewhere: cards are signed so.

The signature itself is judged by `ed25519.holds(key, token.signed, token.signature)`; times and
audiences are judged by whoever knows what the token is for.

Law 1. `read(write(payload, ...))` gives the payload back, and `signed` is what was signed.
Law 2. One algorithm, named EdDSA. The key comes from those we know: a header that brings a key,
       says where one lies or asks for anything else (`jwk`, `jku`, `x5c`, `crit`, `b64`, ...) is
       refused. A detached signature may say where its key lies (`jku`): it is told, not followed.
Law 3. A token has one spelling: three parts of unpadded base64url without bits left over, strict
       JSON objects inside, no member twice.
Law 4. Whatever the text, `read` returns a token or raises `JwsInvalid`; nothing is fetched.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from carnet.errors import InvalidJson
from carnet.wire.crypto.ed25519 import SIGNATURE_BYTES
from carnet.wire.grammar import json

ALGORITHM: Final = "EdDSA"
MAX_BYTES: Final = 4096

_PART: Final = r"([A-Za-z0-9_-]+)"
_COMPACT: Final = re.compile(rf"({_PART}\.{_PART})\.{_PART}")
# No slash, no quote, no space: it names a row or an entry and is no path and no query.
_KEYID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:#=+~@-]{0,127}")
_MEMBERS: Final = frozenset({"alg", "kid", "typ"})
_URL: Final = re.compile(r"https?://[!-~]{1,2000}")
_ONE_PART: Final = re.compile(_PART)


class JwsInvalid(ValueError):
    """The text is not a token that we take; the message says why, in words of ours."""


class Compact(Struct, frozen=True):
    """A token that was read and not verified."""

    header: dict[str, Any]
    payload: dict[str, Any]
    keyid: str  # empty if the token names no key, which only `typ=None` lets pass
    signed: bytes  # what the signature covers
    signature: bytes


def read(text: str, *, typ: str | None, max_bytes: int = MAX_BYTES) -> Compact:
    """Take a token apart, or say what is wrong with it.

    Args:
        text: The token as received.
        typ: What its header must say it is, character by character. None for the tokens of
            others, which may leave out `typ` and `kid` or say what they like.
        max_bytes: How long it may be.
    """
    if len(text) > max_bytes:
        raise JwsInvalid(f"is longer than {max_bytes} bytes")
    found = _COMPACT.fullmatch(text)
    if found is None:
        raise JwsInvalid("is not three parts of unpadded base64url")
    signed, head, body, tail = found.groups()
    header = _read_object(head, "header")
    _check_header(header, typ)
    signature = _decode(tail)
    if len(signature) != SIGNATURE_BYTES:
        raise JwsInvalid(f"has a signature that is not {SIGNATURE_BYTES} bytes long")
    payload = _read_object(body, "payload")
    return Compact(header, payload, header.get("kid", ""), signed.encode(), signature)


def peek(text: str, *, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """What a token says, for whoever must know whose it is before it is read; nothing is judged."""
    found = None if len(text) > max_bytes else _COMPACT.fullmatch(text)
    if found is None:
        raise JwsInvalid("is not three parts of unpadded base64url")
    return _read_object(found[3], "payload")


def write(payload: dict[str, Any], *, kid: str, typ: str, sign: Callable[[bytes], bytes]) -> str:
    """Make a token.

    Args:
        payload: What it says.
        kid: The name of the key that signs.
        typ: What it is, so that it cannot be taken for anything else.
        sign: Gives the 64 bytes of the signature.
    """
    header = {"alg": ALGORITHM, "kid": kid, "typ": typ}
    _check_header(header, typ)
    signed = f"{_encode(json.write(header))}.{_encode(json.write(payload))}"
    return f"{signed}.{_encode(sign(signed.encode()))}"


class DetachedSignature(Struct, frozen=True):
    """A signature that was read and not verified; what it covers is given to `covers`."""

    keyid: str
    jku: str | None  # where its key is said to lie
    protected: str
    signature: bytes

    def covers(self, payload: bytes) -> bytes:
        """The bytes that were signed, if this is what the signature is of."""
        return f"{self.protected}.{_encode(payload)}".encode()


class AlgorithmUnknown(JwsInvalid):
    """The signature may be good, and is made in a way that we do not verify."""


def read_detached(protected: str, signature: str) -> DetachedSignature:
    """Take a signature apart whose payload stands elsewhere, or say what is wrong with it."""
    if len(protected) > MAX_BYTES or len(signature) > MAX_BYTES:
        raise JwsInvalid(f"is longer than {MAX_BYTES} bytes")
    if not _ONE_PART.fullmatch(protected) or not _ONE_PART.fullmatch(signature):
        raise JwsInvalid("is not made of unpadded base64url")
    header = _read_object(protected, "header")
    if isinstance(header.get("alg"), str) and header["alg"] not in {ALGORITHM, "none"}:
        raise AlgorithmUnknown(f"is not signed with {ALGORITHM}")
    jku = header.pop("jku", None)
    if jku is not None and not (isinstance(jku, str) and _URL.fullmatch(jku)):
        raise JwsInvalid("says that its key lies at something that is no URL")
    _check_header(header, None)
    if "kid" not in header:
        raise JwsInvalid("names no key")
    raw = _decode(signature)
    if len(raw) != SIGNATURE_BYTES:
        raise JwsInvalid(f"has a signature that is not {SIGNATURE_BYTES} bytes long")
    return DetachedSignature(header["kid"], jku, protected, raw)


def write_detached(
    payload: bytes, *, kid: str, jku: str, sign: Callable[[bytes], bytes]
) -> tuple[str, str]:
    """The header and the signature of a payload that stands elsewhere."""
    header = {"alg": ALGORITHM, "jku": jku, "kid": kid, "typ": "JOSE"}
    protected = _encode(json.write(header))
    return protected, _encode(sign(f"{protected}.{_encode(payload)}".encode()))


def _check_header(header: dict[str, Any], typ: str | None) -> None:
    if header.get("alg") != ALGORITHM:
        raise JwsInvalid(f"is not signed with {ALGORITHM}")
    if not header.keys() <= _MEMBERS:
        raise JwsInvalid("has a header member other than alg, kid and typ")
    if typ is not None and header.get("typ") != typ:
        raise JwsInvalid(f"is not of type {typ}")
    if "kid" not in header:
        if typ is not None:
            raise JwsInvalid("names no key")
    elif not is_keyid(header["kid"]):
        raise JwsInvalid("names its key by something that is no key id")


def is_keyid(value: object) -> bool:
    """Whether this names a key, and is no path and no query."""
    return isinstance(value, str) and _KEYID.fullmatch(value) is not None


def _read_object(part: str, name: str) -> dict[str, Any]:
    try:
        return json.read_object(_decode(part))
    except InvalidJson:
        raise JwsInvalid(f"has a {name} that is not one JSON object") from None


def _decode(part: str) -> bytes:
    # The alphabet was checked; a length that no bytes have, and bits left over, were not.
    if len(part) % 4 == 1:
        raise JwsInvalid("has a part that is not base64url")
    raw = urlsafe_b64decode(part + "=" * (-len(part) % 4))
    if _encode(raw) != part:
        raise JwsInvalid("has a part that is not canonical base64url")
    return raw


def _encode(raw: bytes) -> str:
    return urlsafe_b64encode(raw).rstrip(b"=").decode()
