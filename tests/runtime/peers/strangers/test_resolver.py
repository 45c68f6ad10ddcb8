"""Addresses of strangers, looked for over real sockets and TLS."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from carnet.core.people.address import Address
from carnet.errors import CarnetError, PeerAgentNotFound, PeerUnreachable, TooManyCalls
from carnet.runtime.peers.strangers.resolver import MOST_LOOKS, Resolver
from carnet.testing.clock import FakeClock
from carnet.wire.crypto.jwks import write_keys
from carnet.wire.mentions.webfinger import CARD_REL, FORMER_CARD_REL
from tests.runtime.peer import Line, Peer, leading_to, opened, reply
from tests.support.signing.certificates import certificate_of

FOO = Address("foo", "agent.example")
KEY = bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")

Pages = dict[str, bytes]


@asynccontextmanager
async def found_in(tmp_path: Path, pages: Pages) -> AsyncIterator[tuple[Resolver, Peer, str]]:
    """A resolver, and the server of agent.example, which shows these pages."""
    certificate = certificate_of("agent.example", tmp_path)
    lookup, _ = leading_to("127.0.0.1")

    async def script(line: Line) -> None:
        while True:
            asked = await line.request()
            path = asked.lines[0].split(" ")[1].partition("?")[0]
            await line.say(pages.get(path, reply(b"", status=404)))

    async with Peer(script, tls=certificate.serving()) as peer:
        base = f"https://agent.example:{peer.port}"
        allow = [f"agent.example:{peer.port}"]
        async with opened(allow=allow, lookup=lookup, tls=certificate.trusting()) as http:
            resolver = Resolver(http, FakeClock(), {"agent.example": base})
            yield resolver, peer, base
            await resolver.close()


def jrd(base: str, *, rel: str = CARD_REL, **more: Any) -> bytes:
    links = [{"rel": rel, "href": f"{base}/card"}]
    return page({"subject": "acct:foo@agent.example", "links": links, **more})


def page(value: object, headers: Mapping[str, str] | None = None) -> bytes:
    return reply(json.dumps(value).encode(), headers=None if headers is None else dict(headers))


def card(base: str, **more: Any) -> bytes:
    a2a = {"endpoint": f"{base}/a2a", "transport": "https+jsonrpc", **more}
    return page({"address": "@foo@agent.example", "a2a": a2a})


def moved(url: str, status: int = 302) -> bytes:
    return reply(b"", status=status, headers={"location": url})


FINGER = "/.well-known/webfinger"


async def refused(resolver: Resolver) -> CarnetError:
    with pytest.raises(CarnetError) as found:
        await resolver.find(FOO, caller="alice")
    return found.value


@pytest.mark.parametrize("rel", [CARD_REL, FORMER_CARD_REL])
async def test_an_address_is_found_by_webfinger_and_its_card(rel: str, tmp_path: Path) -> None:
    pages: Pages = {}
    async with found_in(tmp_path, pages) as (resolver, peer, base):
        pages |= {FINGER: jrd(base, rel=rel), "/card": card(base)}
        pages["/.well-known/jwks.json"] = reply(write_keys({"k": KEY}))
        found = await resolver.find(FOO, caller="alice")
        again = await resolver.find(FOO, caller="bob")
    assert found is again
    assert found.card.interfaces[0].url == f"{base}/a2a"
    assert (found.keys, found.is_named) == (frozenset({KEY}), False)
    finger, *_ = peer.requests
    resource = "resource=acct%3Afoo%40agent.example"
    assert finger.lines[0] == f"GET {FINGER}?{resource} HTTP/1.1"
    assert finger.headers["accept"] == "application/jrd+json, application/json"
    assert len(peer.requests) == 3
    assert all("authorization" not in asked.headers for asked in peer.requests)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_webfinger_may_lead_on_once(status: int, tmp_path: Path) -> None:
    pages: Pages = {}
    async with found_in(tmp_path, pages) as (resolver, _, base):
        pages |= {FINGER: moved(f"{base}/hosted", status), "/hosted": jrd(base)}
        pages["/card"] = card(base)
        found = await resolver.find(FOO, caller="alice")
    assert found.keys == frozenset()  # it publishes none


async def test_it_does_not_lead_on_twice_nor_elsewhere_than_over_https(tmp_path: Path) -> None:
    for location in ("{base}/twice", "http://agent.example/", "/card", "", "https://10.0.0.1/"):
        pages: Pages = {}
        async with found_in(tmp_path, pages) as (resolver, _, base):
            pages |= {FINGER: moved(location.format(base=base)), "/twice": moved(f"{base}/hosted")}
            pages |= {"/hosted": jrd(base), "/card": card(base)}
            assert type(await refused(resolver)) in {PeerUnreachable, PeerAgentNotFound}


@pytest.mark.parametrize(
    "wrong",
    [
        {"subject": "acct:foo@evil.example"},
        {"subject": "acct:other@agent.example"},
        {"links": [{"rel": CARD_REL, "href": "http://agent.example/card"}]},
        {"links": [{"rel": CARD_REL, "href": "https://169.254.169.254/card"}]},
        {"links": []},
    ],
)
async def test_what_tells_of_another_or_leads_astray_is_refused(
    wrong: dict[str, Any], tmp_path: Path
) -> None:
    pages: Pages = {}
    async with found_in(tmp_path, pages) as (resolver, peer, base):
        pages |= {FINGER: jrd(base, **wrong), "/card": card(base)}
        assert type(await refused(resolver)) in {PeerUnreachable, PeerAgentNotFound}
        assert [asked.lines[0].split("?")[0] for asked in peer.requests] == [f"GET {FINGER}"] * len(
            peer.requests
        )


async def test_a_card_that_names_an_endpoint_without_https_is_refused(tmp_path: Path) -> None:
    pages: Pages = {}
    async with found_in(tmp_path, pages) as (resolver, _, base):
        pages |= {FINGER: jrd(base), "/card": card(base, endpoint="http://agent.example/a2a")}
        assert type(await refused(resolver)) is PeerUnreachable


async def test_nobody_there_is_told_as_nobody(tmp_path: Path) -> None:
    async with found_in(tmp_path, {}) as (resolver, _, _base):
        assert type(await refused(resolver)) is PeerAgentNotFound


async def test_keys_that_cannot_be_read_are_not_taken_for_none(tmp_path: Path) -> None:
    pages: Pages = {}
    async with found_in(tmp_path, pages) as (resolver, _, base):
        pages |= {FINGER: jrd(base), "/card": card(base)}
        pages["/.well-known/jwks.json"] = reply(b"nothing")
        assert type(await refused(resolver)) is PeerUnreachable


async def test_one_caller_has_a_few_looks_at_once_and_leaves_room_for_others() -> None:
    async def silent(line: Line) -> None:
        await line.request()
        await asyncio.Event().wait()

    async with Peer(silent) as peer, opened() as http:
        base = f"http://127.0.0.1:{peer.port}"
        resolver = Resolver(http, FakeClock(), {"agent.example": base})
        looks = [
            asyncio.create_task(resolver.find(Address(f"a{n}", "agent.example"), caller="alice"))
            for n in range(MOST_LOOKS)
        ]
        await asyncio.sleep(0)
        with pytest.raises(TooManyCalls):
            await resolver.find(FOO, caller="alice")
        other = asyncio.create_task(resolver.find(FOO, caller="bob"))
        await asyncio.sleep(0)
        assert not other.done()
        for look in (*looks, other):
            look.cancel()
        await asyncio.gather(*looks, other, return_exceptions=True)
        await resolver.close()


async def test_what_one_has_looked_for_keeps_nobody_else_waiting() -> None:
    """More looks than all fetches of one kind and their queue: each caller has its own."""
    pages: Pages = {}

    async def silent(line: Line) -> None:
        await line.request()
        await asyncio.Event().wait()

    async def answering(line: Line) -> None:
        while True:
            asked = await line.request()
            path = asked.lines[0].split(" ")[1].partition("?")[0]
            await line.say(pages.get(path, reply(b"", status=404)))

    async with Peer(silent) as slow, Peer(answering) as quick, opened() as http:
        base = f"http://127.0.0.1:{quick.port}"
        pages |= {FINGER: jrd(base), "/card": card(base)}
        places = {"slow.example": f"http://127.0.0.1:{slow.port}", "agent.example": base}
        resolver = Resolver(http, FakeClock(), places)
        sought = [Address(f"a{n}", "slow.example") for n in range(20 * MOST_LOOKS)]
        looks = [
            asyncio.create_task(resolver.find(each, caller=f"c{n % 20}"))
            for n, each in enumerate(sought)
        ]
        await asyncio.sleep(0)
        found = await resolver.find(FOO, caller="alice")
        assert found.card.interfaces[0].url == f"{base}/a2a"
        for look in looks:
            look.cancel()
        await asyncio.gather(*looks, return_exceptions=True)
        await resolver.close()
