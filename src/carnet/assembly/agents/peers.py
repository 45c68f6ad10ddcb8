"""The ways to agents of other organisations, whether a section or a peer names them."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from carnet.config import SecretRef, Settings
from carnet.config.trust.identity import OAuthOut
from carnet.core.call import Agent
from carnet.core.people.address import AGENT, Address
from carnet.core.people.identity import Secret
from carnet.errors import EgressRefused, PeerUnknown
from carnet.ports.trust.keys import KeyRing
from carnet.ports.trust.strangers import Strangers
from carnet.ports.trust.trust import Peer
from carnet.ports.world.clock import Clock, Ids
from carnet.ports.world.http_client import Bounds, HttpClient
from carnet.runtime.agents.a2a_peer import DIALECT as A2A
from carnet.runtime.agents.a2a_peer import A2aPeer
from carnet.runtime.agents.agents_api_peer import AgentsApiEndpoint, AgentsApiPeer
from carnet.runtime.agents.remote import Remote, RemoteEndpoint, SignedLink, Skilled
from carnet.runtime.agents.samvad_peer import SamvadPeer
from carnet.runtime.agents.stranger import Meeting, StrangerClient
from carnet.runtime.egress.addresses import Allowed, read_destination
from carnet.runtime.peers.a2a.access_tokens import AccessTokens, OAuthClient
from carnet.runtime.peers.a2a.cards import A2aCards, card_site
from carnet.runtime.peers.a2a.client import (
    OWN,
    A2aClient,
    A2aEndpoint,
    Origin,
    Reached,
    origin_of,
)
from carnet.runtime.peers.a2a.federation import FederatedTokens
from carnet.runtime.peers.a2a.own_evidence import Attesting
from carnet.runtime.peers.cards import Site
from carnet.runtime.peers.offers import Offers, SiteOffer
from carnet.runtime.peers.samvad_client import SamvadClient, recipient_of, site_of
from carnet.runtime.peers.samvad_request import Recipient
from carnet.runtime.peers.signing import Stamping
from carnet.runtime.peers.strangers.resolver import Resolver
from carnet.runtime.receipts.verification import Verifying
from carnet.stores.open import Store
from carnet.wire.dialects import DIALECTS, by_peer
from carnet.wire.dialects.agents_api.client import path_of
from carnet.wire.dialects.dialect import Dialect
from carnet.wire.dialects.outbound import Codec
from carnet.wire.stamps import STAMPS
from carnet.wire.stamps.stamp import Stamps


class Elsewhere(Struct, frozen=True, kw_only=True, eq=False):
    """What every call out needs: who we are to others, and what of theirs is believed."""

    client: SamvadClient  # with the HTTP client, and what others publish
    verifying: Verifying
    currency: str
    dialects: Mapping[str, Dialect]  # by the names that peers are listed with
    offers: Offers  # what agents of peers ask for a call
    cards: A2aCards  # those of A2A agents
    allows: Callable[[str], bool] = lambda _: False  # whether the operator lists where a URL leads
    stamps: Stamps = STAMPS  # those that are written
    public_url: str = ""  # ours, for those who are told who calls
    attesting: Attesting | None = None  # vouches for our calls
    resolver: Resolver  # finds agents of those who are no peers
    strangers: Strangers  # what is remembered of these
    most_strangers: int
    price_limit: int  # that one of these may ask for without a person being asked

    @property
    def meeting(self) -> Meeting:
        """How agents of strangers are called."""
        return Meeting(
            resolver=self.resolver,
            strangers=self.strangers,
            most=self.most_strangers,
            price_limit=self.price_limit,
            currency=self.currency,
            peer=self._stranger,
        )

    def _stranger(self, way: Reached, address: Address, most_cost: int) -> A2aPeer:
        """An agent that was found by its address: a Carnet knows us by our key."""
        endpoint = A2aEndpoint(site=Site(way.interface.url), peer=address.domain)
        is_carnet = not way.advertised.isdisjoint(OWN)
        client = StrangerClient(
            way,
            self.client.http,
            endpoint,
            cards=self.cards,
            signing=self.client.signing if is_carnet else None,
        )
        return A2aPeer(
            client,
            most_cost=most_cost,
            currency=self.currency,
            stamping=Stamping(stamps=self.stamps, dialect=A2A),
            domain=self.client.signing.domain,
        )

    def tangle(
        self,
        endpoint: RemoteEndpoint,
        *,
        most_cost: int,
        stamping: Stamping,
        peer: str | None,
        skilled: Skilled,
    ) -> Remote:
        """An agent of another gateway, called by one request.

        Args:
            endpoint: Where it is.
            most_cost: The most it may charge for one call.
            stamping: What its calls carry.
            peer: The domain of its organisation, where it is listed: known by its key if we have
                no token.
            skilled: Whether skills can be asked of it by name.
        """
        is_signed = endpoint.token is None and peer is not None
        return Remote(
            self.client.http,
            endpoint,
            most_cost=most_cost,
            stamping=replace(stamping, stamps=self.stamps),
            link=SignedLink(self.client.signing, self.verifying, peer or "") if is_signed else None,
            skilled=skilled,
            domain=self.client.signing.domain,
        )

    def skilled(self, url: str, domain: str | None, way: str) -> Skilled:
        """Whether the gateway behind a URL is a Carnet, by what it shows of itself.

        `way` is another way to ask for skills, as its operator would write it.
        """
        home = Site(url.partition("/agents/")[0].rstrip("/").removesuffix("/v1"))
        return Skilled(lambda: self.client.cards.is_carnet(home, domain), way)

    def samvad(
        self,
        recipient: Recipient,
        *,
        token: Secret | None,
        most_cost: int,
        stamping: Stamping,
        skill: str | None = None,
    ) -> SamvadPeer:
        """An agent that is called by signed envelopes; plain text is given to its `skill`."""
        return SamvadPeer(
            self.client.to(recipient),
            skill=skill,
            token=token,
            most_cost=most_cost,
            currency=self.currency,
            stamping=replace(stamping, stamps=self.stamps),
            domain=self.client.signing.domain,
        )

    def a2a(
        self,
        endpoint: A2aEndpoint,
        *,
        most_cost: int,
        stamping: Stamping,
        skill: str | None = None,
        oauth: OAuthClient | None = None,
    ) -> A2aPeer:
        """An agent that is called as its card says; a listed peer knows us by our key.

        `oauth` says how access tokens for it are obtained.
        """
        http, clock, attesting = self.client.http, self.client.clock, self.attesting
        leads = partial(_leads, origin_of(endpoint.site.url), self.allows)
        client = A2aClient(
            http,
            endpoint,
            cards=self.cards,
            allows=self.allows,
            signing=self.client.signing,
            attesting=attesting,
            access=None if oauth is None else AccessTokens(oauth, http, clock),
            federation=None
            if attesting is None
            else FederatedTokens(http, attesting, clock, leads),
        )
        return A2aPeer(
            client,
            skill=skill,
            most_cost=most_cost,
            currency=self.currency,
            stamping=replace(stamping, stamps=self.stamps, dialect=A2A),
            domain=self.client.signing.domain,
        )

    def agents_api(
        self, endpoint: AgentsApiEndpoint, *, most_cost: int, stamping: Stamping
    ) -> AgentsApiPeer:
        """An agent that has runs and pending actions, and is told who calls."""
        domain = self.client.signing.domain
        return AgentsApiPeer(
            self.client.http,
            endpoint,
            most_cost=most_cost,
            currency=self.currency,
            stamping=replace(stamping, stamps=self.stamps, host=self.public_url, domain=domain),
            signing=None if endpoint.peer is None else self.client.signing,
            domain=domain,
        )

    def of_peer(self, peer: Peer, local: str, seconds: float) -> Agent:
        """The bare agent of a peer.

        It is called in the dialect that the peer is listed with; its default one has no name.
        """
        dialect = self.dialects.get(peer.dialect)
        spoken = None if dialect is None else dialect.spoken
        if spoken is None:
            raise PeerUnknown(f"{peer.domain} is listed with '{peer.dialect}', which is not spoken")
        return spoken.reach(_Ways(self, peer, local, seconds))

    def offer_of(self, peer: Peer, local: str) -> SiteOffer:
        """What an agent of a peer asks for a call, by the page that must be the peer's."""
        site = Site(site_of(peer, local), domain=peer.domain)
        return self.offers.of(site)

    async def close(self) -> None:
        """End what is being fetched."""
        await self.client.close()
        await self.offers.close()
        await self.cards.close()
        await self.resolver.close()


