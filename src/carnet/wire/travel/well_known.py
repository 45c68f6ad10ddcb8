"""`/.well-known/carnet.json`: that this is a Carnet, and the keys it signs with.

Law 1. `read_well_known(write_well_known(shown))` says the same again.
Law 2. It is signed with a key that it shows itself as active: a page that somebody put together
       from parts is not believed. Whether the host is the right one, whoever fetched it knows.
Law 3. A page with a weak key, or with one keyid twice, is not believed at all.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from carnet.core.people.address import check_domain
from carnet.core.people.proof import SECOND_US
from carnet.errors import AddressInvalid, InvalidJson, KeyInvalid, PeerUnreachable
from carnet.wire.crypto import ed25519, jws
from carnet.wire.grammar import jcs, json

TYPE: Final = "carnet-keys+jwt"
PROFILES: Final = ("carnet",)
MAX_BYTES: Final = 64 * 1024  # of the signature, which holds all of the page again
MOST_KEYS: Final = 32

_Number = Annotated[int, Meta(ge=0, le=json.MAX_INTEGER)]
_Word = Annotated[str, Meta(min_length=1, max_length=256)]


class PublishedKey(Struct, frozen=True, kw_only=True):
    """One key as its owner shows it."""

    kid: str
    key: bytes  # 32 bytes
    active: bool = True  # False: it was revoked
    not_after: int | None = None  # microseconds since the epoch


class WellKnown(Struct, frozen=True, kw_only=True):
    """What the page says."""

    domain: str
    version: int  # grows whenever the keys change
    keys: tuple[PublishedKey, ...]
    profiles: tuple[str, ...] = PROFILES
    dialects: tuple[str, ...] = ()
    terms: dict[str, Any] | None = None  # of the default agent: its price, and what bounds a call


class _Key(Struct):
    kid: _Word
    key: str
    active: bool
    not_after: _Number | None


class _Page(Struct):
    domain: str
    version: _Number
    keys: Annotated[list[_Key], Meta(min_length=1, max_length=MOST_KEYS)]
    profiles: list[_Word]
    dialects: list[_Word]
    signature: str
    terms: dict[str, Any] | None = None


def write_well_known(shown: WellKnown, *, kid: str, sign: Callable[[bytes], bytes]) -> bytes:
    """The page, signed with one of its own active keys."""
    page: dict[str, Any] = {
        "domain": shown.domain,
        "version": shown.version,
        "keys": [_written(key) for key in shown.keys],
        "profiles": list(shown.profiles),
        "dialects": list(shown.dialects),
        **({} if shown.terms is None else {"terms": shown.terms}),
    }
    # Read back from its canonical form, so that what is signed has exactly those bytes.
    payload = json.read_object(jcs.canonical(page))
    page["signature"] = jws.write(payload, kid=kid, typ=TYPE, sign=sign)
    return json.write(page)


def _written(key: PublishedKey) -> dict[str, Any]:
    return {
        "kid": key.kid,
        "key": ed25519.write_public_key(key.key),
        "active": key.active,
        "not_after": None if key.not_after is None else key.not_after // SECOND_US,
    }


def read_well_known(body: bytes) -> WellKnown:
    """Read the page and verify it with its own keys; `PeerUnreachable` for what is none."""
    try:
        parsed = json.read_object(body)
        page = msgspec.convert(parsed, _Page)
        check_domain(page.domain)
        keys = tuple([_read_key(key) for key in page.keys])
        token = jws.read(page.signature, typ=TYPE, max_bytes=MAX_BYTES)
    except (InvalidJson, msgspec.ValidationError, AddressInvalid, KeyInvalid) as error:
        raise PeerUnreachable(f"carnet.json cannot be read: {error}") from None
    except jws.JwsInvalid as error:
        raise PeerUnreachable(f"the signature of carnet.json {error}") from None
    _verify(token, {name: value for name, value in parsed.items() if name != "signature"}, keys)
    return WellKnown(
        domain=page.domain,
        version=page.version,
        keys=keys,
        profiles=tuple(page.profiles),
        dialects=tuple(page.dialects),
        terms=page.terms,
    )


def _read_key(key: _Key) -> PublishedKey:
    return PublishedKey(
        kid=key.kid,
        key=ed25519.read_public_key(key.key),
        active=key.active,
        not_after=None if key.not_after is None else key.not_after * SECOND_US,
    )


def _verify(token: jws.Compact, rest: dict[str, Any], keys: tuple[PublishedKey, ...]) -> None:
    if len({key.kid for key in keys}) != len(keys):
        raise PeerUnreachable("carnet.json shows one keyid twice")
    signing = [key.key for key in keys if key.kid == token.keyid and key.active]
    holds = [key for key in signing if ed25519.holds(key, token.signed, token.signature)]
    if not holds or token.payload != rest:
        raise PeerUnreachable("carnet.json is not signed by a key of its own")
