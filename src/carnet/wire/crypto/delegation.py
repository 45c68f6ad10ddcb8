"""Delegation tokens: the `delegationToken` of an envelope, an EdDSA JWT of at most 8 KiB.

Two kinds are read. Tokens of the protocol's own SDKs (`typ` is JWT or absent) may leave out a key
id and an audience, and write their scope as a list or as words. Ours have a type of their own, and
always `kid`, `aud`, `jti` and `iat`; they bring the whole token that they were derived from.

Law 1. `read(write(delegation, ...))` says the same again. A token in the form of the SDKs is theirs
       byte by byte.
Law 2. A token has one reading or none: every claim that we know has its form, in every link.
Law 3. Whatever the text, `read` returns a delegation or raises `DelegationInvalid` or
       `DelegationExceeded`, and repeats nothing of what was sent.
Law 4. Nothing here is believed. The signatures are judged by whoever knows the issuers' keys, the
       times and the narrowing by `core.people.delegation`.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from carnet.core.people.address import check_identity
from carnet.core.people.delegation import MOST_LINKS, MOST_SECONDS, Delegation
from carnet.errors import AddressInvalid, DelegationExceeded, DelegationInvalid
from carnet.wire.crypto import budget_claim, jws
from carnet.wire.grammar.json import MAX_INTEGER

TYPE: Final = "carnet-delegation+jwt"
SDK_TYPE: Final = "JWT"
MAX_BYTES: Final = 8192
MOST_SKILLS: Final = 64
_KINDS: Final = {kind.lower(): kind for kind in (TYPE, SDK_TYPE)}

_Number = Annotated[int, Meta(ge=0, le=MAX_INTEGER)]
_Id = Annotated[str, Meta(pattern=r"\A[!-~]{1,128}\Z")]
_Word = Annotated[str, Meta(min_length=1, max_length=256)]
_Skill = Annotated[str, Meta(min_length=1, max_length=64)]
_One = Annotated[list[str], Meta(min_length=1, max_length=1)]


class _Actor(Struct, omit_defaults=True):
    sub: _Word
    act: "_Actor | UnsetType" = UNSET


class _Claims(Struct, omit_defaults=True, kw_only=True):
    """In the order in which the SDKs write those that they know."""

    iss: str
    sub: str
    iat: _Number | UnsetType = UNSET
    exp: _Number
    scope: str | Annotated[list[_Skill], Meta(max_length=MOST_SKILLS)]
    maxDepth: int  # noqa: N815  the name of the claim
    act: _Actor | UnsetType = UNSET
    aud: str | _One | UnsetType = UNSET  # one of them; who is meant beside others is not told
    jti: _Id | UnsetType = UNSET
    nbf: _Number | UnsetType = UNSET
    once: bool = False
    bud: budget_claim.SpendingClaim | UnsetType = UNSET
    parent: str | UnsetType = UNSET


class _Wrong(ValueError):
    """What is wrong with a link, in words of ours."""


def read(text: str) -> Delegation:
    """Read a token and all that it was derived from."""
    first, *others = reversed(_unfold(text))
    link = _numbered(1, first, None)
    for number, token in enumerate(others, 2):
        link = _numbered(number, token, link)
    return link


def _numbered(number: int, found: tuple[str, jws.Compact], parent: Delegation | None) -> Delegation:
    try:
        return _read_link(*found, parent)
    except _Wrong as error:
        raise DelegationInvalid(reason=str(error), link=number) from None


def _unfold(text: str) -> list[tuple[str, jws.Compact]]:
    """A token, then the one inside it, and so on; what lies below an unreadable one is unknown."""
    found: list[tuple[str, jws.Compact]] = []
    inner: object = text
    while isinstance(inner, str):
        if len(found) == MOST_LINKS:
            raise DelegationExceeded(reason=f"it has more than {MOST_LINKS} links")
        try:
            token = jws.read(inner, typ=None, max_bytes=MAX_BYTES)
        except jws.JwsInvalid as error:
            raise DelegationInvalid(reason=f"it {error}") from None
        found.append((inner, token))
        inner = token.payload.get("parent")
    return found


def _read_link(text: str, token: jws.Compact, parent: Delegation | None) -> Delegation:
    kind = _KINDS.get(str(token.header.get("typ", SDK_TYPE)).lower())  # RFC 7515, 4.1.9
    if kind is None:
        raise _Wrong("it is a token of another kind")
    try:
        claims = msgspec.convert(token.payload, _Claims)
        budget = budget_claim.read_spending(claims.bud)
    except msgspec.ValidationError:  # its text names what a peer sent
        raise _Wrong("it lacks a claim or has one of a wrong kind") from None
    except budget_claim.SpendingInvalid as error:
        raise _Wrong(f"it {error}") from None
    _check(claims)
    if kind == TYPE:
        _check_own(claims, token)
    return Delegation(
        issuer=claims.iss,
        subject=claims.sub,
        scope=_read_scope(claims.scope),
        hops=claims.maxDepth,
        issued=claims.iat or 0,
        expires=claims.exp,
        not_before=claims.nbf or 0,
        audience=_audience(claims) or None,
        token_id=claims.jti or None,
        once=claims.once,
        budget=budget,
        actors=_read_actors(claims.act),
        parent=parent,
        is_ours=kind == TYPE,
        keyid=token.keyid,
        text=text,
        signed=token.signed,
        signature=token.signature,
    )


def _check(claims: _Claims) -> None:
    """What holds for every token."""
    try:
        audience = _audience(claims)
        for identity in (claims.iss, claims.sub, claims.iss if audience is UNSET else audience):
            check_identity(identity)
    except AddressInvalid:
        raise _Wrong("it names somebody by something that is no agent:// identity") from None
    if claims.once and claims.jti is UNSET:
        raise _Wrong("it is good for one call and has no jti to know it by")


def _audience(claims: _Claims) -> str | UnsetType:
    """The one that it is for, also where it stands in a list."""
    return claims.aud[0] if isinstance(claims.aud, list) else claims.aud


def _check_own(claims: _Claims, token: jws.Compact) -> None:
    """What holds for our own alone."""
    if not token.keyid:
        raise _Wrong("it names no key")
    if claims.aud is UNSET or claims.jti is UNSET or claims.iat is UNSET:
        raise _Wrong("it lacks one of aud, jti and iat")
    if not 0 < claims.exp - claims.iat <= MOST_SECONDS:
        raise _Wrong(f"it is meant to hold for longer than {MOST_SECONDS} seconds")


def _read_scope(scope: str | list[str]) -> tuple[str, ...]:
    """The skills: a list, or words with one space between them."""  # samvad:delegation:scope-form
    skills = scope.split(" ") if isinstance(scope, str) and scope else list(scope)
    if len(skills) > MOST_SKILLS or not all(
        skill.isprintable() and skill.strip() == skill and skill for skill in skills
    ):
        raise _Wrong("its scope is no list of skills")
    return tuple(dict.fromkeys(skills))


def _read_actors(act: _Actor | UnsetType) -> tuple[str, ...]:
    actors: list[str] = []
    while act is not UNSET:
        actors.append(act.sub)
        act = act.act
    return tuple(actors)


def write(delegation: Delegation, *, sign: Callable[[bytes], bytes]) -> str:
    """Write a token: of our own type, or in the form of the SDKs.

    `sign` is the key that `delegation.keyid` names. What our own readers would not take is refused
    with `DelegationInvalid`; one that has grown too long, with `DelegationExceeded`.
    """
    claims = _Claims(
        iss=delegation.issuer,
        sub=delegation.subject,
        iat=delegation.issued,
        exp=delegation.expires,
        scope=list(delegation.scope),
        maxDepth=delegation.hops,
        act=_written_actors(delegation.actors),
        aud=budget_claim.given(delegation.audience),
        jti=budget_claim.given(delegation.token_id),
        nbf=delegation.not_before or UNSET,
        once=delegation.once,
        bud=budget_claim.write_spending(delegation.budget),
        parent=UNSET if delegation.parent is None else delegation.parent.text,
    )
    payload: dict[str, Any] = msgspec.to_builtins(claims)
    kind = TYPE if delegation.is_ours else SDK_TYPE
    try:
        text = jws.write(payload, kid=delegation.keyid, typ=kind, sign=sign)
    except jws.JwsInvalid as error:
        raise DelegationInvalid(reason=f"it {error}") from None
    if len(text) > MAX_BYTES:
        raise DelegationExceeded(reason="it has no room for another link")
    read(text)
    return text


def _written_actors(actors: tuple[str, ...]) -> _Actor | UnsetType:
    inner: _Actor | UnsetType = UNSET
    for actor in reversed(actors):
        inner = _Actor(actor, inner)
    return inner
