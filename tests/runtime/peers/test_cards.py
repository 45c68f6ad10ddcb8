"""Pages that others publish, fetched over real sockets: what they may cost us, and for how long."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from carnet.errors import (
    CarnetError,
    EgressRefused,
    Overloaded,
    PeerAgentNotFound,
    PeerUnreachable,
)
from carnet.ports.world.http_client import Bounds
from carnet.runtime.egress.client import EgressClient
from carnet.runtime.peers import cards
from carnet.runtime.peers.cards import CARD_PATH, Cards, Fetching, NotPublished, Remembered, Site
from carnet.testing.clock import FakeClock
from carnet.testing.wait import until_so
from tests.runtime.peer import (
    LONG,
    Line,
    Peer,
    Script,
    answering,
    chunk,
    head,
    leading_to,
    opened,
    reply,
    stream_head,
)
from tests.support.signing.certificates import certificate_of

QUICK = Bounds(
    connect_seconds=1, first_byte_seconds=0.5, idle_seconds=0.5, total_seconds=1, max_bytes=1000
)


def test_a_page_is_bounded_by_256_kib_and_ten_seconds() -> None:
    assert cards.BOUNDS.max_bytes == 256 * 1024
    assert cards.BOUNDS.connect_seconds == 3
    assert cards.BOUNDS.first_byte_seconds == cards.BOUNDS.total_seconds == 10


@asynccontextmanager
async def fetching(script: Script, **more: Any) -> AsyncIterator[tuple[Fetching, Site, Peer]]:
    """A place that a stranger named, which the operator lets be on this machine."""
    async with Peer(script) as peer, opened(allow=[f"127.0.0.1:{peer.port}"]) as http:
        site = Site(f"http://127.0.0.1:{peer.port}", "learned")
        yield Fetching(http, **more), site, peer


async def why(fetch: Fetching, site: Site) -> CarnetError:
    with pytest.raises(CarnetError) as refused:
        await fetch.page(site, CARD_PATH)
    return refused.value


async def test_a_page_is_asked_for_plainly_and_given_as_it_is() -> None:
    async with fetching(answering(reply(b'{"a":1}'))) as (fetch, site, peer):
        assert await fetch.page(site, CARD_PATH) == b'{"a":1}'
    (asked,) = peer.requests
    assert asked.lines[0] == "GET /.well-known/agent.json HTTP/1.1"
    assert asked.headers["accept-encoding"] == "identity"
    assert "authorization" not in asked.headers


async def test_an_endless_page_is_left_after_its_bound() -> None:
    sent = 0

    async def endless(line: Line) -> None:
        nonlocal sent
        await line.request()
        await line.say(stream_head())
        while True:
            await line.say(chunk(b"x" * 65536))
            sent += 65536

    async with fetching(endless) as (fetch, site, peer):
        assert type(await why(fetch, site)) is PeerUnreachable
        await until_so(lambda: all(task.done() for task in peer._tasks))  # noqa: SLF001
    assert sent < 64 * 1024 * 1024  # what the kernel takes ahead, and no more


async def test_a_page_that_drips_is_left_when_its_time_is_over() -> None:
    async def dripping(line: Line) -> None:
        await line.request()
        await line.say(head(200, {"content-length": "1000000"}))
        while True:
            await line.say(b" ")
            await asyncio.sleep(0.05)

    async with fetching(dripping, bounds=QUICK) as (fetch, site, _), asyncio.timeout(LONG):
        assert type(await why(fetch, site)) is PeerUnreachable


async def test_a_place_that_says_nothing_is_left_when_its_time_is_over() -> None:
    async with (
        fetching(Line.until_gone, bounds=QUICK) as (fetch, site, peer),
        asyncio.timeout(LONG),
    ):
        assert type(await why(fetch, site)) is PeerUnreachable
        await peer.gone.wait()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_is_followed(status: int) -> None:
    async with Peer(answering(reply(b"{}"))) as other:
        where = {"location": f"http://127.0.0.1:{other.port}/"}
        async with fetching(answering(reply(status=status, headers=where))) as (fetch, site, _):
            assert type(await why(fetch, site)) is PeerUnreachable
        assert other.connections == 0


async def test_an_encoded_page_is_refused_unread() -> None:
    bomb = gzip.compress(b" " * 10_000_000)
    packed = reply(bomb, headers={"content-encoding": "gzip"})
    async with fetching(answering(packed)) as (fetch, site, _):
        refused = await why(fetch, site)
    assert type(refused) is PeerUnreachable
    assert "encoded" in str(refused)


@pytest.mark.parametrize("status", [500, 502, 503, 204])
async def test_a_place_in_trouble_is_unreachable(status: int) -> None:
    async with fetching(answering(reply(status=status))) as (fetch, site, _):
        assert type(await why(fetch, site)) is PeerUnreachable


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
async def test_a_place_without_the_page_has_not_published_it(status: int) -> None:
    async with fetching(answering(reply(status=status))) as (fetch, site, _):
        with pytest.raises(NotPublished):
            await fetch.page(site, CARD_PATH)


async def test_a_certificate_that_does_not_hold_is_unreachable(tmp_path: Path) -> None:
    certificate = certificate_of("agent.example", tmp_path)
    lookup, _ = leading_to("127.0.0.1")
    async with Peer(answering(reply(b"{}")), tls=certificate.serving()) as peer:
        allow = [f"agent.example:{peer.port}"]
        async with opened(allow=allow, lookup=lookup) as http:
            site = Site(f"https://agent.example:{peer.port}", "learned")
            assert type(await why(Fetching(http), site)) is PeerUnreachable
        assert peer.requests == []


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1",
        "https://169.254.169.254",
        "https://[::ffff:127.0.0.1]",
        "https://printer.local",
        "http://agent.example",
        "https://agent.example:8080",
    ],
)
async def test_what_no_peer_may_make_us_call_counts_as_not_published(url: str) -> None:
    lookup, asked = leading_to("93.184.216.34")
    async with opened(lookup=lookup) as http:
        with pytest.raises(NotPublished):
            await Fetching(http).page(Site(url, "learned"), CARD_PATH)
    assert asked == []


async def test_a_name_that_leads_inward_counts_as_not_published() -> None:
    lookup, asked = leading_to("93.184.216.34", "10.0.0.7")
    async with opened(lookup=lookup) as http:
        with pytest.raises(NotPublished):
            await Fetching(http).page(Site("https://agent.example", "learned"), CARD_PATH)
    assert asked == ["agent.example"]


async def test_a_name_that_leads_nowhere_has_published_nothing() -> None:
    async def lookup(host: str, port: int) -> list[str]:  # noqa: ARG001
        raise OSError(-2, "Name or service not known")

    async with opened(lookup=lookup) as http:
        with pytest.raises(NotPublished):
            await Fetching(http).page(Site("https://agent.example", "learned"), CARD_PATH)


async def test_a_card_that_is_not_there_is_told_from_a_place_that_is_not() -> None:
    async def lookup(host: str, port: int) -> list[str]:  # noqa: ARG001
        raise OSError(-2, "Name or service not known")

    async def why_not(http: EgressClient, url: str) -> CarnetError:
        with pytest.raises(CarnetError) as refused:
            await Cards(http, FakeClock()).card(Site(url))
        return refused.value

    async with opened(lookup=lookup) as http:
        nowhere = await why_not(http, "https://agent.example")
        assert (type(nowhere), nowhere.detail) == (PeerUnreachable, "no host has that name")
    kinds = {404: PeerAgentNotFound, 410: PeerAgentNotFound, 403: PeerUnreachable}
    for status, kind in kinds.items():
        async with Peer(answering(reply(status=status))) as peer, opened() as http:
            assert type(await why_not(http, f"http://127.0.0.1:{peer.port}")) is kind
    async with Peer(answering(reply())) as gone, opened() as http:
        gone.stop_listening()
        closed = await why_not(http, f"http://127.0.0.1:{gone.port}")
    assert type(closed) is PeerUnreachable
    assert "provider_unavailable" not in str(closed)


async def test_the_operator_is_told_that_a_place_of_theirs_may_not_be_called() -> None:
    async with opened() as http:
        with pytest.raises(EgressRefused):
            await Fetching(http).page(Site("http://93.184.216.34", "named"), CARD_PATH)


async def test_eight_fetches_run_at_once_and_whoever_finds_the_queue_full_is_told_so() -> None:
    go = asyncio.Event()

    async def waiting(line: Line) -> None:
        await line.request()
        await go.wait()
        await line.say(reply(b"{}"))

    async with fetching(waiting, at_once=8, queue=4) as (fetch, site, peer):
        async with asyncio.timeout(LONG), asyncio.TaskGroup() as group:
            tasks = [group.create_task(fetch.page(site, CARD_PATH)) for _ in range(12)]
            await until_so(lambda: len(peer.requests) == 8)
            with pytest.raises(Overloaded):
                await fetch.page(site, CARD_PATH)
            named = Site(site.url, "named")  # these do not queue behind those of strangers
            other = group.create_task(fetch.page(named, CARD_PATH))
            await until_so(lambda: len(peer.requests) == 9)
            go.set()
        assert [task.result() for task in (*tasks, other)] == [b"{}"] * 13
        assert await fetch.page(site, CARD_PATH) == b"{}"


# ---------------------------------------------------------------------- what is remembered


class Shelf:
    """Something to remember, and how often it was asked for."""

    def __init__(self, *answers: tuple[str, float] | Exception, most: int = 1024) -> None:
        self.clock = FakeClock()
        self.loads: list[Site] = []
        self._answers = answers
        self.go = asyncio.Event()
        self.go.set()
        self.known = Remembered(self._load, self.clock, most=most)

    async def _load(self, site: Site) -> tuple[str, float]:
        self.loads.append(site)
        await self.go.wait()
        answer = self._answers[min(len(self.loads), len(self._answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer


HERE, THERE, ELSEWHERE = (Site(f"https://{name}.example") for name in "abc")


@pytest.mark.parametrize(("seconds", "holds"), [(300, 300), (0, 60), (-5, 60), (10**9, 3600)])
async def test_a_page_holds_for_the_time_it_names_within_bounds(seconds: int, holds: int) -> None:
    shelf = Shelf(("one", seconds), ("two", seconds))
    assert (await shelf.known.find(HERE)).value == "one"
    shelf.clock.advance(holds - 1)
    assert (await shelf.known.find(HERE)).value == "one"
    shelf.clock.advance(1)
    assert (await shelf.known.find(HERE)).value == "two"
    assert len(shelf.loads) == 2


async def test_whoever_asks_at_the_same_time_waits_for_the_same_fetch() -> None:
    shelf = Shelf(("one", 300))
    shelf.go.clear()
    asking = [asyncio.create_task(shelf.known.find(HERE)) for _ in range(50)]
    await until_so(lambda: len(shelf.loads) == 1)
    asking[0].cancel()  # the one who began it goes away, and the others do not suffer
    shelf.go.set()
    found = await asyncio.gather(*asking, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    assert {one.value for one in found[1:] if not isinstance(one, BaseException)} == {"one"}
    assert len(shelf.loads) == 1


@pytest.mark.parametrize("failure", [NotPublished(), PeerUnreachable("broken")])
async def test_what_failed_is_not_asked_for_again_for_a_minute(failure: Exception) -> None:
    shelf = Shelf(failure, ("two", 300))
    assert (await shelf.known.find(HERE)).value is None
    shelf.clock.advance(59)
    assert (await shelf.known.find(HERE, after=60)).value is None
    assert len(shelf.loads) == 1
    shelf.clock.advance(1)
    assert (await shelf.known.find(HERE)).value == "two"


async def test_what_was_known_holds_until_its_own_end_when_it_cannot_be_fetched_again() -> None:
    shelf = Shelf(("one", 300), PeerUnreachable("down"))
    await shelf.known.find(HERE)
    shelf.clock.advance(120)
    assert (await shelf.known.find(HERE, after=60)).value == "one"
    assert len(shelf.loads) == 2
    shelf.clock.advance(180)
    found = await shelf.known.find(HERE)
    assert found.value is None
    assert "down" in (found.fault or "")


async def test_a_full_queue_is_not_remembered_as_a_failure() -> None:
    shelf = Shelf(Overloaded(), ("two", 300))
    with pytest.raises(Overloaded):
        await shelf.known.find(HERE)
    assert (await shelf.known.find(HERE)).value == "two"


async def test_the_oldest_places_are_forgotten_first() -> None:
    shelf = Shelf(("one", 300), most=2)
    for site in (HERE, THERE, ELSEWHERE):
        await shelf.known.find(site)
    assert shelf.known.peek(HERE) is None
    assert shelf.known.peek(ELSEWHERE) is not None


async def test_closing_ends_what_is_being_fetched() -> None:
    shelf = Shelf(("one", 300))
    shelf.go.clear()
    asking = asyncio.create_task(shelf.known.find(HERE))
    await until_so(lambda: len(shelf.loads) == 1)
    await shelf.known.close()
    with pytest.raises(asyncio.CancelledError):
        await asking
