"""Delegation tokens by hand, right by themselves; made with PyNaCl and none of Carnet's code."""

import itertools
import secrets
from typing import Any

from tests.support.signing.signed import Sender, encoded, now, token, unpadded

TYPE = "carnet-delegation+jwt"

_RUN = secrets.token_hex(4)
_numbers = itertools.count()


def fresh_jti() -> str:
    return f"jti-{_RUN}-{next(_numbers):06}"


def merged(whole: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Claims with others in their place; one that is an ellipsis is left out."""
    return {name: value for name, value in (whole | more).items() if value is not ...}


def sdk(issuer: Sender, subject: str, *, header: dict[str, Any] | None = None, **more: Any) -> str:
    """A token as the SDKs make it."""
    moment = int(now())
    claims = {
        "iss": issuer.identity,
        "sub": subject,
        "iat": moment,
        "exp": moment + 300,
        "scope": ["chat"],
        "maxDepth": 2,
    }
    return token(issuer, merged(claims, more), **{"typ": "JWT", **(header or {})})


def ours(
    issuer: Sender,
    subject: str,
    audience: str,
    *,
    header: dict[str, Any] | None = None,
    **more: Any,
) -> str:
    """A token of our own type. `parent` is the text of the one that it is derived from."""
    moment = int(now())
    claims = {
        "iss": issuer.identity,
        "sub": subject,
        "aud": audience,
        "jti": fresh_jti(),
        "iat": moment,
        "exp": moment + 300,
        "scope": ["chat"],
        "maxDepth": 2,
    }
    return token(issuer, merged(claims, more), **{"typ": TYPE, **(header or {})})


def raw(issuer: Sender, header: bytes, claims: bytes) -> str:
    """A token whose parts are these very bytes, signed."""
    signed = f"{unpadded(header)}.{unpadded(claims)}"
    return f"{signed}.{unpadded(issuer.sign(signed.encode()))}"


def header_of(issuer: Sender, **more: Any) -> bytes:
    members = {"alg": "EdDSA", "kid": issuer.kid, "typ": TYPE}
    return encoded(merged(members, more))
