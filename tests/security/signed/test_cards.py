"""Where keys are looked for, and for how long they hold: the key ring over the real HTTP client.

In this process, so that names lead where the test says and the clock is moved by hand.
"""

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from carnet.errors import KeyRevoked, KeyUnknown, PeerUnreachable
from carnet.ports.trust.keys import NotLearned, PinnedKey
from carnet.ports.trust.trust import Peer
from carnet.runtime.egress.client import EgressClient
from carnet.runtime.peers.keyring import Ring
from carnet.testing.clock import FakeClock
from carnet.testing.trust import MemoryPeers
from tests.security.support.cards import CardHost, card, key_of, says, shows
from tests.support.signing.signed import Sender

TTL = 120


class NoPins:
    """An operator who wrote nothing down."""

    def of(self, _: str) -> list[PinnedKey]:
        return []


class House:
    """A ring, the clock it reads, and what was looked up and dialled on its behalf."""

    def __init__(self, cards: CardHost, monkeypatch: pytest.MonkeyPatch) -> None:
        self.clock = FakeClock()
        self.addresses: list[str] = []
        self.looked_up: list[str] = []
        self.dialled: list[object] = []
        self.http = EgressClient(lookup=self._lookup)
        peer = Peer(domain="kept.example", url=f"{cards.url}/kept")
        self.ring = Ring(
            pinned=NoPins(),  # type: ignore[arg-type]  # nothing else of it is asked
            peers=MemoryPeers(peer),
            http=self.http,
            clock=self.clock,
        )
        loop = asyncio.get_running_loop()
        for name in ("create_connection", "sock_connect"):
            monkeypatch.setattr(loop, name, self._noting(getattr(loop, name)), raising=False)

    async def _lookup(self, host: str, port: int) -> list[str]:
        self.looked_up.append(host)
        assert port
        return self.addresses

    def _noting(self, connect: Callable[..., object]) -> Callable[..., object]:
        def noting(*args: object, **more: object) -> object:
            self.dialled.append(args)
            return connect(*args, **more)

        return noting

    async def find(self, sender: Sender) -> bytes:
        """Ask as admission does."""
        now = self.clock.wall_us()
        try:
            return self.ring.find(sender.identity, sender.kid, now)
        except NotLearned:
            await self.ring.learn(sender.identity)
            return self.ring.find(sender.identity, sender.kid, now)


@pytest.fixture
async def house(cards: CardHost, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    house = House(cards, monkeypatch)
    yield house
    await house.ring.close()
    await house.http.close()


INWARD = [
    ["127.0.0.1"],
    ["127.0.0.2"],
    ["0.0.0.0"],  # noqa: S104  an address to be refused
    ["10.0.0.1"],
    ["172.16.0.1"],
    ["192.168.1.1"],
    ["169.254.169.254"],
    ["100.64.0.1"],
    ["224.0.0.1"],
    ["::1"],
    ["::ffff:127.0.0.1"],
    ["::127.0.0.1"],
    ["64:ff9b::7f00:1"],
    ["2002:7f00:1::"],
    ["fc00::1"],
    ["fe80::1"],
    ["8.8.8.8", "127.0.0.1"],  # outward and inward
    ["2606:4700::1", "::1"],
]


@pytest.mark.parametrize("addresses", INWARD, ids=str)
async def test_a_sender_whose_name_leads_inward_is_asked_for_no_card(
    house: House, addresses: list[str]
) -> None:
    """A63: not one packet; and what lies there is not told."""
    house.addresses = addresses
    with pytest.raises(KeyUnknown) as refused:
        await house.find(Sender("agent://inward.example"))
    assert house.dialled == []
    assert house.looked_up == ["inward.example"]
    assert not any(address in str(refused.value) for address in addresses)


async def test_a_name_that_leads_elsewhere_the_next_time_is_judged_anew(house: House) -> None:
    """A63: DNS rebinding; what was judged once is not believed for ever."""
    for address in ("127.0.0.1", "10.0.0.1"):
        house.addresses = [address]
        with pytest.raises(KeyUnknown):
            await house.find(Sender("agent://rebound.example"))
        house.clock.advance(61)
    assert len(house.looked_up) == 2
    assert house.dialled == []


@pytest.mark.parametrize(
    "host",
    ["localhost", "client-x", "metadata.internal", "printer.local", "a.localhost", "db.corp"],
)
async def test_an_inner_name_is_not_even_looked_up(house: House, host: str) -> None:
    """A63, R14."""
    house.addresses = ["127.0.0.1"]
    with pytest.raises(KeyUnknown):
        await house.find(Sender(f"agent://{host}"))
    assert house.looked_up == []
    assert house.dialled == []


async def test_a_card_holds_until_its_end_and_no_longer(house: House, cards: CardHost) -> None:
    """F33: while its host is down the known key is used, and then nothing is believed."""
    sender = Sender("agent://kept.example")
    cards.answers["kept"] = shows(card(sender.identity, key_of(sender), cardTTL=TTL))
    assert await house.find(sender) == sender.public_raw
    cards.answers["kept"] = says(b"", status=503)
    for _ in range(3):
        house.clock.advance(TTL / 4)
        assert await house.find(sender) == sender.public_raw
    house.clock.advance(TTL)
    with pytest.raises((KeyUnknown, PeerUnreachable)):
        await house.find(sender)
    cards.answers["kept"] = shows(card(sender.identity, key_of(sender), cardTTL=TTL))
    house.clock.advance(61)
    assert await house.find(sender) == sender.public_raw


async def test_a_key_that_leaves_its_card_or_is_ended_there_is_refused_when_the_card_is_read_again(
    house: House, cards: CardHost
) -> None:
    """A23, R14: after the time that the card itself names."""
    old, new = Sender("agent://kept.example", "old"), Sender("agent://kept.example", "new")
    cards.answers["kept"] = shows(card(old.identity, key_of(old), cardTTL=TTL))
    assert await house.find(old) == old.public_raw
    ended = card(old.identity, key_of(old, active=False), key_of(new), cardTTL=TTL)
    cards.answers["kept"] = shows(ended)
    house.clock.advance(TTL + 1)
    with pytest.raises(KeyRevoked):
        await house.find(old)
    assert await house.find(new) == new.public_raw
    cards.answers["kept"] = shows(card(old.identity, key_of(new), cardTTL=TTL))
    house.clock.advance(TTL + 1)
    with pytest.raises(KeyUnknown):
        await house.find(old)


async def test_one_card_is_asked_for_once_a_minute_whatever_keyids_are_named(
    house: House, cards: CardHost
) -> None:
    """A24: by everybody together."""
    sender = Sender("agent://kept.example")
    cards.answers["kept"] = shows(card(sender.identity, key_of(sender), cardTTL=TTL))
    before = cards.fetches("kept")
    for minute in range(1, 4):
        strangers = [Sender(sender.identity, f"k-{minute}-{number}") for number in range(100)]
        for outcome in await asyncio.gather(*map(house.find, strangers), return_exceptions=True):
            assert isinstance(outcome, KeyUnknown)
        assert cards.fetches("kept") - before == minute
        house.clock.advance(61)
