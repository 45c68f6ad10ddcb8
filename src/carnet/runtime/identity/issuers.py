"""The issuers of access tokens that the operator has configured, and what their tokens grant.

A token that is a JWT is verified with the keys that its issuer publishes; one that is not, its
issuer is asked about (RFC 7662).

Law 1. Where keys lie and who is asked stands in the configuration. Nothing that a token says is
       fetched from or sent to.
Law 2. What was verified is remembered until its end, at most a minute where its issuer was asked,
       under its issuer and a digest of it; so is what an issuer did not know. Both are bounded, for
       each issuer by itself: the tokens of one displace nobody else's, nor do made-up ones.
Law 3. A few questions are under way at once, for each issuer by itself; whoever comes then is told
       so.
Law 4. A token that names nobody is told to the only issuer that can be asked. Where there are
       several it is nobody's: one would be told the tokens of another.
"""

import asyncio
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Final

from msgspec import Struct

from carnet.core.memo import Memo
from carnet.core.people.address import Identities
from carnet.core.people.grant import AccessToken, Grant
from carnet.core.people.identity import Secret
from carnet.core.people.proof import SECOND_US
from carnet.errors import (
    CarnetError,
    CredentialInvalid,
    Overloaded,
    TokenInvalid,
)
from carnet.ports.world.clock import Clock
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.peers.a2a.access_tokens import form_request, send_form
from carnet.runtime.peers.cards import (
    AT_ONCE,
    FAILED_SECONDS,
    QUEUE,
    Fetching,
    Found,
    NotPublished,
    Remembered,
    Site,
)
from carnet.wire.identity import access_token as tokens

MOST_REMEMBERED: Final = 4096  # tokens of one issuer
ASKED_SECONDS: Final = 60
KEYS_SECONDS: Final = 300.0


class OAuthIssuer(Struct, frozen=True, kw_only=True):
    """One issuer."""

    issuer: str  # as its tokens name it
    jwks_url: str | None = None
    introspection_url: str | None = None
    client_id: str | None = None  # by which we are known there
    client_secret: Secret | None = None
    audience: tuple[str, ...] = ()  # whom its tokens are for; none: by all names of the agent
    scopes: Mapping[str, tuple[str, ...]] = {}  # of its own, and the permissions they stand for
    credit: int = 0


class _Kept(Struct, frozen=True):
    grant: Grant | None  # None: its issuer does not know it
    until: int  # microseconds since the epoch


class _Of:
    """What is remembered of one issuer, and who asks it."""

    def __init__(self) -> None:
        self.known: Memo[bytes, _Kept] = Memo(MOST_REMEMBERED)
        self.unknown: Memo[bytes, _Kept] = Memo(MOST_REMEMBERED)  # which anybody can make up
        self.free = asyncio.Semaphore(AT_ONCE)
        self.waiting = 0

    def find(self, digest: bytes, now: int) -> _Kept | None:
        found = self.known.get(digest) or self.unknown.get(digest)
        return found if found is not None and found.until > now else None

    def keep(self, digest: bytes, found: _Kept) -> None:
        (self.unknown if found.grant is None else self.known).keep(digest, found)
        (self.known if found.grant is None else self.unknown).pop(digest, None)


