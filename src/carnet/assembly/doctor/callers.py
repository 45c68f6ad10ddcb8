"""What `carnet doctor` says of the hosts whose caller contexts are believed."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable

    from carnet.config import Settings
    from carnet.core.people.caller_host import CallerHost

LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1"})
CERTIFICATE: Final = "gateway.certificate_header"


def doubts(settings: "Settings", stored: "Iterable[CallerHost]") -> Iterator[tuple[str, str]]:
    """What is wrong with the hosts that are listed, and how it is mended."""
    known: dict[str, str | None] = {
        host.url: host.certificate for host in stored if host.ended is None and not host.from_file
    }
    known |= {url: caller.certificate for url, caller in settings.callers.items()}
    peers = {domain: peer.certificate for domain, peer in settings.peers.items()}
    yield from _of_certificates(settings, {**known, **peers})
    for url in known:
        parts = urlsplit(url)
        if parts.scheme == "http" and parts.hostname not in LOCAL:
            text = f"{url} calls without TLS: whoever reads along learns its key."
            yield text, f"Have it call by https: carnet callers end {url}, then add its https URL."


def _of_certificates(
    settings: "Settings", known: Mapping[str, str | None]
) -> Iterator[tuple[str, str]]:
    certified = [url for url, certificate in known.items() if certificate is not None]
    gateway = settings.gateway
    if certified and not (gateway.certificate_header and gateway.trusted_proxies):
        text = f"{', '.join(certified)} cannot be verified: no proxy tells its certificate."
        fix = "Set [gateway] trusted_proxies and certificate_header, or give it a key or a token."
        yield text, fix
