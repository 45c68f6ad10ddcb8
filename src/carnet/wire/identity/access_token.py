"""Access tokens that are JWTs (RFC 9068), the keys of issuers, and what introspection answers.

Law 1. Two algorithms, EdDSA and RS256, each with keys of its own kind: what a header says chooses
       among the keys that are known, and brings none (`jwk`, `jku`, `x5u`, `crit`, `b64`).
Law 2. A token names its issuer, its subject, its audience and its end, each once, or it is none.
Law 3. Whatever the text, it is a value or `AccessInvalid`; nothing is fetched.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from carnet.core.people.proof import SECOND_US
from carnet.errors import InvalidJson, KeyInvalid
from carnet.wire.crypto import ed25519, rsa
from carnet.wire.grammar import json

MOST_BYTES: Final = 8192
MOST_KEYS: Final = 64
SKEW_SECONDS: Final = 60

_COMPACT: Final = re.compile(r"(([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+))\.([A-Za-z0-9_-]+)", re.ASCII)
_KEYID: Final = re.compile(r"[\x21-\x7e]{1,256}", re.ASCII)
_SUBJECT: Final = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)
_TYPES: Final = frozenset({None, "jwt", "at+jwt", "application/at+jwt"})
_REFUSED: Final = frozenset({"jwk", "jku", "x5u", "x5c", "crit", "b64", "zip", "enc"})

Key = bytes | rsa.RsaKey
Keys = Mapping[tuple[str, str], Key]  # by algorithm and name


class AccessInvalid(ValueError):
    """The token is none that we take; the message says why, in words of ours."""


class AccessClaims(Struct, frozen=True, kw_only=True):
    """What a token says, verified or not."""

    issuer: str | None
    subject: str
    audiences: tuple[str, ...]
    expires: int  # seconds since the epoch
    begins: int = 0
    scopes: frozenset[str] = frozenset()
    client: str | None = None


class AccessJwt(Struct, frozen=True, kw_only=True):
    """A token that was read and not verified."""

    algorithm: str
    keyid: str
    claims: AccessClaims
    signed: bytes
    signature: bytes

    def holds(self, key: Key) -> bool:
        """Whether it is signed with this key."""
        if isinstance(key, bytes):
            return ed25519.holds(key, self.signed, self.signature)
        return rsa.holds(key, self.signed, self.signature)


def read(text: str) -> AccessJwt:
    """Take a token apart."""
    found = _COMPACT.fullmatch(text) if len(text) <= MOST_BYTES else None
    if found is None:
        raise AccessInvalid("it is not three parts of unpadded base64url")
    signed, head, body, tail = found.groups()
    header = _object(head)
    algorithm, kid, kind = header.get("alg"), header.get("kid"), header.get("typ")
    if algorithm not in {"EdDSA", "RS256"}:
        raise AccessInvalid("it is signed with neither EdDSA nor RS256")
    if _REFUSED & header.keys():
        raise AccessInvalid("its header brings a key, or asks for more than is known")
    if not isinstance(kid, str) or _KEYID.fullmatch(kid) is None:
        raise AccessInvalid("it names no key")
    if (kind.lower() if isinstance(kind, str) else kind) not in _TYPES:
        raise AccessInvalid("it is of another type than an access token")
    return AccessJwt(
        algorithm=str(algorithm),
        keyid=kid,
        claims=read_claims(_object(body)),
        signed=signed.encode(),
        signature=_decode(tail),
    )


def read_claims(claims: Mapping[str, Any]) -> AccessClaims:
    """The claims of a token, or of what introspection says of one."""
    subject = claims.get("sub") or claims.get("client_id")
    if not isinstance(subject, str) or _SUBJECT.fullmatch(subject) is None:
        raise AccessInvalid("it names no subject in visible characters")
    audience = claims.get("aud", [])
    listed = [audience] if isinstance(audience, str) else audience
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise AccessInvalid("its audience is none")
    issuer, client = claims.get("iss"), claims.get("client_id", claims.get("azp"))
    return AccessClaims(
        issuer=issuer if isinstance(issuer, str) else None,
        subject=subject,
        audiences=tuple(listed),
        expires=_moment(claims, "exp"),
        begins=_moment(claims, "nbf") if "nbf" in claims else 0,
        scopes=_scopes(claims),
        client=client if isinstance(client, str) and _SUBJECT.fullmatch(client) else None,
    )


def check_claims(claims: AccessClaims, audiences: frozenset[str], now: int) -> None:
    """Refuse what is for somebody else, has ended, or has not begun; `now` in microseconds."""
    if audiences.isdisjoint(claims.audiences):
        raise AccessInvalid("it is for another audience")
    if (claims.expires + SKEW_SECONDS) * SECOND_US <= now:
        raise AccessInvalid("it has expired")
    if (claims.begins - SKEW_SECONDS) * SECOND_US > now:
        raise AccessInvalid("it does not hold yet")


def read_keys(body: bytes) -> Keys:
    """The keys of an issuer that sign: of Ed25519 and of RSA. Others are passed over."""
    try:
        members = json.read_object(body).get("keys")
    except InvalidJson as error:
        raise AccessInvalid(error.safe_text) from None
    if not isinstance(members, list) or len(members) > MOST_KEYS:
        raise AccessInvalid(f"it holds no list of at most {MOST_KEYS} keys")
    found: dict[tuple[str, str], Key] = {}
    for member in members:
        named = _key(member) if isinstance(member, dict) else None
        if named is None:
            continue
        if named[0] in found:
            raise AccessInvalid("it names two keys alike")
        found[named[0]] = named[1]
    return found


def _key(member: dict[str, Any]) -> tuple[tuple[str, str], Key] | None:
    kid = member.get("kid")
    if not isinstance(kid, str) or member.get("use", "sig") != "sig":
        return None
    try:
        if (member.get("kty"), member.get("crv")) == ("OKP", "Ed25519"):
            return ("EdDSA", kid), ed25519.check_public_key(_decode(member.get("x")))
        if member.get("kty") == "RSA" and member.get("alg", "RS256") == "RS256":
            public = rsa.public_key(_decode(member.get("n")), _decode(member.get("e")))
            return ("RS256", kid), public
    except KeyInvalid as error:  # one weak key makes the whole set worthless (A21)
        raise AccessInvalid(error.safe_text) from None
    return None


def _scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    given = claims.get("scope", claims.get("scp", ""))
    listed = given.split(" ") if isinstance(given, str) else given
    if not isinstance(listed, list) or not all(isinstance(each, str) for each in listed):
        raise AccessInvalid("its scope is none")
    return frozenset([each for each in listed if each])


def _moment(claims: Mapping[str, Any], name: str) -> int:
    value = claims.get(name)
    if type(value) is not int or not 0 <= value < json.MAX_INTEGER // SECOND_US:
        raise AccessInvalid(f"it has no '{name}' in whole seconds")
    return value


def _object(part: str) -> dict[str, Any]:
    try:
        return json.read_object(_decode(part))
    except InvalidJson:
        raise AccessInvalid("a part of it is not one JSON object") from None


def _decode(part: object) -> bytes:
    if not isinstance(part, str) or len(part) % 4 == 1 or not part.isascii():
        raise AccessInvalid("a part of it is not base64url")
    try:
        raw = urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        raise AccessInvalid("a part of it is not base64url") from None
    if urlsafe_b64encode(raw).rstrip(b"=").decode() != part:
        raise AccessInvalid("a part of it is not canonical base64url")
    return raw
