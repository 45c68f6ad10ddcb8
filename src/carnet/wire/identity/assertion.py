"""Assertions of OAuth federation 0.1: JWTs that are exchanged for an access token (RFC 8693).

    {"alg": "EdDSA", "kid": "did:web:connector.example#k1",
     "typ": "mentionable-subject-assertion+jwt"}
    {"iss": "did:web:connector.example", "sub": "slack:T123/U456", "aud": "https://.../oauth/token",
     "iat": 1763460000, "exp": 1763460300, "jti": "...", "mentionable_method": "urn:..."}

Of a client `sub` is its own name; one that goes on with a task names that (`mentionable_task_id`).

Law 1. `read(write(...), ...)` gives the same assertion.
Law 2. An assertion is of one type, and is taken for no other.
Law 3. It is for one token endpoint, by its exact URL, for at most ten minutes, within a minute
       between the clocks. What is wrong with it has one word.
Law 4. Whatever the text, it is an assertion that nobody has verified, or `AssertionInvalid`.
"""

import re
from collections.abc import Callable
from typing import Any, Final, Literal

from msgspec import Struct

from carnet.core.people.proof import SECOND_US
from carnet.wire.crypto import jws
from carnet.wire.grammar import json

SUBJECT: Final = "mentionable-subject-assertion+jwt"
CONTINUATION: Final = "mentionable-task-continuation-assertion+jwt"
CLIENT: Final = "mentionable-client-assertion+jwt"
METHOD_CLAIM: Final = "mentionable_method"
TASK_CLAIM: Final = "mentionable_task_id"
USUAL_SECONDS: Final = 300
MOST_SECONDS: Final = 600
SKEW_SECONDS: Final = 60

Reason = Literal[
    "malformed",
    "wrong-typ",
    "wrong-alg",
    "untrusted-issuer",
    "kid-not-authorized",
    "missing-claim",
    "wrong-audience",
    "subject-mismatch",
    "invalid-lifetime",
    "ttl-exceeded",
    "not-yet-valid",
    "expired",
    "invalid-signature",
    "invalid-method",
    "replayed-jti",
]

_NAME: Final = re.compile(r"[\x21-\x7e]{1,512}", re.ASCII)
_METHOD: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}:[\x21-\x7e]{1,223}", re.ASCII)


class AssertionInvalid(Exception):
    """An assertion that is not taken, and why, in one word."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason: Reason = reason


class Assertion(Struct, frozen=True, kw_only=True):
    """An assertion that was read; its signature and its issuer are not judged."""

    typ: str
    issuer: str
    subject: str
    issued: int  # seconds since the epoch
    expires: int
    id: str
    keyid: str
    method: str | None = None
    task: str | None = None
    signed: bytes = b""
    signature: bytes = b""


def read(text: str, *types: str) -> tuple[Assertion, object]:
    """What an assertion of one of these types says, and whom it is for."""
    try:
        token = jws.read(text, typ=None)
    except jws.JwsInvalid as error:
        is_other = str(error) == f"is not signed with {jws.ALGORITHM}"
        raise AssertionInvalid("wrong-alg" if is_other else "malformed") from None
    typ, claims = token.header.get("typ"), token.payload
    if typ not in types:
        raise AssertionInvalid("wrong-typ")
    if not token.keyid:
        raise AssertionInvalid("kid-not-authorized")
    if "aud" not in claims:
        raise AssertionInvalid("missing-claim")
    found = Assertion(
        typ=str(typ),
        issuer=_name(claims, "iss"),
        subject=_name(claims, "sub"),
        issued=_moment(claims, "iat"),
        expires=_moment(claims, "exp"),
        id=_name(claims, "jti"),
        keyid=token.keyid,
        method=_method(claims) if typ == SUBJECT else None,
        task=_name(claims, TASK_CLAIM) if typ == CONTINUATION else None,
        signed=token.signed,
        signature=token.signature,
    )
    if typ == CLIENT and found.subject != found.issuer:
        raise AssertionInvalid("subject-mismatch")
    return found, claims["aud"]


def check(found: Assertion, audience: object, endpoint: str, now: int) -> None:
    """Refuse what is for another endpoint, or out of its time; `now` in microseconds."""
    if audience not in (endpoint, [endpoint]):
        raise AssertionInvalid("wrong-audience")
    if found.expires <= found.issued:
        raise AssertionInvalid("invalid-lifetime")
    if found.expires - found.issued > MOST_SECONDS:
        raise AssertionInvalid("ttl-exceeded")
    check_time(found, now)


def check_time(found: Assertion, now: int) -> None:
    """Refuse what has not begun, or has ended."""
    if (found.issued - SKEW_SECONDS) * SECOND_US > now:
        raise AssertionInvalid("not-yet-valid")
    if (found.expires + SKEW_SECONDS) * SECOND_US <= now:
        raise AssertionInvalid("expired")


def write(made: Assertion, audience: str, *, sign: Callable[[bytes], bytes]) -> str:
    """An assertion for one token endpoint."""
    claims: dict[str, Any] = {
        "iss": made.issuer,
        "sub": made.subject,
        "aud": audience,
        "iat": made.issued,
        "exp": made.expires,
        "jti": made.id,
    }
    claims |= {} if made.method is None else {METHOD_CLAIM: made.method}
    claims |= {} if made.task is None else {TASK_CLAIM: made.task}
    return jws.write(claims, kid=made.keyid, typ=made.typ, sign=sign)


def _name(claims: dict[str, Any], name: str) -> str:
    if name not in claims:
        raise AssertionInvalid("missing-claim")
    value = claims[name]
    if not isinstance(value, str) or _NAME.fullmatch(value) is None:
        raise AssertionInvalid("malformed")
    return value


def _method(claims: dict[str, Any]) -> str:
    if METHOD_CLAIM not in claims:
        raise AssertionInvalid("missing-claim")
    value = claims[METHOD_CLAIM]
    if not isinstance(value, str) or _METHOD.fullmatch(value) is None:
        raise AssertionInvalid("invalid-method")
    return value


def _moment(claims: dict[str, Any], name: str) -> int:
    if name not in claims:
        raise AssertionInvalid("missing-claim")
    value = claims[name]
    if type(value) is not int or not 0 < value < json.MAX_INTEGER // SECOND_US:  # no bool
        raise AssertionInvalid("malformed")
    return value
