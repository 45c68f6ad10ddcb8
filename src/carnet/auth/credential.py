"""What a request shows of who sends it: a bearer token, the same as an API key, or as a cookie.

Law 1. One credential, or none is believed: nobody may choose which of two is meant.
Law 2. What says who acts is never read from outside, in no spelling: it is removed first. So is the
       credential, behind Auth: nobody there needs it.
Law 3. A cookie is sent by a browser whoever made the page that asks. Where the request says that it
       comes from the page of another site, its cookie is nobody's credential.
"""

from typing import Final

from carnet.core.people.identity import Secret
from carnet.errors import Malformed, TokenInvalid
from carnet.wire.dialects.engine_chat.actor import ACTOR_ID, PERMISSIONS
from carnet.wire.dialects.engine_chat.bearer import BEARER, RESOLVED
from carnet.wire.grammar.headers import Headers

API_KEY: Final = "x-api-key"
SESSION: Final = "carnet_session"  # the cookie that holds a token

Fields = list[tuple[bytes, bytes]]

_CREDENTIALS: Final = frozenset({b"authorization", API_KEY.encode(), b"cookie"})
_IDENTITY: Final = frozenset([each.encode() for each in (ACTOR_ID, PERMISSIONS, RESOLVED, BEARER)])


def read_credential(headers: Headers) -> Secret | None:
    """The credential, as an Authorization value; None where there is none."""
    try:
        authorization, key = headers.get("authorization"), headers.get(API_KEY)
        session = _read_session(headers)
    except Malformed:
        raise TokenInvalid("a credential stands there twice") from None
    tokens = [token for token in (key, session) if token is not None]
    shown = [f"Bearer {token}" for token in tokens]
    if authorization is not None:
        shown.append(authorization)
    if len(shown) > 1:
        raise TokenInvalid("there are several credentials")
    return Secret(shown[0]) if shown else None


def _read_session(headers: Headers) -> str | None:
    """The token in the cookie of a session; None where there is none that is believed."""
    cookies = [pair.strip().partition("=") for pair in (headers.get("cookie") or "").split(";")]
    found = [value for name, _, value in cookies if name == SESSION]
    if len(found) > 1:
        raise TokenInvalid("there are two sessions")
    return found[0] if found and _is_own_page(headers) else None


def _is_own_page(headers: Headers) -> bool:
    """Whether a request comes from a page of the host that it asks, or from no page at all."""
    origin, host = headers.get("origin"), headers.get("host")
    is_own = origin is None or origin in {f"http://{host}", f"https://{host}"}
    return is_own and headers.get("sec-fetch-site") in {None, "same-origin", "none"}


def without_identity(fields: Fields) -> Fields:
    """The fields of a request without those that say who acts, however they are spelled."""
    return [field for field in fields if _plain(field[0]) not in _IDENTITY]


def without_credentials(fields: Fields) -> Fields:
    """The same without what proved it."""
    return [field for field in fields if _plain(field[0]) not in _CREDENTIALS]


def _plain(name: bytes) -> bytes:
    return name.lower().replace(b"_", b"-")
