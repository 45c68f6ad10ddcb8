"""Requests to one A2A agent: where they go, by what we are known there, and what they are answered.

Law 1. They go to the origin of the card, which the operator wrote down, or to one that he lists in
       `[egress] allow`. A card cannot send us, and what we are known by, anywhere else (A18).
Law 2. We are known as the card asks: by a bearer token or a key in a header. What it asks for
       beside is named before anything leaves. A token that is exchanged is for the agent that it is
       sent to: a card that names another's resource would be shown what opens that.
Law 3. Without either, a Carnet that is listed knows us by our signature; one that is to know us by
       a credential is sent a new one with every request, for it alone. Another whose card knows
       signed requests (Envoys) is sent such, beside what else we are known by.
Law 4. A long answer is read beside the loop (A73).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.messages.events import PIECE_BYTES
from carnet.core.people.identity import Secret
from carnet.errors import EgressRefused, PeerCredentialMissing, PeerRefused, PeerUnreachable
from carnet.ports.world.http_client import Bounds, HttpAnswer, HttpClient, Outbound
from carnet.runtime.peers.a2a.access_tokens import AccessTokens
from carnet.runtime.peers.a2a.cards import A2aCards
from carnet.runtime.peers.a2a.federation import (
    SCHEME,
    FederatedTokens,
    FederationOffer,
    offer_of,
)
from carnet.runtime.peers.a2a.own_evidence import Attesting, Caused
from carnet.runtime.peers.answer_reader import read_some
from carnet.runtime.peers.cards import Site
from carnet.runtime.peers.signing import Signing
from carnet.wire.dialects.a2a import client as a2a
from carnet.wire.dialects.a2a.card import A2aCard
from carnet.wire.dialects.a2a.extensions import EXTENSIONS, canonical
from carnet.wire.dialects.a2a.extensions.envoys import ENVOYS_URI
from carnet.wire.dialects.a2a.extensions.identity import URI as IDENTITY_URI
from carnet.wire.dialects.a2a.extensions.questions.policy_part import POLICY_URI

LOOK_SECONDS: Final = 30.0  # for a question about a task

OWN: Final = frozenset(uri for row in EXTENSIONS if row.is_own for uri in row.uris)
KNOWN: Final = frozenset(uri for row in EXTENSIONS for uri in (*row.uris, *row.aliases))

_OK: Final = range(200, 300)
_BEARER: Final = frozenset({"bearer"})
_PORTS: Final = {"http": 80, "https": 443}

Origin = tuple[str, str, int]
Sign = Callable[[Outbound], Outbound]


class A2aEndpoint(Struct, frozen=True, kw_only=True):
    """Where an agent is, and by what we are known there."""

    site: Site  # of its card
    token: Secret | None = None
    api_key: Secret | None = None
    bounds: Bounds = Bounds()
    peer: str | None = None  # the domain of its organisation, where it is listed
    auth: Literal["auto", "jwt", "federation"] = "auto"
    audience: str | None = None  # by which it knows what is meant for it


class Reached(Struct, frozen=True, kw_only=True):
    """An agent as its card says that it is called."""

    card: A2aCard
    interface: a2a.Interface
    secrets: Mapping[str, Secret]
    is_named: bool  # the operator wrote its origin down himself
    mints: bool = False  # every request brings a credential of its own
    subject: str | None = None  # which names who calls; None: this gateway
    cause: Caused | None = None  # for whom its access token was exchanged

    @property
    def advertised(self) -> frozenset[str]:
        """The URIs of the extensions that it knows."""
        return frozenset(canonical(each.uri) for each in self.card.extensions)

    @property
    def wants_signature(self) -> bool:
        """Whether it knows requests that are signed, and not by our own travel document."""
        return ENVOYS_URI in self.advertised and not is_carnet(self.card)


class A2aClient:
    """Sends requests to one agent, and reads the answers."""

    def __init__(
        self,
        http: HttpClient,
        endpoint: A2aEndpoint,
        *,
        cards: A2aCards,
        allows: Callable[[str], bool] = lambda _: False,
        signing: Signing | None = None,
        attesting: Attesting | None = None,
        access: AccessTokens | None = None,
        federation: FederatedTokens | None = None,
    ) -> None:
        """Reach one agent.

        Args:
            http: Sends the requests.
            endpoint: Where it is.
            cards: Those of others.
            allows: Whether the operator lists where a URL leads.
            signing: Signs requests, where we have a key.
            attesting: Makes credentials and evidence.
            access: Obtains access tokens, where it is known by one.
            federation: Obtains those that an agent gives for assertions of ours.
        """
        self._http = http
        self.endpoint = endpoint
        self._cards = cards
        self._allows = allows
        self.signing = signing
        self.attesting = attesting
        self.access = access
        self.federation = federation

    async def reach(self, subject: str | None = None, cause: Caused | None = None) -> Reached:
        """The interface to call, by the card; raises what keeps us from calling it.

        `subject` is who calls, where a credential says it, `cause` for whom.
        """
        card = await self._cards.card(self.endpoint.site)
        unknown = [uri for uri in card.required if uri not in KNOWN]
        if unknown:
            raise PeerRefused(
                f"its card requires the extension {unknown[0]}",
                peer_status=400,
                peer_code="EXTENSION_SUPPORT_REQUIRED",
            )
        interface, is_named = self._chosen(card)
        mints = self._mints(card)
        secrets: Mapping[str, Secret] = {}
        offer = None if mints else self._offer(card)
        if offer is not None:
            self._check_resource(offer, interface)
            secrets = credentials(card, await self._exchanged(offer, cause), None)
        elif not mints and (self.access is not None or not self._signs(card)):
            token, api_key = self._held
            token = token if self.access is None else await self.access.token()
            secrets = credentials(card, token, api_key)
        return Reached(
            card=card,
            interface=interface,
            secrets=secrets,
            is_named=is_named,
            mints=mints,
            subject=subject,
            cause=None if offer is None else cause,
        )

    def _offer(self, card: A2aCard) -> FederationOffer | None:
        """Where tokens are exchanged, if that is how we are known: as told, or by its card."""
        if self.federation is None or self.access is not None:
            return None
        offer, is_set = offer_of(card), self.endpoint.auth == "federation"
        if is_set and offer is None:
            raise PeerCredentialMissing("its card offers no exchange", schemes=SCHEME)
        is_bare = self._held == (None, None) and not self._signs(card)
        return offer if is_set or is_bare else None

    def _check_resource(self, offer: FederationOffer, interface: a2a.Interface) -> None:
        """Refuse to ask for a token that is for somebody else than who is sent it."""
        found, peer = origin_of(offer.resource), self.endpoint.peer
        own = [origin_of(self.endpoint.site.url), origin_of(interface.url)]
        if found is None or (found not in own and found[1] != peer):
            reason = "its card offers tokens for another host than its own"
            raise PeerCredentialMissing(reason, schemes=SCHEME)

    async def _exchanged(
        self, offer: FederationOffer, cause: Caused | None, task: str | None = None
    ) -> Secret:
        if self.federation is None or cause is None:
            raise PeerCredentialMissing("it is not known for whom it is asked", schemes=SCHEME)
        return await self.federation.token(offer, cause, task)

    def _mints(self, card: A2aCard) -> bool:
        """Whether a credential says who we are: where it is to, or a card asks for such a one."""
        if self.attesting is None or self.endpoint.audience is None or self.access is not None:
            return False
        if self.endpoint.auth == "jwt":
            return True
        takes = any(each.uri == IDENTITY_URI for each in card.extensions)
        is_bare = self._held == (None, None) and not self._signs(card)
        return is_bare and takes and bool(card.requirements) and _asks_bearer(card)

    @property
    def _held(self) -> tuple[Secret | None, Secret | None]:
        return self.endpoint.token, self.endpoint.api_key

    def _signs(self, card: A2aCard) -> bool:
        """Whether our signature says who we are: to a Carnet, where we hold nothing else."""
        is_listed = self.signing is not None and self.endpoint.peer is not None
        return is_listed and is_carnet(card) and self._held == (None, None)

    def _chosen(self, card: A2aCard) -> tuple[a2a.Interface, bool]:
        interfaces = a2a.interfaces_of(card)
        if not interfaces:
            others = ", ".join(f"{each.binding[:32]} {each.version}" for each in card.interfaces)
            raise PeerUnreachable(f"its card names no interface that is spoken here: {others}")
        own = origin_of(self.endpoint.site.url)
        for interface in interfaces:
            origin = origin_of(interface.url)
            if origin is not None and (origin == own or self._allows(interface.url)):
                return interface, origin == own
        elsewhere = origin_of(interfaces[0].url)
        entry = "" if elsewhere is None else f"{elsewhere[1]}:{elsewhere[2]}"
        reason = "its card leads to another host than its own"
        raise EgressRefused(f'{reason}; [egress] allow = ["{entry}"] would let it')

    def reading(self, reached: Reached) -> a2a.PolicyReading:
        """What is known of the agent when its policy parts are read: its own host, above all."""
        endpoint = self.endpoint
        _, host, port = origin_of(endpoint.site.url) or ("", "", 0)
        hosts = {host, f"{host}:{port}", endpoint.peer or host} - {""}
        return a2a.PolicyReading(
            is_advertised=POLICY_URI in reached.advertised,
            hosts=frozenset(hosts),
            issuer=endpoint.peer or host,
        )

    def outbound(
        self,
        reached: Reached,
        operation: str,
        given: dict[str, Any],
        *,
        headers: Mapping[str, str] | None = None,
        secrets: Mapping[str, Secret] | None = None,
        extensions: Sequence[str] = (),
    ) -> Outbound:
        """The request for an operation; `headers` and `secrets` go with it.

        `extensions` are the URIs of those that are used in it.
        """
        written = a2a.write_request(reached.interface, operation, given, extensions=extensions)
        minted: dict[str, Secret] = {}
        if reached.mints and self.attesting is not None and self.endpoint.audience is not None:
            credential = self.attesting.credential(self.endpoint.audience, reached.subject)
            minted = {a2a.AUTHORIZATION: credential}
        return Outbound(
            method=written.method,
            url=written.url,
            body=written.body,
            headers={**(headers or {}), **written.headers},
            secrets={**reached.secrets, **minted, **(secrets or {})},
            kind="named" if reached.is_named else "learned",
            bounds=self.endpoint.bounds,
        )

    def send(self, outbound: Outbound) -> AbstractAsyncContextManager[HttpAnswer]:
        """What a request is answered; its body is still on the wire."""
        return self._http.send(outbound)

    async def ask(self, reached: Reached, operation: str, given: dict[str, Any]) -> object:
        """The result of a question about a task; what it is refused with is raised."""
        offer = None if reached.cause is None else offer_of(reached.card)
        if offer is not None:  # the token that the task was begun with may have ended
            token = await self._exchanged(offer, reached.cause, given.get("id"))
            reached = replace(reached, secrets=credentials(reached.card, token, None))
        outbound = self.outbound(reached, operation, given)
        seconds = min(outbound.bounds.total_seconds, LOOK_SECONDS)
        outbound = replace(outbound, bounds=replace(outbound.bounds, total_seconds=seconds))
        async with self.send(self.known(reached, outbound)) as answer:
            return await self.result(reached, operation, answer)

    def known(self, reached: Reached, outbound: Outbound) -> Outbound:
        """The same, signed where nothing else says who we are, or where its card wants that."""
        if self.signing is None:
            return outbound
        if reached.wants_signature:
            return self.signing.sign_envoys(outbound)
        if self.endpoint.peer is None or reached.secrets or reached.mints:
            return outbound
        return self.signing.sign_whole(outbound)

    async def result(self, reached: Reached, operation: str, answer: HttpAnswer) -> object:
        """The result in an answer; what it refuses with is raised."""
        await refuse(answer)
        body = await answer.read()
        if body[PIECE_BYTES:]:
            return await asyncio.to_thread(a2a.read_result, reached.interface, operation, body)
        return a2a.read_result(reached.interface, operation, body)


def is_carnet(card: A2aCard) -> bool:
    """Whether a card says that a Carnet is there."""
    return any(each.uri in OWN for each in card.extensions)


async def refuse(answer: HttpAnswer) -> None:
    """Raise what an answer stands for that is none."""
    if answer.status not in _OK:
        raise a2a.read_refusal(
            answer.status,
            await read_some(answer),
            retry_after=answer.header("retry-after"),
            date=answer.header("date"),
        )


def origin_of(url: str) -> Origin | None:
    """SecurityScheme, host and port of a URL; None if it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    if not parts.hostname or port is None or parts.username is not None:
        return None
    return parts.scheme, parts.hostname.lower(), port


def _asks_bearer(card: A2aCard) -> bool:
    """Whether a bearer in the usual header is all that a card asks for."""
    found = a2a.wanted(card, _BEARER) or ()
    return [each.header for each in found] == [a2a.AUTHORIZATION]


def credentials(card: A2aCard, token: Secret | None, api_key: Secret | None) -> dict[str, Secret]:
    """The headers that say who we are, as a card asks for them.

    Raises:
        PeerCredentialMissing: It asks for what we have not, or cannot do.
    """
    held = {"bearer": token, "key": api_key}
    known = {name: secret for name, secret in held.items() if secret is not None}
    found = a2a.wanted(card, frozenset(known))
    if found is None:
        raise PeerCredentialMissing(schemes=a2a.schemes_of(card))
    scheme = {a2a.AUTHORIZATION: "Bearer "}
    return {
        each.header: Secret(
            (scheme.get(each.header, "") if each.held == "bearer" else "")
            + known[each.held].reveal()
        )
        for each in found
    }
