"""Access tokens that agents elsewhere give us for assertions of ours (OAuth federation 0.1).

Law 1. Where a token is asked for stands on the card of the agent, and leads to its own host, or to
       one that the operator lists; what is told there leads nowhere else either.
Law 2. A token is for one agent and for whom we call for: that of one person is used for no other.
       It is in memory and nowhere else, and asked for anew before it ends.
Law 3. Every assertion is made for its endpoint, used once, and holds for some minutes. Who asks
       about a task after its token has ended goes on with that task alone.
"""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from carnet.core.memo import Memo
from carnet.core.people.identity import Secret
from carnet.core.trust.federation import MESSAGE_SCOPES, SCOPES, TASK_SCOPES, URI
from carnet.errors import CarnetError, EgressRefused, InvalidJson, PeerCredentialMissing
from carnet.ports.world.clock import Clock
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.peers.a2a.access_tokens import bearer_of, form_request, send_form
from carnet.runtime.peers.a2a.own_evidence import Attesting, Caused
from carnet.runtime.peers.cards import Fetching, NotPublished, Remembered, Site
from carnet.wire.dialects.a2a.card import A2aCard
from carnet.wire.grammar import json
from carnet.wire.identity.token_exchange import request_form

MOST_REMEMBERED: Final = 1024  # tokens for one agent
HOLDS_SECONDS: Final = 300.0  # that is remembered where tokens are given
SCHEME: Final = "an access token of OAuth federation"
_WANTED: Final = (*MESSAGE_SCOPES, *TASK_SCOPES[:3])  # nobody is called back


class FederationOffer(Struct, frozen=True):
    """Where a card says that tokens are given, and what for."""

    server: str  # the page that tells of it
    resource: str


class _Server(Struct, frozen=True):
    token_url: str
    scopes: frozenset[str]


class _Held(Struct, frozen=True):
    token: Secret
    until: float


class FederatedTokens:
    """The tokens for one agent."""

    def __init__(
        self, http: HttpClient, attesting: Attesting, clock: Clock, leads: Callable[[str], bool]
    ) -> None:
        """`leads` tells whether a URL leads to the agent's own host, or to a listed one."""
        self._http = http
        self._attesting = attesting
        self._clock = clock
        self._leads = leads
        self._fetching = Fetching(http)
        self._servers = Remembered(self._load, clock, most=16)
        self._held: Memo[tuple[Caused, str | None], _Held] = Memo(MOST_REMEMBERED)

    async def token(self, offer: FederationOffer, cause: Caused, task: str | None = None) -> Secret:
        """A token that holds: for whom a call is made, or for a task that one was made for."""
        for key in ((cause, None), (cause, task)):
            held = self._held.get(key)
            if held is not None and self._clock.monotonic() < held.until:
                return held.token
        try:
            found = await self._exchange(offer, cause, task)
        except CarnetError as error:
            raise PeerCredentialMissing(str(error), schemes=SCHEME) from None
        return self._held.keep((cause, task), found).token

    def forget(self, cause: Caused) -> None:
        """Ask anew the next time."""
        self._held.pop((cause, None), None)

    async def close(self) -> None:
        """End what is being fetched."""
        await self._servers.close()

    async def _exchange(self, offer: FederationOffer, cause: Caused, task: str | None) -> _Held:
        if not self._leads(offer.server):
            raise EgressRefused("its tokens are given by another host than its own")
        found = await self._servers.find(Site(offer.server))
        if found.value is None:
            raise PeerCredentialMissing(found.fault or found.absent or "", schemes=SCHEME)
        server, wanted = found.value, _WANTED if task is None else TASK_SCOPES[:3]
        subject, client = self._attesting.assertions(cause, server.token_url, task)
        form = request_form(
            subject_token=subject,
            client_assertion=client,
            resource=offer.resource,
            scopes=tuple([each for each in wanted if each in server.scopes]),
        )
        answer = await send_form(self._http, form_request(server.token_url, form, None, None))
        token, seconds = bearer_of(answer)
        return _Held(token, self._clock.monotonic() + seconds)

    async def _load(self, site: Site) -> tuple[_Server, float]:
        try:
            page = json.read_object(await self._fetching.page(site, ""))
        except InvalidJson:
            raise NotPublished("what it tells of its tokens cannot be read") from None
        url, scopes = page.get("token_endpoint"), page.get("scopes_supported", list(SCOPES))
        if not isinstance(url, str) or not self._leads(url) or not isinstance(scopes, list):
            raise NotPublished("its tokens are given by another host than its own")
        return _Server(url, frozenset(map(str, scopes))), HOLDS_SECONDS


def offer_of(card: A2aCard) -> FederationOffer | None:
    """Where a card says that tokens are given; None where it does not."""
    for each in card.extensions:
        if each.uri != URI:
            continue
        server, resource = (each.params.get(n) for n in ("authorization_server", "resource"))
        if isinstance(server, str) and isinstance(resource, str):
            return FederationOffer(server, resource)
    return None