class Issuers:
    """Verifies access tokens."""

    def __init__(
        self,
        issuers: Sequence[OAuthIssuer],
        http: HttpClient,
        clock: Clock,
        identities: Identities,
        url: str,
    ) -> None:
        """`identities` are those of our agents, `url` is where others reach this gateway."""
        self._issuers = {each.issuer: each for each in issuers}
        self._http = http
        self._clock = clock
        self._identities = identities
        self._url = url
        self._fetching = Fetching(http)
        self._keys: Remembered[tokens.Keys] = Remembered(self._load, clock, most=64)
        self._of = {each.issuer: _Of() for each in issuers}
        asked = [each for each in issuers if each.introspection_url is not None]
        self._asked = asked[0] if len(asked) == 1 else None

    @property
    def names(self) -> frozenset[str]:
        """What tokens name them by."""
        return frozenset(self._issuers)

    async def find(self, shown: AccessToken, agent: str, now: int) -> Grant:
        """What a token grants at an agent."""
        one = self._asked if shown.issuer is None else self._issuers.get(shown.issuer)
        found = None if one is None else await self._granted(one, shown.token, agent, now)
        if found is None:
            raise TokenInvalid
        return found

    async def _granted(self, one: OAuthIssuer, token: Secret, agent: str, now: int) -> Grant | None:
        kept, digest = self._of[one.issuer], sha256(token.reveal().encode()).digest()
        ours = frozenset(one.audience) or self._identities.names(agent, self._url)
        digest += sha256("\0".join(sorted(ours)).encode()).digest()  # it may be for one agent alone
        known = kept.find(digest, now)
        if known is not None:
            return known.grant
        if one.introspection_url is not None:
            found = await self._introspected(one, token, ours, now)
        else:
            found = await self._verified(one, token, ours, now)
        kept.keep(digest, found)
        return found.grant

    # -------------------------------------------------------------- by its signature

    async def _verified(
        self, one: OAuthIssuer, token: Secret, ours: frozenset[str], now: int
    ) -> _Kept:
        try:
            jwt = tokens.read(token.reveal())
            tokens.check_claims(jwt.claims, ours, now)
        except tokens.AccessInvalid as error:
            raise CredentialInvalid(reason=str(error)) from None
        if jwt.claims.issuer != one.issuer:
            raise CredentialInvalid(reason="its issuer is another")
        key = await self._key(one, jwt)
        if key is None or not jwt.holds(key):
            raise CredentialInvalid(reason="its signature holds under no key of its issuer")
        return _Kept(_grant(one, jwt.claims), jwt.claims.expires * SECOND_US)

    async def _key(self, one: OAuthIssuer, jwt: tokens.AccessJwt) -> tokens.Key | None:
        site, name = Site(one.jwks_url or ""), (jwt.algorithm, jwt.keyid)
        found = await self._keys.find(site)
        if found.value is not None and name not in found.value:
            found = await self._again(site, found)  # it may have been added since
        if found.value is None:
            raise Overloaded("the keys of an issuer cannot be fetched now", retry_after=5)
        return found.value.get(name)

    async def _again(self, site: Site, found: Found[tokens.Keys]) -> Found[tokens.Keys]:
        if not self._keys.is_due(found):
            return found
        return await self._keys.find(site, after=FAILED_SECONDS)

    async def _load(self, site: Site) -> tuple[tokens.Keys, float]:
        try:
            return tokens.read_keys(await self._fetching.page(site, "")), KEYS_SECONDS
        except tokens.AccessInvalid as error:
            raise NotPublished(str(error)) from None

    # -------------------------------------------------------------- by asking

    async def _introspected(
        self, one: OAuthIssuer, token: Secret, ours: frozenset[str], now: int
    ) -> _Kept:
        unknown = _Kept(None, now + ASKED_SECONDS * SECOND_US)
        answer = await self._ask(one, token)
        if answer.get("active") is not True:
            return unknown
        try:
            claims = tokens.read_claims(answer)
            if claims.issuer not in {None, one.issuer}:
                return unknown
            tokens.check_claims(claims, ours, self._clock.wall_us())
        except tokens.AccessInvalid:
            return unknown
        until = min(claims.expires * SECOND_US, now + ASKED_SECONDS * SECOND_US)
        return _Kept(_grant(one, claims), until)

    async def _ask(self, one: OAuthIssuer, token: Secret) -> dict[str, object]:
        form = {"token": token.reveal(), "token_type_hint": "access_token"}
        request = form_request(one.introspection_url or "", form, one.client_id, one.client_secret)
        own = self._of[one.issuer]
        if own.free.locked() and own.waiting >= QUEUE:
            raise Overloaded("too many wait for what an issuer says of tokens", retry_after=1)
        own.waiting += 1
        try:
            async with own.free:
                return await send_form(self._http, request)
        except CarnetError:
            raise Overloaded("an issuer cannot be asked now", retry_after=5) from None
        finally:
            own.waiting -= 1

    async def close(self) -> None:
        """End what is being fetched."""
        await self._keys.close()


def _grant(one: OAuthIssuer, claims: tokens.AccessClaims) -> Grant:
    permissions = [right for scope in claims.scopes for right in one.scopes.get(scope, ())]
    return Grant(
        issuer=one.issuer,
        subject=claims.subject,
        scopes=frozenset(permissions),
        expires=claims.expires,
        client=claims.client,
        credit=one.credit,
    )
