"""The keys of senders: those that the operator wrote down, and those that cards show (R14).

Law 1. A key that was written down wins: a sender that has one is never looked up elsewhere.
Law 2. Keys come from the sender's own host over https, or from where the operator says that the
       peer is. Nothing else that a request names is ever fetched: no keyid, and no host of one
       label.
Law 3. A key is taken by its keyid. One that its owner has ended is refused, and so is one that has
       passed its end. A card with a weak key, or with one keyid twice, is not believed at all.
Law 4. Unknown keyids lead to at most one fetch a minute for each sender. A listed peer that has
       shown us all that we were asked for is asked sooner, once: it may have rotated its key (A24).
Law 5. What can no longer be fetched holds until its end; then nothing of that sender is believed.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from typing import Final

from msgspec import Struct

from carnet.core.people.address import AGENT, check_domain
from carnet.errors import (
    AddressInvalid,
    KeyRevoked,
    KeyUnknown,
    Overloaded,
    PeerUnreachable,
)
from carnet.ports.trust.keys import NotLearned, OwnKey, OwnKeys, PinnedKey, PinnedKeys
from carnet.ports.trust.trust import Peers
from carnet.ports.world.clock import Clock
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.peers.cards import (
    AT_ONCE,
    CARD_PATH,
    CARNET_PATH,
    FAILED_SECONDS,
    NEEDED_SECONDS,
    QUEUE,
    Fetching,
    Found,
    NotPublished,
    PageAbsent,
    Remembered,
    Site,
)
from carnet.wire import travel
from carnet.wire.crypto.jwks import KeysInvalid, read_keys
from carnet.wire.dialects import samvad

logger = logging.getLogger("carnet.runtime")

MOST_SENDERS: Final = 4096
JWKS_PATH: Final = "/.well-known/jwks.json"
JWKS_SECONDS: Final = 300.0  # that a set of keys holds
EARLY_SECONDS: Final = 5.0  # for a listed peer whose page has not been found lacking
MOST_WAITING: Final = 1024  # requests that nobody has vouched for yet, of each kind of site


class LearnedKey(Struct, frozen=True):
    """A key as its owner shows it."""

    public: bytes
    active: bool
    not_after: int | None = None  # microseconds since the epoch

    def holds(self, now: int) -> bool:
        """Whether its owner honours what it signed."""
        return self.active and (self.not_after is None or self.not_after > now)


Learned = Mapping[str, LearnedKey]  # by keyid


class _Holder(Struct, frozen=True):
    """Who holds the keys of a sender, and where they are shown."""

    identity: str
    site: Site | None  # None: never fetched


class Ring:
    """The one place that knows whose key is whose."""

    def __init__(
        self,
        *,
        pinned: PinnedKeys,
        peers: Peers,
        http: HttpClient,
        clock: Clock,
        own: tuple[str, OwnKeys] | None = None,
        at_once: int = AT_ONCE,
        queue: int = QUEUE,
    ) -> None:
        """Start with what is written down.

        Args:
            pinned: The keys that the operator wrote down.
            peers: Where the peers are.
            http: Fetches the pages that keys are published on.
            clock: Time that never jumps, for how long a card holds.
            own: Our own domain and keys: what we signed ourselves is not looked up elsewhere.
            at_once: How many cards are fetched at once.
            queue: How many requests may wait for that.
        """
        self._pinned = pinned
        self._own = own
        self._peers = peers
        self._fetching = Fetching(http, at_once=at_once, queue=queue)
        self._learned = Remembered(self._load, clock, most=MOST_SENDERS)
        self._versions: dict[Site, int] = {}  # of peers alone, of which there are few
        self._plain: set[Site] = set()  # peers that showed a card and are no Carnets
        self._lacking: dict[Site, float] = {}  # peers' pages that lacked a keyid when they came
        self._waiting = {"named": 0, "learned": 0}

    def find(self, sender: str, keyid: str, now: int) -> bytes:
        """The public key of a sender; see `ports.trust.keys.KeyRing`."""
        if self._own is not None and sender == AGENT + self._own[0]:
            return _of_own(self._own[1].published(now), keyid, sender)
        pins = self._pinned.of(sender)
        if pins:
            return _of_pinned(pins, keyid, sender)
        holder = self._holder(sender)
        pins = self._pinned.of(holder.identity)
        if pins:
            return _of_pinned(pins, keyid, sender)
        if holder.site is None:
            raise KeyUnknown("a host that is never asked", sender=sender)
        key = self._of_learned(holder.site, keyid, sender)
        if not key.holds(now):
            raise KeyRevoked
        return key.public

    def every(self, sender: str, now: int) -> Sequence[bytes]:
        """All keys of a sender that hold; see `ports.trust.keys.KeyRing`."""
        if self._own is not None and sender == AGENT + self._own[0]:
            return [key.public for key in self._own[1].published(now) if key.state != "revoked"]
        holder = self._holder(sender)
        pins = self._pinned.of(sender) or self._pinned.of(holder.identity)
        if pins:
            return [pin.public for pin in pins if pin.revoked is None]
        if holder.site is None:
            raise KeyUnknown("a host that is never asked", sender=sender)
        _, learned = self._shown(holder.site, sender)
        return [key.public for key in learned.values() if key.holds(now)]

    def site_of(self, sender: str) -> Site | None:
        """Where a sender publishes; None for ourselves, and for whose keys were written down."""
        holder = self._holder(sender)
        is_own = self._own is not None and sender == AGENT + self._own[0]
        if is_own or self._pinned.of(sender) or self._pinned.of(holder.identity):
            return None
        return holder.site

    def is_pinned(self, sender: str) -> bool:
        """Whether a key was written down for this very sender; see `ports.trust.keys.KeyRing`."""
        return bool(self._pinned.of(sender))

    def _of_learned(self, site: Site, keyid: str, sender: str) -> LearnedKey:
        found, learned = self._shown(site, sender)
        key = learned.get(keyid)
        if key is not None:
            return key
        if self._may_ask_again(site, found):  # it may have been added since
            raise NotLearned
        raise KeyUnknown("no key of that keyid in the card", sender=sender)

    def _shown(self, site: Site, sender: str) -> tuple[Found[Learned], Learned]:
        """The page of a site, and the keys on it."""
        found = self._learned.peek(site)
        if found is None:
            raise NotLearned
        if found.fault is not None:
            raise PeerUnreachable(found.fault)
        if found.value is None:
            raise KeyUnknown("nothing is published there", sender=sender)
        return found, found.value

    def _may_ask_again(self, site: Site, found: Found[Learned]) -> bool:
        """Whether a page is worth another look for a keyid that it does not show.

        A flood of made-up keyids meets a page that has just come, and has it wait its minute.
        """
        if site.kind == "learned" or self._learned.is_due(found):
            return self._learned.is_due(found)
        if self._learned.is_due(found, EARLY_SECONDS):
            return self._lacking.get(site) != found.tried
        self._lacking[site] = found.tried
        return False

    async def learn(self, sender: str) -> None:
        """Fetch what a sender publishes; see `ports.trust.keys.KeyRing`."""
        site = self._holder(sender).site
        if site is None:
            return
        if self._waiting[site.kind] >= MOST_WAITING:  # also of those who wait for one fetch
            raise Overloaded("too many wait for the keys of senders")
        self._waiting[site.kind] += 1
        try:
            early = site.kind == "named"  # `find` has judged whether it is too early
            await self._learned.find(site, after=EARLY_SECONDS if early else FAILED_SECONDS)
        finally:
            self._waiting[site.kind] -= 1

    async def need(self, sender: str) -> None:
        """Fetch it anew for a call of ours; see `ports.trust.keys.KeyRing`."""
        site = self._holder(sender).site
        if site is not None:
            await self._learned.find(site, after=NEEDED_SECONDS)

    async def close(self) -> None:
        """End what is being fetched."""
        await self._learned.close()

    def _holder(self, sender: str) -> _Holder:
        """A peer holds the keys of all its agents; anybody else their own."""
        domain = sender.removeprefix(AGENT)
        parent = domain.partition(".")[2]
        for known in (domain, parent):
            peer = self._peers.find(known)
            if peer is not None:
                return _Holder(f"{AGENT}{known}", Site(peer.url, "named", known))
        try:
            check_domain(domain)
        except AddressInvalid:  # one label, or an address
            return _Holder(sender, None)
        return _Holder(sender, Site(f"https://{domain}", "learned", domain))

    async def _load(self, site: Site) -> tuple[Learned, float]:
        if site.kind == "named" and site not in self._plain:
            try:
                page = await self._fetching.page(site, CARNET_PATH)
            except NotPublished:
                pass  # then it is no Carnet
            else:
                return self._of_carnet(site, page)
        self._plain.discard(site)
        try:
            page = await self._fetching.page(site, CARD_PATH)
        except PageAbsent:  # who speaks no SAMVAD may show its keys alone
            return await self._of_set(site)
        with _believed(site):
            learned = _of_card(site, samvad.read_card(page))
        if site.kind == "named":
            self._plain.add(site)
        return learned

    async def _of_set(self, site: Site) -> tuple[Learned, float]:
        page = await self._fetching.page(site, JWKS_PATH)
        with _believed(site):
            try:
                keys = read_keys(page)
            except KeysInvalid as error:
                raise PeerUnreachable(str(error)) from None
        return {kid: LearnedKey(public, active=True) for kid, public in keys.items()}, JWKS_SECONDS

    def _of_carnet(self, site: Site, page: bytes) -> tuple[Learned, float]:
        with _believed(site):
            shown = travel.read_well_known(page)
            if shown.domain != site.domain:
                raise PeerUnreachable("carnet.json is that of another domain")
            if shown.version < self._versions.get(site, 0):
                raise PeerUnreachable("carnet.json is older than one that was seen")
        self._versions[site] = shown.version
        keys = {key.kid: LearnedKey(key.key, key.active, key.not_after) for key in shown.keys}
        return keys, samvad.DEFAULT_TTL


@contextmanager
def _believed(site: Site) -> Iterator[None]:
    """A page that came and is not to be believed shows no key at all (A21)."""
    try:
        yield
    except PeerUnreachable as error:
        logger.warning("keys not learned", extra={"peer": site.domain, "detail": str(error)})
        raise NotPublished from None


def _of_card(site: Site, card: samvad.Card) -> tuple[Learned, float]:
    if site.kind == "learned" and card.id != f"{AGENT}{site.domain}":
        raise PeerUnreachable("the card is that of another agent")
    return {key.kid: LearnedKey(key.public, key.active) for key in card.keys}, card.ttl


def _of_own(keys: Sequence[OwnKey], keyid: str, sender: str) -> bytes:
    for key in keys:
        if key.kid == keyid:
            if key.state == "revoked":
                raise KeyRevoked
            return key.public
    raise KeyUnknown("no key of ours has that keyid", sender=sender)


def _of_pinned(pins: Sequence[PinnedKey], keyid: str, sender: str) -> bytes:
    """The key written down for this keyid, else the one for any.

    Of several for any keyid the one is meant that a Carnet would give this name.
    """
    match pins:
        case [pin] if pin.kid in {keyid, None} and pin.revoked is None:
            return pin.public
    fitting = [pin for pin in pins if pin.kid == keyid] or [pin for pin in pins if pin.kid is None]
    if len(fitting) > 1:
        fitting = [pin for pin in fitting if _fingerprint(pin.public) == keyid] or fitting
    for pin in fitting:
        if pin.revoked is None:
            return pin.public
    if fitting:
        raise KeyRevoked
    raise KeyUnknown("no key of that keyid is written down", sender=sender)


def _fingerprint(public: bytes) -> str:
    return f"k-{sha256(public).hexdigest()[:12]}"
