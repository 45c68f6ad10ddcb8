"""The cards of A2A agents: fetched within bounds, remembered, and asked for again by their tag.

Law 1. The bounds and the times are those of every page that others publish (`runtime.peers.cards`).
Law 2. A card whose tag is still the same is not sent again, and holds on.
Law 3. A card is judged by its signatures before it is used: one that was changed since its host
       signed it leads nowhere, nor one without a signature of a key that the operator wrote down.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from carnet.core.memo import Memo
from carnet.errors import PeerAgentNotFound, PeerUnreachable
from carnet.ports.trust.keys import PinnedKey
from carnet.ports.world.clock import Clock
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.peers.a2a.verification import CardVerification
from carnet.runtime.peers.cards import NEEDED_SECONDS, Fetching, Remembered, Site
from carnet.wire.dialects.a2a.card import A2aCard, read_card

CARD_PATH: Final = "/.well-known/agent-card.json"
DEFAULT_SECONDS: Final = 300.0  # that a card holds which does not say
MOST: Final = 256


class _Known(Struct, frozen=True):
    etag: str
    card: A2aCard


def card_site(url: str) -> Site:
    """Where the card of an agent is: at the URL, if it names a file, or at its well-known path."""
    base = url.rstrip("/")
    return Site(base if base.endswith(".json") else base + CARD_PATH)


def _none(_identity: str) -> Sequence[PinnedKey]:
    """Nobody has written a key down."""
    return ()


class A2aCards:
    """The cards of those whom we call."""

    def __init__(
        self, http: HttpClient, clock: Clock, pinned: Callable[[str], Sequence[PinnedKey]] = _none
    ) -> None:
        """`http` fetches them; `pinned` gives the keys that the operator wrote down for a host."""
        self._fetching = Fetching(http)
        self._verification = CardVerification(self._fetching, pinned, clock)
        self._cards = Remembered(self._load, clock, most=MOST)
        self._known: Memo[Site, _Known] = Memo(MOST)
        self._bodies: dict[Site, bytes | None] = {}  # of agents that the operator wrote down

    def keep(self, site: Site) -> None:
        """Keep the card at a site as it comes: an agent of ours stands before it (R22)."""
        self._bodies.setdefault(site, None)

    def body(self, site: Site) -> tuple[str, bytes] | None:
        """Where a card that is kept was read, and as it came; None if it was not read yet."""
        body = self._bodies.get(site)
        return None if body is None else (site.url, body)

    async def card(self, site: Site) -> A2aCard:
        """The card at a site; PeerAgentNotFound if there is none, or PeerUnreachable."""
        found = await self._cards.find(site)
        if found.value is None:
            found = await self._cards.find(site, after=NEEDED_SECONDS)
        if found.value is not None:
            return found.value
        fault = found.fault or found.absent
        if fault is None:
            raise PeerAgentNotFound(f"there is no card at {site.url}")
        raise PeerUnreachable(fault)

    def known(self) -> list[tuple[Site, A2aCard]]:
        """Those that hold now; nobody is asked."""
        return self._cards.known()

    def forget(self, site: Site) -> None:
        """Ask for a card anew the next time."""
        self._cards.forget(site)

    async def close(self) -> None:
        """End what is being fetched."""
        await self._cards.close()

    async def _load(self, site: Site) -> tuple[A2aCard, float]:
        known = self._known.get(site)
        page = await self._fetching.fetch(site, "", None if known is None else known.etag)
        if known is not None and page.is_same:
            card = known.card
        else:
            read = read_card(page.body)
            await self._verification.check(read, site)
            card = _used(read)
        if site in self._bodies and not page.is_same:
            self._bodies[site] = page.body
        if page.etag is not None:
            self._known.keep(site, _Known(page.etag, card))
        return card, DEFAULT_SECONDS if page.max_age is None else float(page.max_age)


def _used(card: A2aCard) -> A2aCard:
    """A card without what nobody who calls needs: all of it once more, for its signatures."""
    return replace(card, members={}, signatures=())
