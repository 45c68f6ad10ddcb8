"""Whether an agent of a peer is free: what is believed of its page, for how long, and for whom."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from carnet.errors import PeerUnreachable
from carnet.runtime.peers.cards import Site
from carnet.runtime.peers.offers import AT_ONCE, EACH, FRESH_SECONDS, Offers, freedom_of
from carnet.testing.clock import FakeClock
from carnet.testing.wait import until_so
from carnet.wire import travel
from carnet.wire.crypto import ed25519
from tests.runtime.peer import Line, Peer, Script, answering, opened, reply

SEED = b"o" * 32
KEY = travel.PublishedKey(kid="k1", key=ed25519.public_of(SEED))
GLOBEX = "globex.example"
FREE: dict[str, Any] = {"price": "0", "price_in": "0", "price_out": "0", "most_cost": "0"}


def shown(domain: str = GLOBEX, **terms: Any) -> travel.WellKnown:
    return travel.WellKnown(domain=domain, version=1, keys=(KEY,), terms={**FREE, **terms})


def page(domain: str = GLOBEX, **terms: Any) -> bytes:
    given = shown(domain, **terms)
    return travel.write_well_known(
        given, kid="k1", sign=lambda message: ed25519.sign(SEED, message)
    )


@asynccontextmanager
async def offers(script: Script) -> AsyncIterator[tuple[Offers, str, Peer, FakeClock]]:
    clock = FakeClock()
    async with Peer(script) as peer, opened() as http:
        known = Offers(http, clock)
        try:
            yield known, f"http://127.0.0.1:{peer.port}", peer, clock
        finally:
            await known.close()


@pytest.mark.parametrize(
    ("terms", "free"),
    [
        ({}, "all"),
        ({"currency": "shells", "price": "0.000000"}, "all"),
        ({"most_cost": None}, "own"),
        ({"most_cost": "1"}, "own"),
        ({"price": "0.000001"}, None),
        ({"price_in": "1"}, None),
        ({"price_out": "1", "most_cost": None}, None),
    ],
)
def test_free_is_what_has_no_price_at_all(terms: dict[str, Any], free: str | None) -> None:
    assert freedom_of(shown(**terms)) == free


def test_a_page_without_terms_says_nothing_of_a_price() -> None:
    assert freedom_of(travel.WellKnown(domain=GLOBEX, version=1, keys=(KEY,))) is None


@pytest.mark.parametrize("wrong", [{"price": 0}, {"price_in": "-1"}, {"most_cost": "none"}])
def test_terms_that_cannot_be_read_are_not_believed(wrong: dict[str, Any]) -> None:
    with pytest.raises(PeerUnreachable):
        freedom_of(shown(**wrong))


def test_terms_that_do_not_tell_the_most_are_not_believed() -> None:
    terms = {name: value for name, value in FREE.items() if name != "most_cost"}
    with pytest.raises(PeerUnreachable):
        freedom_of(travel.WellKnown(domain=GLOBEX, version=1, keys=(KEY,), terms=terms))


async def test_a_page_is_fetched_for_who_asks_and_holds_for_its_time() -> None:
    pages = iter([reply(page()), reply(page(price="1"))])
    async with offers(answering_each(pages)) as (known, url, peer, clock):
        offer = known.of(Site(f"{url}/agents/echo", domain=GLOBEX))
        assert not offer.is_free()
        assert peer.requests == []
        assert await offer.find("token:a") == "all"
        assert offer.is_free()
        clock.advance(FRESH_SECONDS - 1)
        assert offer.is_free()
        assert await offer.find("token:b") == "all"
        (asked,) = peer.requests
        assert asked.lines[0] == "GET /agents/echo/.well-known/carnet.json HTTP/1.1"
        clock.advance(1)
        assert not offer.is_free()
        assert await offer.find("token:a") is None
        assert not offer.is_free()


def answering_each(pages: Any) -> Script:
    async def script(line: Line) -> None:
        while True:
            await line.request()
            await line.say(next(pages))

    return script


async def test_what_may_call_others_is_not_free_without_being_asked() -> None:
    async with offers(answering(reply(page(most_cost=None)))) as (known, url, _, _):
        offer = known.of(Site(url, domain=GLOBEX))
        assert await offer.find("token:a") == "own"
        assert not offer.is_free()


@pytest.mark.parametrize(
    "answer",
    [
        reply(page("acme.example")),
        reply(page().replace(b'"version":1', b'"version":2')),
        reply(b"{}", status=404),
        reply(b"no page"),
    ],
    ids=["another domain", "changed", "absent", "none"],
)
async def test_what_is_no_page_of_the_peer_is_not_believed(answer: bytes) -> None:
    async with offers(answering(answer)) as (known, url, peer, _):
        offer = known.of(Site(url, domain=GLOBEX))
        for _ in range(2):
            assert await offer.find("token:a") is None
            assert not offer.is_free()
        assert len(peer.requests) == 1  # it is not asked again for a minute


async def test_a_payer_has_a_few_pages_fetched_at_once_and_holds_up_nobody() -> None:
    go_on = asyncio.Event()

    async def slow(line: Line) -> None:
        asked = await line.request()
        if "/agents/quick/" not in asked.lines[0]:
            await go_on.wait()
        await line.say(reply(page()))

    async with offers(slow) as (known, url, peer, _):
        sites = [Site(f"{url}/agents/a{each}", domain=GLOBEX) for each in range(EACH + 1)]
        waiting = [asyncio.create_task(known.of(site).find("token:a")) for site in sites[:EACH]]
        await until_so(lambda: len(peer.requests) == EACH)
        assert await known.of(sites[EACH]).find("token:a") is None
        quick = known.of(Site(f"{url}/agents/quick", domain=GLOBEX))
        assert await quick.find("token:b") == "all"
        joined = asyncio.create_task(known.of(sites[0]).find("token:b"))
        go_on.set()
        assert await asyncio.gather(*waiting, joined) == ["all"] * (EACH + 1)
        assert await known.of(sites[EACH]).find("token:a") == "all"


async def test_nobody_waits_behind_others() -> None:
    go_on = asyncio.Event()

    async def slow(line: Line) -> None:
        await line.request()
        await go_on.wait()
        await line.say(reply(page()))

    async with offers(slow) as (known, url, peer, _):
        sites = [Site(f"{url}/agents/a{each}", domain=GLOBEX) for each in range(AT_ONCE + 1)]
        waiting = [
            asyncio.create_task(known.of(site).find(f"token:{number}"))
            for number, site in enumerate(sites[:AT_ONCE])
        ]
        await until_so(lambda: len(peer.requests) == AT_ONCE)
        assert await known.of(sites[AT_ONCE]).find("token:last") is None
        go_on.set()
        assert await asyncio.gather(*waiting) == ["all"] * AT_ONCE
        assert await known.of(sites[AT_ONCE]).find("token:last") == "all"
