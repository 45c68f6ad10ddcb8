"""What a request shows of who sends it: a bearer token, or the same as an API key.

Law 1. One credential, or none is believed: nobody may choose which of two is meant.
Law 2. What says who acts is never read from outside, in no spelling: it is removed first. So is the
       credential, behind Auth: nobody there needs it.
"""

from typing import Final

from carnet.core.people.identity import Secret
from carnet.errors import Malformed, TokenInvalid
from carnet.wire.dialects.engine_chat.actor import ACTOR_ID, PERMISSIONS
from carnet.wire.dialects.engine_chat.bearer import BEARER, RESOLVED
from carnet.wire.grammar.headers import Headers

API_KEY: Final = "x-api-key"

Fields = list[tuple[bytes, bytes]]

_CREDENTIALS: Final = frozenset({b"authorization", API_KEY.encode(), b"cookie"})
_IDENTITY: Final = frozenset([each.encode() for each in (ACTOR_ID, PERMISSIONS, RESOLVED, BEARER)])


def read_credential(headers: Headers) -> Secret | None:
    """The credential, as an Authorization value; None where there is none."""
    try:
        authorization, key = headers.get("authorization"), headers.get(API_KEY)
    except Malformed:
        raise TokenInvalid("a credential stands there twice") from None
    if authorization is not None and key is not None:
        raise TokenInvalid("there are two credentials")
    if key is not None:
        return Secret(f"Bearer {key}")
    return None if authorization is None else Secret(authorization)


def without_identity(fields: Fields) -> Fields:
    """The fields of a request without those that say who acts, however they are spelled."""
    return [field for field in fields if _plain(field[0]) not in _IDENTITY]


def without_credentials(fields: Fields) -> Fields:
    """The same without what proved it."""
    return [field for field in fields if _plain(field[0]) not in _CREDENTIALS]


def _plain(name: bytes) -> bytes:
    return name.lower().replace(b"_", b"-")
