"""Whose key is whose: pinned, learned from cards, revoked, and never fetched in vain."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from hashlib import sha256
from typing import Any

import pytest

from carnet.core.people.identity import CHAT
from carnet.errors import KeyRevoked, KeyUnknown, Overloaded, PeerUnreachable
from carnet.ports.trust.keys import KeyState, NotLearned, OwnKey, PinnedKey
from carnet.ports.trust.trust import Peer as Known
from carnet.runtime.peers.cards import NotPublished, Site
from carnet.runtime.peers.keyring import EARLY_SECONDS, MOST_WAITING, Ring
from carnet.testing.clock import FakeClock
from carnet.testing.trust import MemoryPeers
from carnet.testing.wait import until_so
from carnet.wire import travel
from carnet.wire.crypto import ed25519
from carnet.wire.dialects import samvad
from tests.runtime.peer import Line, Peer, answering, leading_to, opened, reply

GLOBEX = "agent://globex.example"
WEAK = bytes(32)  # a point of small order


def seed(name: str) -> bytes:
    return sha256(name.encode()).digest()


def key(name: str) -> bytes:
    return ed25519.public_of(seed(name))


def card(*keys: tuple[str, bytes, bool], ttl: int = 300, identity: str = GLOBEX) -> bytes:
    """A card that shows these keys, weak ones too."""
    page = json.loads(
        samvad.write_card(
            samvad.CardFacts(
                id=identity,
                name="globex",
                version="1",
                description="",
                url="https://globex.example",
                skills=(CHAT,),
                keys=(),
                requests_per_minute=60,
                requests_per_sender=60,
                ttl=ttl,
            )
        )
    )
    page["publicKeys"] = [
        {"kid": kid, "key": ed25519.write_public_key(raw), "active": active}
        for kid, raw, active in keys
    ]
    return json.dumps(page).encode()


def carnet_json(
    *keys: travel.PublishedKey, version: int = 1, domain: str = "globex.example"
) -> bytes:
    shown = travel.WellKnown(domain=domain, version=version, keys=keys)
    return travel.write_well_known(
        shown, kid=keys[0].kid, sign=lambda message: ed25519.sign(seed("one"), message)
    )


ONE = travel.PublishedKey(kid="k1", key=key("one"))
MISSING = reply(b"{}", status=404)


class Pins:
    """What the operator wrote down."""

    def __init__(self, *keys: PinnedKey) -> None:
        self.keys = list(keys)

    def of(self, sender: str) -> Sequence[PinnedKey]:
        return [pin for pin in self.keys if pin.sender == sender]


class Scene:
    """A key ring that knows one peer."""

    def __init__(self, ring: Ring, clock: FakeClock, pins: Pins) -> None:
        self.ring = ring
        self.clock = clock
        self.pins = pins

    async def find(self, keyid: str = "k1", sender: str = GLOBEX) -> bytes:
        """As the guard asks: learn what is not known, and ask once more."""
        try:
            return self.ring.find(sender, keyid, self.clock.wall_us())
        except NotLearned:
            await self.ring.learn(sender)
        return self.ring.find(sender, keyid, self.clock.wall_us())


@asynccontextmanager
async def scene(
    url: str, *pins: PinnedKey, lookup: Any = None, **more: Any
) -> AsyncIterator[Scene]:
    clock, written = FakeClock(), Pins(*pins)
    parts = {} if lookup is None else {"lookup": lookup}
    async with opened(**parts) as http:
        peers = MemoryPeers(Known(domain="globex.example", url=url))
        pinned: Any = written
        ring = Ring(pinned=pinned, peers=peers, http=http, clock=clock, **more)
        try:
            yield Scene(ring, clock, written)
        finally:
            await ring.close()


def publishing(*pages: bytes) -> Any:
    """A place that is no Carnet and shows these cards, one after another; the last for ever."""
    shown = iter(pages)
    latest = b""

    async def script(line: Line) -> None:
        nonlocal latest
        while True:
            asked = await line.request()
            if asked.lines[0].startswith("GET /.well-known/agent.json "):
                latest = next(shown, latest)
                await line.say(reply(latest))
            else:
                await line.say(MISSING)

    return script


def fetched(peer: Peer) -> int:
    """How often the card was asked for."""
    return sum(request.lines[0].split()[1].endswith("/agent.json") for request in peer.requests)


def where(peer: Peer) -> str:
    return f"http://127.0.0.1:{peer.port}"


# ---------------------------------------------------------------------- cards


async def test_a_key_is_learned_from_the_card_of_its_sender_and_matched_by_keyid() -> None:
    page = card(("k1", key("one"), True), ("k2", key("two"), True))
    async with Peer(publishing(page)) as peer, scene(where(peer)) as at:
        assert await at.find("k1") == key("one")
        assert await at.find("k2") == key("two")
        assert await at.find("k1", "agent://critic.globex.example") == key("one")
        with pytest.raises(KeyUnknown):
            await at.find("k3")
        assert fetched(peer) == 1


async def test_a_key_that_its_card_calls_inactive_is_revoked() -> None:
    page = card(("k1", key("one"), False), ("k2", key("two"), True))
    async with Peer(publishing(page)) as peer, scene(where(peer)) as at:
        with pytest.raises(KeyRevoked):
            await at.find("k1")
        assert await at.find("k2") == key("two")


async def test_a_key_that_was_rotated_out_ends_with_the_time_of_the_card() -> None:
    before, after = card(("k1", key("one"), True)), card(("k2", key("two"), True))
    async with Peer(publishing(before, after)) as peer, scene(where(peer)) as at:
        assert await at.find("k1") == key("one")
        at.clock.advance(299)
        assert await at.find("k1") == key("one")
        at.clock.advance(1)
        with pytest.raises(KeyUnknown):
            await at.find("k1")
        assert await at.find("k2") == key("two")


async def test_a_new_key_is_found_before_the_card_has_ended_but_not_at_every_request() -> None:
    before, after = card(("k1", key("one"), True)), card(("k2", key("two"), True))
    async with Peer(publishing(before, after)) as peer, scene(where(peer)) as at:
        await at.find("k1")
        for _ in range(1000):
            with pytest.raises(KeyUnknown):
                await at.find("k2")
        assert fetched(peer) == 1
        at.clock.advance(60)
        assert await at.find("k2") == key("two")
        assert fetched(peer) == 2


@pytest.mark.parametrize("weak", [WEAK, b"\x01" + bytes(31), b"\xed" + b"\xff" * 30 + b"\x7f"])
async def test_a_card_with_a_weak_key_is_refused_as_a_whole(weak: bytes) -> None:
    page = card(("k1", key("one"), True), ("k2", weak, True))
    async with Peer(publishing(page)) as peer, scene(where(peer)) as at:
        with pytest.raises(KeyUnknown):
            await at.find("k1")


async def test_a_card_with_one_keyid_twice_is_refused_as_a_whole() -> None:
    page = card(("k1", key("one"), True), ("k1", key("two"), True))
    async with Peer(publishing(page)) as peer, scene(where(peer)) as at:
        with pytest.raises(KeyUnknown):
            await at.find("k1")


@pytest.mark.parametrize("page", [b"", b"[]", b"{}", b"\xff", b"[" * 5000])
async def test_a_page_that_is_no_card_shows_no_key(page: bytes) -> None:
    async with Peer(publishing(page)) as peer, scene(where(peer)) as at:
        with pytest.raises(KeyUnknown):
            await at.find()


async def test_a_host_that_is_down_is_told_apart_from_a_key_that_is_unknown() -> None:
    async with Peer(answering(reply(status=500))) as peer, scene(where(peer)) as at:
        with pytest.raises(PeerUnreachable):
            await at.find()


async def test_a_known_key_holds_until_its_end_while_the_host_of_its_card_is_down() -> None:
    is_down = False

    async def script(line: Line) -> None:
        path = (await line.request()).lines[0].split()[1]
        up = reply(card(("k1", key("one"), True))) if path.endswith("agent.json") else MISSING
        await line.say(reply(status=500) if is_down else up)

    async with Peer(script) as peer, scene(where(peer)) as at:
        assert await at.find() == key("one")
        is_down = True
        at.clock.advance(200)
        with pytest.raises(KeyUnknown):  # which asks the host, in vain
            await at.find("k2")
        assert await at.find() == key("one")
        at.clock.advance(100)
        with pytest.raises(PeerUnreachable):
            await at.find()


async def test_a_flood_of_unknown_keyids_leads_to_one_fetch_a_minute() -> None:
    page = card(("k1", key("one"), True))
    async with Peer(publishing(page)) as peer, scene(where(peer)) as at:
        for minute in range(1, 4):
            asking = [at.find(f"kid-{number}") for number in range(500)]
            found = await asyncio.gather(*asking, return_exceptions=True)
            assert {type(one) for one in found} == {KeyUnknown}
            assert fetched(peer) == minute
            at.clock.advance(60)


async def test_a_peer_that_has_rotated_its_key_is_asked_again_after_some_seconds() -> None:
    pages = [card((f"k{n}", key("one"), True)) for n in range(3)]
    async with Peer(publishing(*pages)) as peer, scene(where(peer)) as at:
        for n in range(3):  # each page shows what it was asked for
            assert await at.find(f"k{n}") == key("one")
            at.clock.advance(EARLY_SECONDS)
        assert fetched(peer) == 3


async def test_one_keyid_that_was_made_up_has_a_peer_be_asked_a_minute_later_again() -> None:
    page = card(("k1", key("one"), True))
    async with Peer(publishing(page)) as peer, scene(where(peer)) as at:
        await at.find("k1")
        at.clock.advance(EARLY_SECONDS)
        for second in range(120):
            with pytest.raises(KeyUnknown):
                await at.find(f"made-up-{second}")
            assert fetched(peer) == 2 + second // 60
            at.clock.advance(1)


async def test_a_stranger_is_asked_no_sooner() -> None:
    lookup, asked = leading_to("93.184.216.34")
    async with scene("http://127.0.0.1:1", lookup=lookup) as at:
        site = Site("https://else.example", "learned", "else.example")
        at.ring._learned._keep_good(site, {}, 300)  # noqa: SLF001  a page that was read
        for _ in range(3):
            with pytest.raises(KeyUnknown):
                await at.find("k1", "agent://else.example")
            at.clock.advance(EARLY_SECONDS)
    assert asked == []


# ---------------------------------------------------------------------- a Carnet


async def test_a_peer_that_is_a_carnet_is_believed_by_what_it_signs_itself() -> None:
    async with Peer(answering(reply(carnet_json(ONE)))) as peer, scene(where(peer)) as at:
        assert await at.find() == key("one")
        assert [r.lines[0].split()[1] for r in peer.requests] == ["/.well-known/carnet.json"]


async def test_a_key_past_its_end_is_revoked() -> None:
    ends = FakeClock().wall_us() + 30_000_000
    old = travel.PublishedKey(kid="k0", key=key("two"), not_after=ends)
    async with Peer(answering(reply(carnet_json(ONE, old)))) as peer, scene(where(peer)) as at:
        assert await at.find("k0") == key("two")
        at.clock.advance(30)
        with pytest.raises(KeyRevoked):
            await at.find("k0")
        assert await at.find("k1") == key("one")


async def test_the_page_of_another_domain_shows_no_key() -> None:
    page = carnet_json(ONE, domain="evil.example")
    async with Peer(answering(reply(page))) as peer, scene(where(peer)) as at:
        with pytest.raises(KeyUnknown):
            await at.find()


async def test_an_older_page_than_one_that_was_seen_is_not_believed() -> None:
    new = travel.PublishedKey(kid="k2", key=key("two"))
    pages = iter([carnet_json(ONE, version=7), carnet_json(ONE, new, version=6)])

    async def script(line: Line) -> None:
        await line.request()
        await line.say(reply(next(pages)))

    async with Peer(script) as peer, scene(where(peer)) as at:
        assert await at.find("k1") == key("one")
        at.clock.advance(300)
        with pytest.raises(KeyUnknown):
            await at.find("k2")


async def test_a_peer_that_is_no_carnet_is_asked_once_whether_it_is_one() -> None:
    async with Peer(publishing(card(("k1", key("one"), True)))) as peer, scene(where(peer)) as at:
        for _ in range(3):
            await at.find()
            at.clock.advance(300)
    paths = [request.lines[0].split()[1].rpartition("/")[2] for request in peer.requests]
    assert paths == ["carnet.json", "agent.json", "agent.json", "agent.json"]


async def test_a_page_that_is_not_believed_is_not_made_up_for_by_a_card() -> None:
    async def script(line: Line) -> None:
        while True:
            path = (await line.request()).lines[0].split()[1]
            forged = path.endswith("carnet.json")
            await line.say(reply(b"{}" if forged else card(("k1", key("two"), True))))

    async with Peer(script) as peer, scene(where(peer)) as at:
        with pytest.raises(KeyUnknown):
            await at.find()
        assert fetched(peer) == 0


async def test_for_a_call_of_ours_a_peer_is_asked_again_after_a_second() -> None:
    pages = iter([reply(status=500), reply(carnet_json(ONE))])

    async def script(line: Line) -> None:
        await line.request()
        await line.say(next(pages))

    async with Peer(script) as peer, scene(where(peer)) as at:
        with pytest.raises(PeerUnreachable):
            await at.find()
        await at.ring.need(GLOBEX)
        assert len(peer.requests) == 1
        at.clock.advance(1)
        await at.ring.need(GLOBEX)
        assert await at.find() == key("one")


# ---------------------------------------------------------------------- pinned


def pinned(name: str, **more: Any) -> PinnedKey:
    return PinnedKey(sender=GLOBEX, public=key(name), **more)


async def test_a_pinned_key_wins_and_nothing_is_fetched() -> None:
    page = card(("k1", key("one"), True))
    async with Peer(publishing(page)) as peer, scene(where(peer), pinned("two")) as at:
        assert await at.find("k1") == key("two")
        assert await at.find("whatever", "agent://critic.globex.example") == key("two")
        assert peer.connections == 0


async def test_a_key_pinned_with_a_keyid_is_for_that_keyid_alone() -> None:
    page = card(("k9", key("one"), True))
    async with Peer(publishing(page)) as peer, scene(where(peer), pinned("two", kid="k1")) as at:
        assert await at.find("k1") == key("two")
        with pytest.raises(KeyUnknown):
            await at.find("k9")
        assert peer.connections == 0


async def test_a_revoked_pin_ends_at_once_and_its_card_is_not_asked_instead() -> None:
    page = card(("k1", key("two"), True))
    async with Peer(publishing(page)) as peer, scene(where(peer), pinned("two")) as at:
        assert await at.find() == key("two")
        at.pins.keys = [pinned("two", revoked=1)]
        with pytest.raises(KeyRevoked):
            await at.find()
        assert peer.connections == 0


async def test_of_two_pins_without_a_keyid_the_one_is_taken_that_the_keyid_names() -> None:
    async with scene("http://127.0.0.1:1", pinned("one"), pinned("two")) as at:
        assert await at.find(f"k-{sha256(key('two')).hexdigest()[:12]}") == key("two")
        assert await at.find(f"k-{sha256(key('one')).hexdigest()[:12]}") == key("one")
        assert await at.find("whatever") == key("one")


async def test_a_client_that_has_no_domain_is_known_by_its_pin() -> None:
    mine = PinnedKey(sender="agent://client-x", public=key("one"), kid="x")
    async with scene("http://127.0.0.1:1", mine) as at:
        assert await at.find("x", "agent://client-x") == key("one")


# ---------------------------------------------------------------------- strangers


@pytest.mark.parametrize(
    "sender",
    ["agent://client-x", "agent://localhost", "agent://127.0.0.1", "agent://169.254.169.254"],
)
async def test_hosts_of_one_label_and_addresses_are_never_asked(sender: str) -> None:
    lookup, asked = leading_to("93.184.216.34")
    async with scene("http://127.0.0.1:1", lookup=lookup) as at:
        with pytest.raises(KeyUnknown) as refused:
            await at.find("k1", sender)
    assert asked == []
    assert f"carnet peers add {sender}" in refused.value.next_step


@pytest.mark.parametrize(
    "keyid", ["https://evil.example/k", "//evil.example", "evil.example", "'; drop table", "../k"]
)
async def test_no_host_that_a_keyid_names_is_ever_asked(keyid: str) -> None:
    lookup, asked = leading_to("10.0.0.7")
    async with scene("http://127.0.0.1:1", lookup=lookup) as at:
        with pytest.raises(KeyUnknown):
            await at.find(keyid, "agent://stranger.example")
    assert asked == ["stranger.example"]


async def test_a_stranger_whose_name_leads_inward_is_unknown_and_looked_up_once_a_minute() -> None:
    lookup, asked = leading_to("127.0.0.1")
    async with scene("http://127.0.0.1:1", lookup=lookup) as at:
        for _ in range(100):
            with pytest.raises(KeyUnknown):
                await at.find("k1", "agent://stranger.example")
        assert asked == ["stranger.example"]
        at.clock.advance(60)
        with pytest.raises(KeyUnknown):
            await at.find("k1", "agent://stranger.example")
        assert len(asked) == 2


@pytest.mark.parametrize("identity", ["agent://stranger.example", GLOBEX])
async def test_the_card_of_a_strangers_host_must_be_the_strangers(identity: str) -> None:
    page = card(("k1", key("one"), True), identity=identity)
    async with Peer(publishing(page)) as peer, opened(allow=[f"127.0.0.1:{peer.port}"]) as http:
        pins: Any = Pins()
        ring = Ring(pinned=pins, peers=MemoryPeers(), http=http, clock=FakeClock())
        loading = ring._load(Site(where(peer), "learned", "stranger.example"))  # noqa: SLF001
        if identity == GLOBEX:
            with pytest.raises(NotPublished):
                await loading
        else:
            keys, seconds = await loading
            assert (keys["k1"].public, seconds) == (key("one"), 300)


async def test_more_strangers_than_can_wait_are_told_that_we_are_busy() -> None:
    go = asyncio.Event()
    asked: list[str] = []

    async def lookup(host: str, port: int) -> Sequence[str]:  # noqa: ARG001
        asked.append(host)
        await go.wait()
        return ["10.0.0.7"]

    async with scene("http://127.0.0.1:1", lookup=lookup, at_once=2, queue=3) as at:
        asking = [
            asyncio.create_task(at.find("k", f"agent://s{number}.example")) for number in range(5)
        ]
        await until_so(lambda: len(asked) == 2)
        with pytest.raises(Overloaded):
            await at.find("k", "agent://late.example")
        go.set()
        found = await asyncio.gather(*asking, return_exceptions=True)
        assert {type(one) for one in found} == {KeyUnknown}
        with pytest.raises(KeyUnknown):  # it was not remembered as a failure
            await at.find("k", "agent://late.example")


async def test_a_flood_that_waits_for_one_card_is_bounded_and_holds_no_peer() -> None:
    """Nobody has vouched for these requests: one slow card must not collect them all."""
    go = asyncio.Event()

    async def lookup(host: str, port: int) -> Sequence[str]:  # noqa: ARG001
        await go.wait()
        return ["10.0.0.7"]

    async with (
        Peer(publishing(card(("k1", key("one"), True)))) as peer,
        scene(where(peer), lookup=lookup) as at,
    ):
        asking = [
            asyncio.create_task(at.find("k", "agent://slow.example")) for _ in range(MOST_WAITING)
        ]
        await asyncio.sleep(0)
        with pytest.raises(Overloaded):
            await at.find("k", "agent://slow.example")
        assert await at.find("k1") == key("one")
        go.set()
        found = await asyncio.gather(*asking, return_exceptions=True)
        assert {type(one) for one in found} == {KeyUnknown}


# ---------------------------------------------------------------------- our own


class Own:
    """Our keys, as a store would keep them."""

    def published(self, now: int) -> Sequence[OwnKey]:
        del now
        return [
            OwnKey(kid="new", public=key("new"), state="active", created=2),
            OwnKey(kid="old", public=key("old"), state="revoked", created=1),
        ]


async def test_what_we_signed_ourselves_is_known_by_our_own_keys() -> None:
    own: Any = ("acme.example", Own())
    async with scene("http://127.0.0.1:9", own=own) as at:
        assert await at.find("new", "agent://acme.example") == key("new")
        with pytest.raises(KeyRevoked):
            await at.find("old", "agent://acme.example")
        with pytest.raises(KeyUnknown):
            await at.find("other", "agent://acme.example")


# ---------------------------------------------------------------------- all keys of somebody


async def test_what_names_no_key_is_tried_with_all_that_hold() -> None:
    ends = FakeClock().wall_us() + 30_000_000
    old = travel.PublishedKey(kid="k0", key=key("two"), not_after=ends)
    over = travel.PublishedKey(kid="k9", key=key("three"), active=False)
    page = reply(carnet_json(ONE, old, over))
    async with Peer(answering(page)) as peer, scene(where(peer)) as at:
        with pytest.raises(NotLearned):
            at.ring.every(GLOBEX, at.clock.wall_us())
        await at.ring.learn(GLOBEX)
        assert at.ring.every(GLOBEX, at.clock.wall_us()) == [key("one"), key("two")]
        at.clock.advance(30)
        assert at.ring.every(GLOBEX, at.clock.wall_us()) == [key("one")]


async def test_all_pinned_keys_are_those_that_were_not_ended() -> None:
    pins = [
        PinnedKey(sender=GLOBEX, public=key(name), kid=name, revoked=revoked)
        for name, revoked in (("one", None), ("two", 7), ("three", None))
    ]
    async with scene("http://127.0.0.1:1", *pins) as at:
        now = at.clock.wall_us()
        assert at.ring.every(GLOBEX, now) == [key("one"), key("three")]
        assert at.ring.every("agent://desk.globex.example", now) == [key("one"), key("three")]
        with pytest.raises(KeyUnknown):
            at.ring.every("agent://client-x", now)


async def test_all_keys_of_our_own_are_those_that_are_honoured() -> None:
    class Own:
        def published(self, _: int) -> Sequence[OwnKey]:
            states: list[KeyState] = ["next", "active", "retiring", "revoked"]
            return [
                OwnKey(kid=state, public=key(state), state=state, created=1) for state in states
            ]

    own: Any = ("acme.example", Own())
    async with scene("http://127.0.0.1:1", own=own) as at:
        found = at.ring.every("agent://acme.example", at.clock.wall_us())
        assert found == [key("next"), key("active"), key("retiring")]
