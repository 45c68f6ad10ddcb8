"""Whether an agent of a peer is free, by the signed page that its gateway shows of it (R53).

Law 1. A page is believed that the peer's own domain has signed, for as long as its gateway lets it
       be kept. One that cannot be had, or be believed, says nothing: the agent is not free.
Law 2. Nobody waits for it whose call can be admitted without it, and nobody waits behind another:
       where all places are taken, or all that one payer may take, nothing is learned.
Law 3. It is the peer that says so, and it binds the peer: what it then charges is not owed.
"""

from typing import Final

import msgspec
from msgspec import Struct

from carnet.core.call import Free
from carnet.core.money.amount import parse_amount
from carnet.errors import EgressRefused, InvalidRequest, Overloaded, PeerUnreachable
from carnet.ports.world.clock import Clock
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.peers.cards import CARNET_PATH, Fetching, Found, Remembered, Site
from carnet.wire import travel

AT_ONCE: Final = 32
EACH: Final = 4  # that one payer may have fetched at a time
FRESH_SECONDS: Final = 60.0  # as the gateways say that show them


class _Terms(Struct):
    """What of the terms decides."""

    price: str
    price_in: str
    price_out: str
    most_cost: str | None


def freedom_of(shown: travel.WellKnown) -> Free | None:
    """Whether an agent with this page is free; zero is zero in any currency."""
    if shown.terms is None:
        return None
    try:
        terms = msgspec.convert(shown.terms, _Terms)
        priced = [parse_amount(each) for each in (terms.price, terms.price_in, terms.price_out)]
        most = None if terms.most_cost is None else parse_amount(terms.most_cost)
    except (msgspec.ValidationError, InvalidRequest) as error:
        raise PeerUnreachable(f"the terms of carnet.json cannot be read: {error}") from None
    if any(priced):
        return None
    return "all" if most == 0 else "own"


class Offers:
    """What the pages of peers' agents say, fetched within bounds and remembered."""

    def __init__(self, http: HttpClient, clock: Clock) -> None:
        self.clock = clock
        self._fetching = Fetching(http, at_once=AT_ONCE, queue=0)
        self._pages = Remembered(self._load, clock)
        self._payers: dict[Site, str] = {}  # of what is being fetched: for whom

    def of(self, site: Site) -> "SiteOffer":
        """That of one agent; the site says whose it must be."""
        return SiteOffer(self, site)

    async def find(self, site: Site, payer: str) -> Found[Free | None] | None:
        """What is known of an agent, fetched for a payer; None where nobody could be asked."""
        if self._pages.peek(site) is None and site not in self._payers:
            if list(self._payers.values()).count(payer) >= EACH:
                return None
            self._payers[site] = payer
        try:
            return await self._pages.find(site)
        except (Overloaded, EgressRefused):  # and nobody is asked for it
            self._payers.pop(site, None)
            return None

    async def close(self) -> None:
        """End what is being fetched."""
        await self._pages.close()

    async def _load(self, site: Site) -> tuple[Free | None, float]:
        try:
            page = await self._fetching.page(site, CARNET_PATH)
        finally:
            self._payers.pop(site, None)
        shown = travel.read_well_known(page)
        if shown.domain != site.domain:
            raise PeerUnreachable("carnet.json is that of another domain")
        return freedom_of(shown), FRESH_SECONDS


class SiteOffer:
    """What one agent of a peer asks for a call."""

    __slots__ = ("_found", "_offers", "_site")

    def __init__(self, offers: Offers, site: Site) -> None:
        self._offers = offers
        self._site = site
        self._found: Found[Free | None] | None = None

    def is_free(self) -> bool:
        """Whether it was found to be free in all, and that still holds; nobody is asked."""
        found = self._found
        if found is None or found.value != "all":
            return False
        return found.until > self._offers.clock.monotonic()

    async def find(self, payer: str, /) -> Free | None:
        """Whether it is free, by its page, which is fetched if need be."""
        self._found = found = await self._offers.find(self._site, payer)
        return None if found is None else found.value
