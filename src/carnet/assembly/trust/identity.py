"""From the `[identity]` section to what verifies credentials, access tokens and evidence."""

from msgspec import Struct, structs

from carnet.config import Settings, resolve_secret
from carnet.core.people.address import Identities
from carnet.gateway.endpoint import DialectEndpoint
from carnet.gateway.own_tasks.bearer import Bearers
from carnet.gateway.own_tasks.endpoint import TaskEndpoint
from carnet.guards.admission.order import Signed
from carnet.guards.caller.evidence import Evidenced, IssuerPolicy
from carnet.guards.target.access import OnList
from carnet.http.exchange import Access
from carnet.ports.trust.keys import KeyRing
from carnet.ports.world.clock import Clock
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.identity.issuers import Issuers, OAuthIssuer
from carnet.stores.open import Store


class IdentityParts(Struct, frozen=True, kw_only=True, eq=False):
    """What verifies who calls beside tokens and signatures."""

    evidenced: Evidenced
    listed: OnList
    issuers: Issuers | None  # of access tokens; None where none is configured
    store: Store

    def added(self, by: Signed) -> Signed:
        """What signed claims are judged with, and this."""
        return structs.replace(
            by,
            evidenced=self.evidenced,
            on_list=self.listed,
            grants=self.issuers,
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
    return IdentityParts(
        evidenced=Evidenced(keys, policy, identities, clock, store.used_nonces, url),
        listed=OnList(settings.gateway.domain, store.people, identity.contact),
        issuers=_issuers(settings, http, clock, identities),
        store=store,
    )


def build_bearers(settings: Settings) -> Bearers:
    """What tells the credentials of others from tokens of ours."""
    issuers = settings.identity.oauth
    return Bearers(
        [each.issuer for each in issuers], asks=any(each.introspection_url for each in issuers)
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
