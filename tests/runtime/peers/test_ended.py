"""What issuers have ended: their signed lists, how old those may be, and what comes without one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import pytest

from carnet.core.people.delegation import Delegation, Freshness
from carnet.core.people.proof import Spending
from carnet.errors import DelegationInvalid
from carnet.ports.trust.keys import PinnedKey
from carnet.ports.trust.trust import Peer as Known
from carnet.runtime.peers.ended import ENDED_PATH, EndedLists
from carnet.runtime.peers.keyring import Ring
from carnet.testing.clock import FakeClock
from carnet.testing.trust import MemoryPeers
from carnet.wire import travel
from carnet.wire.crypto import ed25519
from tests.runtime.peer import Line, Peer, opened, reply
from tests.runtime.peers.test_keyring import MISSING, ONE, Pins, carnet_json, key, seed, where

NAMES = ("globex.example", "initech.example")
GLOBEX = f"agent://{NAMES[0]}"
PAYS = Spending(money=5, currency="credits")
EACH: tuple[Freshness, ...] = ("pay", "all", "none")
Shown = Literal["list", "none", "broken", "down"]


def a_delegation(
    id: str = "d1",
    *,
    issuer: str = GLOBEX,
    budget: Spending | None = PAYS,
    parent: Delegation | None = None,
    ours: bool = True,
) -> Delegation:
    return Delegation(
        issuer=issuer,
        subject="agent://bob.example",
        scope=("*",),
        hops=1,
        issued=0,
        expires=2**40,
        token_id=id,
        budget=budget,
        parent=parent,
        is_ours=ours,
    )


class Issuer:
    """A Carnet that shows its keys, and a list of what it has ended."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.ids: set[str] = set()
        self.shown: Shown = "list"
        self.domain, self.signer = "globex.example", "one"
        self.whole, self.life = True, 60
        self.asked = 0

    async def script(self, line: Line) -> None:
        while True:
            request = await line.request()
            if f"GET {ENDED_PATH} " in request.lines[0]:
                self.asked += 1
                await line.say(self.page())
            elif "/carnet.json" in request.lines[0]:
                shown = self.domain if self.domain in NAMES else NAMES[0]
                await line.say(reply(carnet_json(ONE, domain=shown)))
            else:
                await line.say(MISSING)

    def page(self) -> bytes:
        if self.shown == "none":
            return MISSING
        if self.shown == "down":
            return reply(b"{}", status=503)
        if self.shown == "broken":
            return reply(b'{"ended": "x"}')
        now = self.clock.wall_us() // 1_000_000
        ended = travel.EndedList(
            domain=self.domain,
            issued=now,
            expires=now + self.life,
            ids=frozenset(self.ids),
            whole=self.whole,
        )
        return reply(
            travel.write_ended(
                ended, kid="k1", sign=lambda message: ed25519.sign(seed(self.signer), message)
            )
        )


class Scene:
    """Lists that know one peer."""

    def __init__(self, lists: EndedLists, issuer: Issuer, clock: FakeClock) -> None:
        self.lists = lists
        self.issuer = issuer
        self.clock = clock

    async def holds(self, delegation: Delegation, freshness: Freshness = "pay") -> bool:
        try:
            await self.lists.check(delegation, freshness)
        except DelegationInvalid:
            return False
        return True


@asynccontextmanager
async def scene(*pins: PinnedKey, shown: Shown = "list") -> AsyncIterator[Scene]:
    clock = FakeClock()
    issuer = Issuer(clock)
    issuer.shown = shown
    async with Peer(issuer.script) as peer, opened() as http:
        peers = MemoryPeers(*(Known(domain=name, url=where(peer)) for name in NAMES))
        pinned: Any = Pins(*pins)
        ring = Ring(pinned=pinned, peers=peers, http=http, clock=clock)
        lists = EndedLists(ring, http, clock)
        try:
            yield Scene(lists, issuer, clock)
        finally:
            await lists.close()
            await ring.close()


