"""From settings to who is known by a client certificate, which a trusted proxy tells (R33)."""

from carnet.assembly.stamps import known_stamps
from carnet.config import Settings
from carnet.gateway.partners.certified import CertifiedRequests
from carnet.http.exchange import RouteTable
from carnet.stores.open import Store


def knowing_certificates(
    settings: Settings, store: Store, router: RouteTable
) -> RouteTable | CertifiedRequests:
    """The routes; where peers are listed with a certificate, for them as well."""
    gateway = settings.gateway
    is_proxied = gateway.certificate_header is not None and bool(gateway.trusted_proxies)
    if not is_proxied or all(peer.certificate is None for peer in settings.peers.values()):
        return router
    calls = settings.limits.sender_calls_per_minute
    stamps = known_stamps(settings)
    return CertifiedRequests(router, stamps, store.peers, store.tokens, calls_per_minute=calls)
