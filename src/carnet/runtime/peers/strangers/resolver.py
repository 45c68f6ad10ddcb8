"""From the address of an agent that no peer has to how it is called: WebFinger, card, keys.

Law 1. Everything is fetched as what a stranger names: over https, to public addresses, within the
       bounds of every page of others. WebFinger may lead on once, and nowhere but over https.
Law 2. The subject and the address that are told must be those that were asked for.
Law 3. Whoever asks for the same address at the same time waits for the same look. One caller has a
       few looks at once, and no more, and waits in no queue with others: what one has looked for
       that does not answer keeps nobody else waiting.
Law 4. Where the operator wrote down where a domain is found, it is found there. What he wrote with
       plain http, which is on this machine, leads nowhere else.
"""

from collections import Counter
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from carnet.core.memo import Memo
from carnet.core.people.address import Address
from carnet.errors import PeerAgentNotFound, PeerUnreachable, TooManyCalls
from carnet.ports.world.clock import Clock
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.peers.cards import NEEDED_SECONDS, Fetching, NotPublished, Remembered, Site
from carnet.wire.crypto.jwks import KeysInvalid, read_keys
from carnet.wire.dialects.a2a.card import A2aCard
from carnet.wire.mentions import webfinger
from carnet.wire.mentions.card import read_card

MOST_LOOKS: Final = 4  # of one caller at once
MOST_KNOWN: Final = 1024
MOST_CALLERS: Final = 1024  # whose looks are bounded by themselves
MOST_KEYS: Final = 16  # of one organisation that are remembered
HOLDS_SECONDS: Final = 300.0
_KEYS_PATH: Final = "/.well-known/jwks.json"
# What fetches for whoever has begun a look: it goes along into the task that looks.
_LOOKING: ContextVar[Fetching] = ContextVar("carnet_looking")


class Introduced(Struct, frozen=True, kw_only=True):
    """How an agent is called, and by which keys its organisation is known."""

    card: A2aCard
    keys: frozenset[bytes]
    is_named: bool  # the operator wrote down where it is found


class Resolver:
    """Looks for agents by their addresses."""

    def __init__(self, http: HttpClient, clock: Clock, found_at: Mapping[str, str]) -> None:
        """`found_at` are the URLs of domains that the operator wrote down."""
        self._found_at = dict(found_at)
        self._http = http
        self._fetching: Memo[str, Fetching] = Memo(MOST_CALLERS)
        self._known = Remembered(self._load, clock, most=MOST_KNOWN)
        self._addresses: Memo[Site, Address] = Memo(2 * MOST_KNOWN)
        self._looks: Counter[str] = Counter()

    async def find(self, address: Address, *, caller: str) -> Introduced:
        """How an agent is called; `caller` is who has it looked for."""
        site = self._site(address)
        self._addresses.keep(site, address)
        if self._looks[caller] >= MOST_LOOKS:
            raise TooManyCalls("addresses that are looked for", limit=MOST_LOOKS)
        self._looks[caller] += 1
        fetching = self._fetching.get(caller)
        if fetching is None:
            fetching = self._fetching.keep(caller, Fetching(self._http, at_once=MOST_LOOKS))
        token = _LOOKING.set(fetching)
        try:
            found = await self._known.find(site)
            if found.value is None:
                found = await self._known.find(site, after=NEEDED_SECONDS)
        finally:
            _LOOKING.reset(token)
            self._looks[caller] -= 1
            if not self._looks[caller]:
                del self._looks[caller]
        if found.value is not None:
            return found.value
        fault = found.fault or found.absent
        if fault is None:
            raise PeerAgentNotFound(f"{address.domain} tells nothing of {address}")
        raise PeerUnreachable(fault)

    async def close(self) -> None:
        """End what is being fetched."""
        await self._known.close()

    def _site(self, address: Address) -> Site:
        base, domain = self._found_at.get(address.domain), address.domain
        base = f"https://{domain}" if base is None else base
        kind: Literal["named", "learned"] = "learned" if base.startswith("https://") else "named"
        return Site(base.rstrip("/") + webfinger.question_of(address), kind, domain)

    async def _load(self, site: Site) -> tuple[Introduced, float]:
        address, is_named = self._addresses[site], site.kind == "named"
        page = await _LOOKING.get().fetch(
            site, "", accept=webfinger.ACCEPT, redirects=0 if is_named else 1
        )
        url = webfinger.read_card_url(page.body, address)
        card = read_card(await self._page(url, site), address)
        self._check(card.interfaces[0].url, site)
        found = Introduced(card=card, keys=await self._keys(site), is_named=is_named)
        return found, HOLDS_SECONDS if page.max_age is None else float(page.max_age)

    async def _page(self, url: str, site: Site) -> bytes:
        self._check(url, site)
        return await _LOOKING.get().page(Site(url, site.kind), "")

    def _check(self, url: str, site: Site) -> None:
        """Refuse what leads to plain http, or, where the operator wrote it down, elsewhere."""
        if site.kind == "named":
            if _origin(url) != _origin(site.url):
                raise PeerUnreachable("it leads elsewhere than where its domain is found")
        elif not url.startswith("https://"):
            raise PeerUnreachable("it leads to an address without https")

    async def _keys(self, site: Site) -> frozenset[bytes]:
        """The keys of an organisation; none where it publishes none."""
        scheme, host = _origin(site.url)
        try:
            home = Site(f"{scheme}://{host}", site.kind)
            body = await _LOOKING.get().page(home, _KEYS_PATH)
            found = frozenset(read_keys(body).values())
        except NotPublished:
            return frozenset()
        except KeysInvalid:
            raise PeerUnreachable("its keys cannot be read") from None
        if len(found) > MOST_KEYS:
            raise PeerUnreachable(f"it publishes more than {MOST_KEYS} keys")
        return found


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()