class _Ways(Struct, frozen=True, eq=False):
    """The ways to one agent of a peer: those that a dialect chooses from."""

    elsewhere: Elsewhere
    peer: Peer
    local: str
    seconds: float

    def by_request(self, codec: Codec, /) -> Agent:
        """One request for a call."""
        peer, local, elsewhere = self.peer, self.local, self.elsewhere
        endpoint = RemoteEndpoint(
            url=peer.url.rstrip("/") + codec.path(local),
            model=local or f"{AGENT}{peer.domain}",
            token=peer.token,
            currency=elsewhere.currency,
            bounds=bounds_of(self.seconds),
            codec=codec,
        )
        way = f"carnet peers add {peer.domain} --dialect samvad"
        return elsewhere.tangle(
            endpoint,
            most_cost=peer.most_cost,
            stamping=self._stamping(),
            peer=peer.domain,
            skilled=elsewhere.skilled(peer.url, peer.domain, way),
        )

    def by_envelope(self) -> Agent:
        """Signed envelopes."""
        return self.elsewhere.samvad(
            recipient_of(self.peer, self.local, bounds_of(self.seconds)),
            token=self.peer.token,
            most_cost=self.peer.most_cost,
            stamping=self._stamping(),
        )

    def by_card(self) -> Agent:
        """Messages to the interface that its card names."""
        peer = self.peer
        endpoint = A2aEndpoint(
            site=card_site(site_of(peer, self.local)),
            token=peer.token,
            bounds=bounds_of(self.seconds),
            peer=peer.domain,
            auth=peer.auth,
            audience=audience_of(peer.domain, self.local),
        )
        return self.elsewhere.a2a(endpoint, most_cost=peer.most_cost, stamping=self._stamping())

    def by_run(self) -> Agent:
        """One request for a run, and one for each decision."""
        peer = self.peer
        endpoint = AgentsApiEndpoint(
            url=peer.url.rstrip("/") + path_of(self.local),
            token=peer.token,
            bounds=bounds_of(self.seconds),
            peer=peer.domain,
        )
        return self.elsewhere.agents_api(
            endpoint, most_cost=peer.most_cost, stamping=self._stamping()
        )

    def _stamping(self) -> Stamping:
        return Stamping(takes_credential=self.peer.may_forward, log_names=self.peer.log_names)


