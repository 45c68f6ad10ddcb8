"""The credential of a caller: a JWT (RFC 7519), signed with a key that its sender publishes.

    Authorization: Bearer BASE64URL({"alg":"EdDSA","kid":"...","typ":"JWT"}).BASE64URL({
        "iss": "globex.example", "sub": "@critic@globex.example", "aud": "@echo@acme.example",
        "iat": 1700000000, "exp": 1700000300, "jti": "..."}).SIGNATURE

It says who calls, for a few minutes and once; nothing of what is asked is covered by it.

Law 1. `read_credential(write_credential(...))` gives a proof of the same sender, subject, audience,
       times and nonce.
Law 2. The key is that of the issuer's domain. Who speaks is the domain itself or an address of it:
       nobody vouches for a name of somebody else's.
Law 3. It holds for at most ten minutes, has begun, and has not ended, but for a minute between the
       clocks; one that says nothing of its begin, its end or its number is none.
Law 4. Whatever the text, it is a proof or `CredentialInvalid`; nothing is fetched and nothing that
       it says is repeated.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from carnet.core.people.address import (
    AGENT,
    check_domain,
    check_identity,
    host_of,
    is_agent_uri,
    is_handle,
    parse_handle,
)
from carnet.core.people.proof import SECOND_US, Proof
from carnet.errors import AddressInvalid, CredentialInvalid
from carnet.wire.crypto import jws
from carnet.wire.grammar import json

TYPE: Final = "JWT"
DEFAULT_SECONDS: Final = 300
MOST_SECONDS: Final = 600
SKEW_SECONDS: Final = 60
MOST_AUDIENCES: Final = 8
MOST_NAME: Final = 512  # characters of an issuer, a subject or an audience

_SHAPE: Final = re.compile(r"ey[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*", re.ASCII)
_ID: Final = re.compile(r"[\x21-\x7e]{8,128}", re.ASCII)
_NAME: Final = re.compile(r"[\x21-\x7e]{1,512}", re.ASCII)


def is_token(text: str) -> bool:
    """Whether a bearer credential has the shape of a JWT: none of our own tokens has."""
    return _SHAPE.fullmatch(text) is not None


def peek_issuer(text: str) -> str | None:
    """Who a JWT says it is of, unverified and not judged; None where that cannot be read."""
    try:
        claims = jws.peek(text)
    except jws.JwsInvalid:
        return None
    issuer = claims.get("iss")
    return issuer if isinstance(issuer, str) and _NAME.fullmatch(issuer) else None


def read_credential(text: str) -> Proof:
    """What a credential says of its sender; its signature, time and audience are not judged."""
    try:
        token = jws.read(text, typ=TYPE)
    except jws.JwsInvalid as error:
        raise CredentialInvalid(reason=f"it {error}") from None
    claims = token.payload
    sender, subject = _sender(claims)
    issued, expires = _moment(claims, "iat"), _moment(claims, "exp")
    if not issued < expires <= issued + MOST_SECONDS:
        raise CredentialInvalid(reason=f"it does not hold for 1 to {MOST_SECONDS} seconds")
    begins = max(issued, _moment(claims, "nbf")) if "nbf" in claims else issued
    return Proof(
        profile="jwt",
        sender=sender,
        keyid=token.keyid,
        signature=token.signature,
        bases=(token.signed,),
        nonce=_nonce(claims),
        at=begins * SECOND_US,
        expires=expires + SKEW_SECONDS,
        subject=subject,
        audiences=_audiences(claims),
    )


def write_credential(
    *,
    issuer: str,
    subject: str,
    audience: str,
    issued: int,
    nonce: str,
    kid: str,
    sign: Callable[[bytes], bytes],
    seconds: int = DEFAULT_SECONDS,
) -> str:
    """A credential for one recipient.

    Args:
        issuer: Our domain.
        subject: Who speaks: an address at it, or the domain.
        audience: Whom it is for, and nobody else.
        issued: Seconds since the epoch.
        nonce: Never used before.
        kid: The name of the key that signs.
        sign: Gives the signature.
        seconds: How long it holds.
    """
    claims = {
        "iss": issuer,
        "sub": subject,
        "aud": audience,
        "iat": issued,
        "exp": issued + seconds,
        "jti": nonce,
    }
    return jws.write(claims, kid=kid, typ=TYPE, sign=sign)


def _sender(claims: dict[str, Any]) -> tuple[str, str | None]:
    """The identity whose keys count, and the address that speaks, if it is not that itself."""
    issuer, subject = _name(claims, "iss"), _name(claims, "sub")
    try:
        identity, _ = named(issuer)
        whose, address = named(subject)
    except AddressInvalid:
        reason = "its 'iss' or 'sub' is neither a domain nor an address"
        raise CredentialInvalid(reason=reason) from None
    if whose != identity:
        raise CredentialInvalid(reason="its 'sub' is not an address of its 'iss'")
    return identity, address


def named(text: str) -> tuple[str, str | None]:
    """The identity of the domain that a name belongs to, and the address, if it is one there.

    Raises:
        AddressInvalid: It is neither a domain, nor an identity, nor an address.
    """
    if is_handle(text):
        address = parse_handle(text)
        return AGENT + address.domain, str(address)
    if is_agent_uri(text):
        return check_identity(text), None
    return check_identity(AGENT + check_domain(text)), None


def _name(claims: dict[str, Any], name: str) -> str:
    value = claims.get(name)
    if not isinstance(value, str) or _NAME.fullmatch(value) is None:
        raise CredentialInvalid(reason=f"it has no '{name}' of 1 to {MOST_NAME} visible characters")
    return value


def _moment(claims: dict[str, Any], name: str) -> int:
    value = claims.get(name)
    if type(value) is not int or not 0 < value < json.MAX_INTEGER // SECOND_US:  # no bool
        raise CredentialInvalid(reason=f"it has no '{name}' in whole seconds")
    return value


def _nonce(claims: dict[str, Any]) -> str:
    value = claims.get("jti")
    if not isinstance(value, str) or _ID.fullmatch(value) is None:
        raise CredentialInvalid(reason="it has no 'jti' of 8 to 128 visible characters")
    return value


def _audiences(claims: dict[str, Any]) -> tuple[str, ...]:
    value = claims.get("aud")
    found = [value] if isinstance(value, str) else value
    if not isinstance(found, list) or not 0 < len(found) <= MOST_AUDIENCES:
        raise CredentialInvalid(reason=f"it has no 'aud': a text, or 1 to {MOST_AUDIENCES} of them")
    if not all(isinstance(each, str) and _NAME.fullmatch(each) for each in found):
        raise CredentialInvalid(reason="its 'aud' holds something that is no name")
    return tuple(found)


def host(proof: Proof) -> str:
    """The domain that a credential is of."""
    return host_of(proof.sender)
