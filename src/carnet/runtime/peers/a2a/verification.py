"""Whether the signature of an A2A card is one to believe: whose key it is, decides.

Law 1. A key that the operator wrote down for the host of a card wins: where there is one, nothing
       else is asked.
Law 2. Else a key is believed to be the host's that the host itself shows: in its `carnet.json`, or
       in the set of keys that the card names, if that is of the very same origin. That proves no
       more than that nobody changed the card since its host signed it.
Law 3. A key that lies elsewhere is never fetched because a card says so.
Law 4. A key that its owner has ended, or whose time is over, verifies nothing.
Law 5. Whom we call by a card must not have another one: a signature that does not hold is a card of
       somebody else's. Where the operator wrote a key down, nothing but its signature will do.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct

from carnet.core.people.address import AGENT
from carnet.errors import CarnetError, PeerUnreachable
from carnet.ports.trust.keys import PinnedKey
from carnet.ports.world.clock import Clock
from carnet.runtime.peers.cards import CARNET_PATH, Fetching, NotPublished, Site
from carnet.wire import travel
from carnet.wire.crypto.jwks import KeysInvalid, read_keys
from carnet.wire.dialects.a2a.card import A2aCard, CardVerdict, named_keys, verify_card

KeySource = Literal["pinned", "carnet.json", "jku"]
MOST_SETS: Final = 2  # sets of keys that are fetched for one card


class JudgedCard(Struct, frozen=True, kw_only=True):
    """What the signatures of a card are worth, and where the key comes from that says so."""

    verdict: CardVerdict
    source: KeySource | None = None


class CardVerification:
    """Finds the keys that cards are verified with."""

    def __init__(
        self, fetching: Fetching, pinned: Callable[[str], Sequence[PinnedKey]], clock: Clock
    ) -> None:
        """`pinned` gives the keys that the operator wrote down for an identity."""
        self._fetching = fetching
        self._pinned = pinned
        self._clock = clock

    async def check(self, card: A2aCard, site: Site) -> None:
        """Raise PeerUnreachable for a card that nobody may be called by."""
        is_pinned = bool(self._pinned(_identity(site)))
        if not card.signatures and not is_pinned:
            return
        state = (await self.judge(card, site)).verdict.state
        if state == "broken" or (is_pinned and state != "verified"):
            raise PeerUnreachable(f"the signature of its card does not hold ({state})")

    async def judge(self, card: A2aCard, site: Site) -> JudgedCard:
        """Judge a card that was read at a site."""
        if not card.signatures:
            return JudgedCard(verdict=verify_card(card.members, (), {}))
        pins = self._pinned(_identity(site))
        if pins:
            return _judged(card, _of_pins(card, pins), "pinned")
        judged = _judged(card, await self._of_carnet(site), "carnet.json")
        if judged.verdict.state != "key-unknown":
            return judged
        found = _judged(card, await self._of_sets(card, site), "jku")
        return found if found.verdict.state != "key-unknown" else judged

    async def _of_carnet(self, site: Site) -> dict[str, bytes]:
        """The keys that a Carnet shows at the origin of a card."""
        try:
            page = await self._fetching.page(_origin(site), CARNET_PATH)
            shown = travel.read_well_known(page)
        except (NotPublished, CarnetError):
            return {}
        now = self._clock.wall_us()
        return {
            key.kid: key.key
            for key in shown.keys
            if key.active and (key.not_after is None or key.not_after > now)
        }

    async def _of_sets(self, card: A2aCard, site: Site) -> dict[str, bytes]:
        """The keys in the sets that a card names, of its own origin alone."""
        origin, found = _origin(site), dict[str, bytes]()
        named = {each.jku for each in named_keys(card.signatures) if each.jku is not None}
        own = sorted(url for url in named if url.startswith(f"{origin.url}/"))
        for url in own[:MOST_SETS]:
            try:
                body = await self._fetching.page(origin, url.removeprefix(origin.url))
                found |= read_keys(body)
            except (NotPublished, CarnetError, KeysInvalid):
                continue
        return found


def _judged(card: A2aCard, keys: Mapping[str, bytes], source: KeySource) -> JudgedCard:
    verdict = verify_card(card.members, card.signatures, keys)
    has_key = verdict.kid is not None and verdict.kid in keys
    return JudgedCard(verdict=verdict, source=source if has_key else None)


def _of_pins(card: A2aCard, pins: Sequence[PinnedKey]) -> dict[str, bytes]:
    """The pinned keys by the names that the card uses; one without a name matches any."""
    live = [pin for pin in pins if pin.revoked is None]
    any_name = [pin.public for pin in live if pin.kid is None]
    unnamed = {each.keyid: any_name[0] for each in named_keys(card.signatures) if any_name}
    return unnamed | {pin.kid: pin.public for pin in live if pin.kid is not None}


def _identity(site: Site) -> str:
    """Under which identity a key of its host is written down."""
    return f"{AGENT}{urlsplit(site.url).hostname}"


def _origin(site: Site) -> Site:
    parts = urlsplit(site.url)
    return Site(f"{parts.scheme}://{parts.netloc}", site.kind, site.domain)
