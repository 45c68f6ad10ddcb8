"""The documents of `did:web` issuers whom the operator trusts, fetched within bounds.

Law 1. Only trusted names come here. Their documents lie at their own host over https, or where the
       operator says that the peer is.
Law 2. What was read holds for as long as its page says, within our bounds. For a key that is not
       there it is fetched anew once for each reading of it, and then not before a minute has
       passed: whatever is made up, that is two fetches a minute at the most (A24).
"""

from typing import Final

from carnet.core.trust.did import read_did
from carnet.errors import PeerUnreachable
from carnet.ports.trust.trust import Peers
from carnet.ports.world.clock import Clock
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.peers.cards import Fetching, Remembered, Site
from carnet.wire.identity.did_document import DidDocument, DocumentInvalid, read

MOST_REMEMBERED: Final = 1024
KEYS_SECONDS: Final = 300.0  # that a document holds which does not say


class TrustedDids:
    """Finds documents."""

    def __init__(self, http: HttpClient, clock: Clock, peers: Peers) -> None:
        """`peers` are found where the operator wrote it down."""
        self._peers = peers
        self._fetching = Fetching(http)
        self._known = Remembered(self._load, clock, most=MOST_REMEMBERED)
        self._again: dict[Site, float] = {}  # when a document came that was asked for again

    async def find(self, did: str, /, *, again: bool = False) -> DidDocument:
        """The document of a name; see `ports.trust.dids`."""
        site = self._site(did)
        found = await self._known.find(site)
        if again and (self._again.get(site) != found.tried or self._known.is_due(found)):
            found = await self._known.find(site, after=0.0)
            if len(self._again) >= MOST_REMEMBERED:
                self._again.clear()
            self._again[site] = found.tried
        if found.value is None:
            raise PeerUnreachable(found.fault or found.absent or "it publishes no document")
        return found.value

    async def close(self) -> None:
        """End what is being fetched."""
        await self._known.close()

    def _site(self, did: str) -> Site:
        place = read_did(did)
        peer = self._peers.find(place.domain)
        if peer is None:
            return Site(f"https://{place.domain}{place.path}", "learned", place.domain)
        return Site(f"{peer.url.rstrip('/')}{place.path}", "named", place.domain)

    async def _load(self, site: Site) -> tuple[DidDocument, float]:
        page = await self._fetching.fetch(site, "")
        try:
            document = read(page.body)
        except DocumentInvalid as error:
            raise PeerUnreachable(str(error)) from None
        return document, KEYS_SECONDS if page.max_age is None else float(page.max_age)
