"""Public keys as a JSON Web Key Set (RFC 7517, RFC 8037): Ed25519 alone.

Law 1. `read_keys(write_keys(keys))` gives the keys back.
Law 2. Keys of other kinds are passed over: a set may hold several. One of our kind that is weak, or
       a name that two of them have, makes the whole set worthless (A21).
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, Final

from carnet.errors import InvalidJson, KeyInvalid
from carnet.wire.crypto.ed25519 import check_public_key
from carnet.wire.grammar import json

MOST_KEYS: Final = 64

_X: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


class KeysInvalid(ValueError):
    """It is no set of keys that we take; the message says why, in words of ours."""


def write_keys(keys: Mapping[str, bytes]) -> bytes:
    """The set, in the order of the keys given."""
    return json.write({"keys": [_written(kid, public) for kid, public in keys.items()]})


def _written(kid: str, public: bytes) -> dict[str, str]:
    x = urlsafe_b64encode(public).rstrip(b"=").decode()
    return {"kty": "OKP", "crv": "Ed25519", "kid": kid, "x": x, "alg": "EdDSA", "use": "sig"}


def read_keys(body: bytes) -> dict[str, bytes]:
    """The Ed25519 keys of a set, by their names."""
    try:
        members = json.read_object(body).get("keys")
    except InvalidJson as error:
        raise KeysInvalid(error.safe_text) from None
    if not isinstance(members, list) or len(members) > MOST_KEYS:
        raise KeysInvalid(f"it holds no list of at most {MOST_KEYS} keys")
    found: dict[str, bytes] = {}
    for member in members:
        if not isinstance(member, dict) or not _is_ours(member):
            continue
        kid = member["kid"]
        if kid in found:
            raise KeysInvalid("it names two keys alike")
        found[kid] = _read(member.get("x"))
    return found


def _is_ours(member: dict[str, Any]) -> bool:
    kind = member.get("kty"), member.get("crv"), member.get("use", "sig")
    return kind == ("OKP", "Ed25519", "sig") and isinstance(member.get("kid"), str)


def _read(x: object) -> bytes:
    if not isinstance(x, str) or _X.fullmatch(x) is None:
        raise KeysInvalid("it holds a key that is not 32 bytes in base64url")
    raw = urlsafe_b64decode(x + "=")
    if urlsafe_b64encode(raw).rstrip(b"=").decode() != x:
        raise KeysInvalid("it holds a key that is not canonical base64url")
    try:
        return check_public_key(raw)
    except KeyInvalid as error:
        raise KeysInvalid(error.safe_text) from None
