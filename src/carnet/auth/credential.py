"""What a request shows of who sends it: a bearer token, the same as an API key, or a session.

Law 1. One credential, or none is believed: nobody may choose which of two is meant.
Law 2. What says who acts is never read from outside, in no spelling: it is removed first. So is the
       credential, behind Auth: nobody there needs it.
Law 3. What a session is, and when its cookie is believed, is said for all by the guard of callers.
"""

from typing import Final

from carnet.core.people.identity import Secret
from carnet.errors import Malformed, TokenInvalid
from carnet.guards.caller.session import CSRF
from carnet.wire.dialects.engine_chat.actor import ACTOR_ID, PERMISSIONS
from carnet.wire.dialects.engine_chat.bearer import BEARER, RESOLVED
from carnet.wire.grammar.headers import Headers

API_KEY: Final = "x-api-key"

Fields = list[tuple[bytes, bytes]]

_CREDENTIALS: Final = frozenset({b"authorization", API_KEY.encode(), b"cookie", CSRF.encode()})
_IDENTITY: Final = frozenset([each.encode() for each in (ACTOR_ID, PERMISSIONS, RESOLVED, BEARER)])


def read_credential(headers: Headers, *, is_signed_in: bool = False) -> Secret | None:
    """The credential, as an Authorization value; None where there is none.

    `is_signed_in` says that a session is shown as well.
    """
    try:
        authorization, key = headers.get("authorization"), headers.get(API_KEY)
    except Malformed:
        raise TokenInvalid("a credential stands there twice") from None
    shown = [] if key is None else [f"Bearer {key}"]
    if authorization is not None:
        shown.append(authorization)
    if len(shown) + is_signed_in > 1:
        raise TokenInvalid("there are several credentials")
    return Secret(shown[0]) if shown else None


def without_identity(fields: Fields) -> Fields:
    """The fields of a request without those that say who acts, however they are spelled."""
    return [field for field in fields if _plain(field[0]) not in _IDENTITY]


def without_credentials(fields: Fields) -> Fields:
    """The same without what proved it."""
    return [field for field in fields if _plain(field[0]) not in _CREDENTIALS]


def _plain(name: bytes) -> bytes:
    return name.lower().replace(b"_", b"-")