def build_elsewhere(
    settings: Settings,
    store: Store,
    http: HttpClient,
    keys: KeyRing,
    clock: Clock,
    ids: Ids,
    *,
    stamps: Stamps = STAMPS,
    dialects: Sequence[Dialect] = DIALECTS,
) -> Elsewhere:
    """What one gateway calls others with; `keys` are those of others, `stamps` are written.

    Peers are called in one of the `dialects`.
    """
    domain, currency = settings.gateway.domain, settings.ledger.currency
    verifying = Verifying(keys, domain=domain, currency=currency, clock=clock)
    client = SamvadClient.of(
        http,
        store.keys,
        f"{AGENT}{domain}",
        clock=clock,
        ids=ids,
        verifying=verifying,
        stamps=stamps,
    )
    return Elsewhere(
        client=client,
        verifying=verifying,
        currency=currency,
        dialects=by_peer(dialects),
        offers=Offers(http, clock),
        cards=A2aCards(http, clock, store.pinned.of),
        allows=partial(_lists, Allowed(settings.egress.allow)),
        stamps=stamps,
        public_url=settings.gateway.public_url.rstrip("/"),
        attesting=Attesting(
            store.keys,
            domain=domain,
            clock=clock,
            ids=ids,
            people=store.people,
            names=settings.identity.names,
        ),
        resolver=Resolver(http, clock, _found_at(settings)),
        strangers=store.strangers,
        most_strangers=settings.limits.strangers,
        price_limit=settings.gateway.stranger_price_limit,
    )


def oauth_client(
    given: OAuthOut | None, secret_of: Callable[[SecretRef], Secret | None]
) -> OAuthClient | None:
    """How access tokens for an agent are obtained."""
    secret = None if given is None else secret_of(given.client_secret)
    if given is None or secret is None:
        return None
    return OAuthClient(
        token_url=given.token_url,
        client_id=given.client_id,
        client_secret=secret,
        scope=given.scope,
        resource=given.resource,
    )


def audience_of(domain: str, local: str) -> str:
    """By which an agent of a peer knows what is meant for it."""
    return f"@{local}@{domain}" if local else f"{AGENT}{domain}"


def _found_at(settings: Settings) -> dict[str, str]:
    """Where the operator says that domains are found, which are no peers."""
    pairs = [entry.partition("=") for entry in settings.egress.found_at]
    return {domain: url for domain, _, url in pairs}


def _leads(own: Origin | None, allows: Callable[[str], bool], url: str) -> bool:
    """Whether a URL leads to the host of an agent, or to one that the operator lists."""
    return own is not None and (origin_of(url) == own or allows(url))


def _lists(allowed: Allowed, url: str) -> bool:
    """Whether the operator lists where a URL leads."""
    try:
        return allowed.names(read_destination(url))
    except EgressRefused:
        return False


def bounds_of(seconds: float) -> Bounds:
    """The bounds of a call that may take so long."""
    return Bounds(total_seconds=seconds, first_byte_seconds=min(120.0, seconds))
