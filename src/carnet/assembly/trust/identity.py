"""From the `[identity]` section to what verifies credentials, access tokens and evidence."""

from msgspec import Struct, structs

from carnet.config import Settings, resolve_secret
from carnet.core.people.address import Identities
from carnet.core.trust.federation import METADATA_PATH, URI, resource_of
from carnet.gateway.endpoint import DialectEndpoint
from carnet.gateway.own_tasks.bearer import Bearers
from carnet.gateway.own_tasks.endpoint import TaskEndpoint
from carnet.gateway.partners.token_exchange import TokenEndpoint
from carnet.guards.admission.order import Signed
from carnet.guards.caller.evidence import Evidenced, IssuerPolicy
from carnet.guards.caller.platform_credential import CredentialsPresented
from carnet.guards.target.access import OnList
from carnet.http.exchange import Access
from carnet.ports.trust.keys import KeyRing
from carnet.ports.world.clock import Clock, Ids
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.identity.dids import TrustedDids
from carnet.runtime.identity.exchange import ExchangedTokens, FederationParts, TokenExchange
from carnet.runtime.identity.grants import AllGrants
from carnet.runtime.identity.issuers import Issuers, OAuthIssuer
from carnet.stores.open import Store
from carnet.wire.dialects.a2a.card import DeclaredExtension


class IdentityParts(Struct, frozen=True, kw_only=True, eq=False):
    """What verifies who calls beside tokens and signatures."""

    evidenced: Evidenced
    presented: CredentialsPresented
    dids: TrustedDids
    listed: OnList
    grants: AllGrants | None  # of access tokens; None where nobody gives some
    store: Store

    def added(self, by: Signed) -> Signed:
        """What signed claims are judged with, and this."""
        return structs.replace(
            by,
            evidenced=self.evidenced,
            presented=self.presented,
            on_list=self.listed,
            grants=self.grants,
            nonces=self.store.used_nonces,
        )


def build_identity(
    settings: Settings,
    store: Store,
    http: HttpClient,
    keys: KeyRing,
    clock: Clock,
    identities: Identities,
) -> IdentityParts:
    """What the `[identity]` section says."""
    identity, url = settings.identity, settings.gateway.public_url
    policy = IssuerPolicy(identity.trusted, store.peers)
    dids = TrustedDids(http, clock, store.peers)
    return IdentityParts(
        presented=CredentialsPresented(dids, policy, identities, clock, store.used_nonces, url),
        dids=dids,
        evidenced=Evidenced(keys, policy, identities, clock, store.used_nonces, url),
        listed=OnList(settings.gateway.domain, store.people, identity.contact),
        grants=_grants(settings, store, http, clock, identities),
        store=store,
    )


def _grants(
    settings: Settings, store: Store, http: HttpClient, clock: Clock, identities: Identities
) -> AllGrants | None:
    issuers, parts = _issuers(settings, http, clock, identities), federation(settings, store, clock)
    if issuers is None and parts is None:
        return None
    own = None if parts is None else ExchangedTokens(parts)
    return AllGrants(own_url(settings), own, issuers)


def own_url(settings: Settings) -> str:
    """What access tokens of ours name as their issuer."""
    return settings.gateway.public_url.rstrip("/")


def federation(settings: Settings, store: Store, clock: Clock) -> FederationParts | None:
    """What tokens are given and judged with; None where no connector is listed."""
    rules = settings.identity.federation
    if not rules:
        return None
    return FederationParts(
        rules=rules,
        keys=store.keys,
        url=own_url(settings),
        agents=tuple(settings.agents),
        clock=clock,
    )


def build_token_endpoint(
    settings: Settings, store: Store, http: HttpClient, clock: Clock, ids: Ids
) -> TokenEndpoint:
    """Where tokens are exchanged."""
    parts = federation(settings, store, clock)
    if parts is None:
        return TokenEndpoint(None, own_url(settings))
    dids = TrustedDids(http, clock, store.peers)
    exchange = TokenExchange(parts, dids, store.used_nonces, ids)
    return TokenEndpoint(exchange.exchange, own_url(settings))


def federated_extension(settings: Settings, agent: str) -> tuple[DeclaredExtension, ...]:
    """What the card of an agent says of that."""
    rules, url = settings.identity.federation, own_url(settings)
    if not any(not rule.agents or agent in rule.agents for rule in rules):
        return ()
    params = {"authorization_server": url + METADATA_PATH, "resource": resource_of(url, agent)}
    words = "Connectors exchange assertions of their users for access tokens."
    return (DeclaredExtension(uri=URI, description=words, params=params),)


def build_bearers(settings: Settings) -> Bearers:
    """What tells the credentials of others from tokens of ours."""
    issuers = settings.identity.oauth
    own = [own_url(settings)] if settings.identity.federation else []
    return Bearers(
        [*own, *[each.issuer for each in issuers]],
        asks=len([each for each in issuers if each.introspection_url]) == 1,
    )


def build_access(settings: Settings, store: Store, clock: Clock) -> Access:
    """What knows tokens of ours, and leaves the credentials of others to whoever judges them."""
    access = Access(store.tokens, clock, store.look_again)
    access.is_foreign = build_bearers(settings).is_foreign
    return access


def with_bearers(endpoint: DialectEndpoint, bearers: Bearers) -> DialectEndpoint:
    """An endpoint that takes them, where its dialect does."""
    if isinstance(endpoint, TaskEndpoint):
        endpoint.bearers = bearers
    return endpoint


def _issuers(
    settings: Settings, http: HttpClient, clock: Clock, identities: Identities
) -> Issuers | None:
    found = []
    for each in settings.identity.oauth:
        ref, key = each.client_secret, f'identity.oauth."{each.issuer}".client_secret'
        found.append(
            OAuthIssuer(
                issuer=each.issuer,
                jwks_url=each.jwks_url,
                introspection_url=each.introspection_url,
                client_id=each.client_id,
                client_secret=None if ref is None else resolve_secret(ref, settings.base, key=key),
                audience=each.audience,
                scopes=each.scopes,
                credit=each.credit,
            )
        )
    return Issuers(found, http, clock, identities, settings.gateway.public_url) if found else None
