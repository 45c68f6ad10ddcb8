"""What others have ended of what they delegated or issued: their signed lists, fetched (R59).

Law 1. A list is fetched as a card is, from where the keys of its issuer are fetched. Whose keys the
       operator wrote down is asked for nothing: the operator ends such a key.
Law 2. Where a delegation may pay, a list is at most a minute old; else as old as a card may be.
Law 3. A list that cannot be had, is not signed by its domain, or does not hold all, tells nothing.
       What comes of that the agent says: by default what may pay is refused and the rest is not.
Law 4. Who publishes no list ends nothing: a gateway of another kind. A token of our own type is
       from a Carnet, which has one.
Law 5. A voucher pays: it holds only where a list of the last minute does not have it.
"""

from typing import Final

from msgspec import Struct

from carnet.core.people.address import AGENT
from carnet.core.people.delegation import SKEW_SECONDS, Delegation, Freshness
from carnet.core.people.proof import SECOND_US
from carnet.core.voucher import Voucher
from carnet.errors import CarnetError, DelegationInvalid, PaymentRefused, PeerUnreachable
from carnet.ports.trust.keys import NotLearned
from carnet.ports.world.clock import Clock
from carnet.ports.world.http_client import HttpClient
from carnet.runtime.peers.cards import Fetching, Found, Remembered, Site
from carnet.runtime.peers.keyring import Ring
from carnet.wire import travel
from carnet.wire.crypto import ed25519

ENDED_PATH: Final = "/.well-known/carnet-ended.json"
FRESH_SECONDS: Final = 60.0  # for a delegation that may pay
USUAL_SECONDS: Final = 600.0
MOST_LISTS: Final = 1024


class FetchedList(Struct, frozen=True):
    """A list, and when it came, by the clock that never jumps."""

    shown: travel.EndedList
    came: float


class EndedLists:
    """Asks those who delegated something whether it holds."""

    def __init__(self, ring: Ring, http: HttpClient, clock: Clock) -> None:
        """`ring` knows the keys of issuers, and where they are shown."""
        self._ring = ring
        self._clock = clock
        self._fetching = Fetching(http)
        self._lists = Remembered(self._load, clock, most=MOST_LISTS)

    async def check(self, delegation: Delegation, freshness: Freshness) -> None:
        """Refuse a delegation with a link that its issuer has ended."""
        may_pay = delegation.may_pay
        for number, link in enumerate(delegation.chain(), 1):
            site = self._ring.site_of(link.issuer)
            if site is None or link.token_id is None:
                continue
            found = await self._found(site, may_pay=may_pay or freshness == "all")
            known = None if found is None else found.value
            if known is not None and link.token_id in known.shown.ids:
                raise DelegationInvalid(reason="it was ended", link=number)
            if not _must_know(freshness, may_pay=may_pay):
                continue
            is_none = found is not None and found.fault is None and found.value is None
            if (is_none and link.is_ours) or not (is_none or self._tells(known)):
                reason = "whether it was ended cannot be learned now"
                raise DelegationInvalid(reason=reason, link=number)

    async def check_voucher(self, voucher: Voucher, /) -> None:
        """Refuse a voucher that its issuer has revoked, or of whom that cannot be learned."""
        site = self._ring.site_of(AGENT + voucher.issuer)
        if site is None:
            return
        found = await self._found(site, may_pay=True)
        known = None if found is None else found.value
        if known is not None and voucher.id in known.shown.ids:
            raise PaymentRefused(reason="revoked")
        if not self._tells(known):
            raise PaymentRefused(reason="unsure")

    async def _found(self, site: Site, *, may_pay: bool) -> Found[FetchedList] | None:
        """What is known of a site; None where nobody could be asked."""
        try:
            return await self._lists.find(site, after=FRESH_SECONDS if may_pay else USUAL_SECONDS)
        except CarnetError:  # too many are asked for, or it may not be asked
            return None

    def _tells(self, known: FetchedList | None) -> bool:
        """Whether a list is there, and tells all of the last minute."""
        if known is None or not known.shown.whole:
            return False
        return self._clock.monotonic() - known.came <= FRESH_SECONDS

    async def _load(self, site: Site) -> tuple[FetchedList, float]:
        shown = travel.read_ended(await self._fetching.page(site, ENDED_PATH))
        if shown.domain != site.domain:
            raise PeerUnreachable("its list of ended delegations is that of another domain")
        now = self._clock.wall_us()
        if shown.expires * SECOND_US + SKEW_SECONDS * SECOND_US <= now:
            raise PeerUnreachable("its list of ended delegations is too old")
        key = await self._key(shown, now)
        if not ed25519.holds(key, shown.signed, shown.signature):
            raise PeerUnreachable("its list of ended delegations is not signed by its key")
        return FetchedList(shown, self._clock.monotonic()), USUAL_SECONDS

    async def _key(self, shown: travel.EndedList, now: int) -> bytes:
        issuer = f"agent://{shown.domain}"
        try:
            return self._ring.find(issuer, shown.keyid, now)
        except NotLearned:
            await self._ring.learn(issuer)
        try:
            return self._ring.find(issuer, shown.keyid, now)
        except NotLearned:
            raise PeerUnreachable("the key of its list cannot be learned") from None

    async def close(self) -> None:
        """End what is being fetched."""
        await self._lists.close()


def _must_know(freshness: Freshness, *, may_pay: bool) -> bool:
    return freshness == "all" or (freshness == "pay" and may_pay)
