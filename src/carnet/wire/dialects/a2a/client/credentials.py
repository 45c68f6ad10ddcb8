"""By what an agent wants to know its callers, as its card says it: what goes into which header.

Law 1. A bearer token, whoever gave it, and a key in a header can be had. All else has a name, for
       the operator.
Law 2. One of the requirements is enough, and all schemes of it are needed.
Law 3. A card cannot name a header that says something else than who calls.
"""

import re
from typing import Any, Final, Literal

from msgspec import Struct

from carnet.wire.dialects.a2a.card import A2aCard, AuthScheme

BEARER: Final = "bearer"
KEY: Final = "key"
AUTHORIZATION: Final = "authorization"

Held = Literal["bearer", "key"]
_HEADER: Final = re.compile(r"[A-Za-z0-9-]{1,64}", re.ASCII)
_TAKEN: Final = frozenset(
    {
        *("host", "connection", "content-length", "content-type", "transfer-encoding", "te"),
        *("upgrade", "expect", "accept", "accept-encoding", "cookie", "trailer", "keep-alive"),
    }
)
_NAMES: Final = {"mutualTLS": "mutual TLS", "http": "another scheme of HTTP"}


class WantedCredential(Struct, frozen=True):
    """What goes into a header."""

    held: Held
    header: str = AUTHORIZATION


def wanted(card: A2aCard, held: frozenset[str]) -> tuple[WantedCredential, ...] | None:
    """The credentials to send, of those that are held; None where none of them will do."""
    for need in card.requirements:
        found = [_credential(card.schemes.get(name)) for name in need]
        usable = [each for each in found if each is not None and each.held in held]
        if len(usable) == len(found):
            return tuple(usable)
    return None if card.requirements else _unasked(card, held)


def schemes_of(card: A2aCard) -> str:
    """What a card asks for, in words of ours."""
    named = [name for need in card.requirements for name in need]
    return ", ".join(dict.fromkeys([_words(card.schemes.get(name)) for name in named]))


def _unasked(card: A2aCard, held: frozenset[str]) -> tuple[WantedCredential, ...]:
    """What is sent to who does not say that it is needed."""
    keys = [_credential(each) for each in card.schemes.values()]
    named = [each for each in keys if each is not None and each.held == KEY and KEY in held]
    return (*([WantedCredential(BEARER)] if BEARER in held else []), *named[:1])


def _credential(scheme: AuthScheme | None) -> WantedCredential | None:
    """What a scheme takes; None for what we cannot give."""
    given: dict[str, Any] = {} if scheme is None else scheme.given
    kind = "" if scheme is None else scheme.kind
    if kind in {"oauth2", "openIdConnect"}:
        return WantedCredential(BEARER)  # a token that was got elsewhere
    if kind == "http" and str(given.get("scheme")).lower() == BEARER:
        return WantedCredential(BEARER)
    place, name = given.get("location", given.get("in")), given.get("name")
    is_header = kind == "apiKey" and place == "header" and isinstance(name, str)
    if is_header and _HEADER.fullmatch(str(name)) and str(name).lower() not in _TAKEN:
        return WantedCredential(KEY, str(name).lower())
    return None


def _words(scheme: AuthScheme | None) -> str:
    credential = _credential(scheme)
    if credential is not None:
        return "a bearer token" if credential.held == BEARER else "a key in a header"
    kind = "" if scheme is None else scheme.kind
    if kind == "apiKey":
        return "a key elsewhere than in a header"
    return _NAMES.get(kind, "another scheme")