async def test_what_its_issuer_has_ended_is_refused_with_all_below_it() -> None:
    async with scene() as at:
        at.issuer.ids = {"d1"}
        first = a_delegation()
        below = a_delegation("x", issuer="agent://nobody", parent=first)
        with pytest.raises(DelegationInvalid) as refused:
            await at.lists.check(below, "none")
        assert refused.value.public_facts() == {"link": 1, "reason": "it was ended"}
        assert not await at.holds(a_delegation(budget=None))
        assert await at.holds(a_delegation("d2"))
        assert at.issuer.asked == 1


async def test_a_list_is_a_minute_old_where_a_delegation_may_pay_and_older_where_not() -> None:
    async with scene() as at:
        assert await at.holds(a_delegation())
        at.issuer.ids = {"d1"}
        at.clock.advance(59)
        assert await at.holds(a_delegation())
        at.clock.advance(1)
        assert await at.holds(a_delegation(budget=None))
        assert not await at.holds(a_delegation())
        assert at.issuer.asked == 2
        at.clock.advance(300)
        assert not await at.holds(a_delegation(budget=None))
        assert at.issuer.asked == 2


@pytest.mark.parametrize("shown", ["broken", "down", "none"])
async def test_without_a_list_what_may_pay_is_refused_unless_the_agent_says_otherwise(
    shown: Shown,
) -> None:
    async with scene(shown=shown) as at:
        pays, plain = a_delegation(), a_delegation(budget=None)
        assert [await at.holds(pays, each) for each in EACH] == [
            *(False, False, True),
        ]
        assert [await at.holds(plain, each) for each in EACH] == [
            *(True, False, True),
        ]


async def test_a_gateway_that_publishes_no_list_ends_none_of_the_tokens_of_the_sdks() -> None:
    async with scene(shown="none") as at:
        assert await at.holds(a_delegation(ours=False), "all")
    async with scene(shown="down") as at:
        assert not await at.holds(a_delegation(ours=False))


@pytest.mark.parametrize(
    "change",
    [{"domain": "b.example"}, {"signer": "two"}, {"whole": False}, {"life": -600}],
)
async def test_a_list_of_another_or_that_is_old_or_not_whole_tells_nothing(
    change: dict[str, Any],
) -> None:
    async with scene() as at:
        for name, value in change.items():
            setattr(at.issuer, name, value)
        assert not await at.holds(a_delegation())
        assert await at.holds(a_delegation(), "none")


async def test_a_list_that_came_before_the_issuer_went_away_is_good_for_its_minute() -> None:
    async with scene() as at:
        assert await at.holds(a_delegation())
        at.issuer.shown = "down"
        at.clock.advance(60)
        assert await at.holds(a_delegation())  # a minute old, to the second
        at.clock.advance(1)
        assert not await at.holds(a_delegation())
        assert await at.holds(a_delegation(budget=None))


async def test_the_lists_of_many_others_make_none_count_as_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One issuer costs another nothing: when a list came is known as long as the list is."""
    async with scene() as at:
        monkeypatch.setattr("carnet.runtime.peers.ended.MOST_LISTS", 1)
        assert await at.holds(a_delegation())
        at.issuer.domain = NAMES[1]
        assert await at.holds(a_delegation(issuer=f"agent://{NAMES[1]}"))
        at.clock.advance(59)
        assert await at.holds(a_delegation())
        assert at.issuer.asked == 2


async def test_whose_key_was_written_down_is_asked_for_nothing() -> None:
    pin = PinnedKey(sender=GLOBEX, public=key("one"))
    async with scene(pin) as at:
        at.issuer.ids = {"d1"}
        assert await at.holds(a_delegation(), "all")
        assert await at.holds(a_delegation(issuer="agent://client-x"), "all")
        assert at.issuer.asked == 0
