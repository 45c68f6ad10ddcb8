"""Where requests may go: addresses, names and certificates, on real sockets."""

import asyncio
import sys
from ipaddress import ip_address
from typing import Any

import pytest

from carnet.errors import EgressRefused, ProviderUnavailable
from carnet.ports.world.http_client import NotSent
from carnet.runtime.egress.addresses import Allowed, find_route
from carnet.runtime.egress.dialler import Dialler
from tests.runtime.peer import (
    LONG,
    Line,
    Peer,
    answering,
    chunk,
    leading_to,
    opened,
    post,
    read,
    reply,
    stream_head,
)
from tests.support.signing.certificates import Certificate, certificate_of

# Every connection that this process tries to make while the list is there.
tried: list[Any] | None = None


def _note_connections(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "socket.connect" and tried is not None:
        tried.append(arguments[1])


sys.addaudithook(_note_connections)


@pytest.fixture
def no_connection() -> Any:
    """Fails if anything was dialled."""
    global tried  # noqa: PLW0603  an audit hook cannot be taken off again
    tried = []
    yield
    dialled, tried = tried, None
    assert dialled == []


FORBIDDEN = [
    "http://127.0.0.1/",
    "http://127.1/",
    "http://0/",
    "http://0.0.0.0/",
    "http://2130706433/",
    "http://0x7f000001/",
    "http://0177.0.0.1/",
    "http://[::1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[64:ff9b::7f00:1]/",
    "http://[::127.0.0.1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fd00::1]/",
    "http://169.254.169.254/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://100.64.0.1/",
    "http://198.18.0.1/",
    "http://192.0.2.1/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    "http://[2002:7f00:1::]/",
    "http://[2001::1]/",
    "http://[ff02::1]/",
    "http://localhost/",
    "http://LOCALHOST./",
    "http://①②⑦.⓪.⓪.①/",
    "http://127。0。0。1/",
    "http://a@127.0.0.1/",
    "http://evil.com#@127.0.0.1/",
    "http://evil.com\\@127.0.0.1/",
    "http://127.0.0.1:80@evil.com/",
    "http://[::]/",
    "http://192.88.99.1/",
    "http://[100::1]/",
    "http://[5f00::1]/",
    "http://[64:ff9b:1::1]/",
    "http://192.0.0.192/",
    "https://metadata.google.internal/",
    "ftp://a.example/",
    "file:///etc/passwd",
    "gopher://a/",
    "https://a.example:22/",
    "https://a.example:6379/",
    "http://a.example/",
    "https://user:pw@a.example/",
    "https://a.example/\r\nX: y",
]
# With the right scheme the address alone is wrong, so that is what must be seen.
BY_ADDRESS = [f"https{url[4:]}" for url in FORBIDDEN if url[:7] == "http://" and "a.ex" not in url]


def test_the_list_of_forbidden_urls_is_whole() -> None:
    assert len(FORBIDDEN) == len(set(FORBIDDEN)) == 47


@pytest.mark.usefixtures("no_connection")
@pytest.mark.parametrize("url", [*FORBIDDEN, *BY_ADDRESS])
async def test_a_learned_destination_that_is_not_public_is_refused_undialled(url: str) -> None:
    lookup, asked = leading_to("8.8.8.8")
    async with opened(lookup=lookup) as http:
        with pytest.raises(EgressRefused):
            await read(http, post(url, kind="learned"))
    assert asked == []


@pytest.mark.usefixtures("no_connection")
@pytest.mark.parametrize(
    "addresses",
    [("127.0.0.1",), ("8.8.8.8", "10.0.0.1"), ("::ffff:169.254.169.254",), ("2606:4700::1", "::1")],
)
async def test_a_learned_name_is_refused_if_any_of_its_addresses_is_not_public(
    addresses: tuple[str, ...],
) -> None:
    lookup, asked = leading_to(*addresses)
    async with opened(lookup=lookup) as http:
        with pytest.raises(EgressRefused):
            await read(http, post("https://b.example/", kind="learned"))
    assert asked == ["b.example"]


@pytest.mark.usefixtures("no_connection")
async def test_plain_http_does_not_leave_for_a_public_address() -> None:
    lookup, _ = leading_to("8.8.8.8")
    async with opened(lookup=lookup) as http:
        for url in ("http://8.8.8.8/", "http://b.example/"):
            with pytest.raises(EgressRefused):
                await read(http, post(url))


async def test_a_name_is_looked_up_once_and_the_address_judged_is_the_one_dialled() -> None:
    async with Peer(answering(reply(b"ok"))) as peer:
        lookup, asked = leading_to("127.0.0.1")
        async with opened(lookup=lookup) as http:
            assert await read(http, post(f"http://model.example:{peer.port}/")) == b"ok"
    assert asked == ["model.example"]
    assert peer.requests[0].headers["host"] == f"model.example:{peer.port}"


async def test_localhost_is_found_by_the_system() -> None:
    async with Peer(answering(reply(b"ok"))) as peer, opened() as http:
        assert await read(http, post(f"http://localhost:{peer.port}/")) == b"ok"


async def test_an_allowed_learned_destination_is_called_on_a_new_connection_each_time() -> None:
    lookup, asked = leading_to("127.0.0.1")
    async with Peer(answering(reply(b"ok"))) as peer:
        allow = [f"card.example:{peer.port}", "127.0.0.0/8"]
        async with opened(lookup=lookup, allow=allow) as http:
            for host in ("card.example", "card.example", "127.0.0.1"):
                url = f"http://{host}:{peer.port}/"
                assert await read(http, post(url, kind="learned")) == b"ok"
    assert asked == ["card.example", "card.example"]
    assert peer.connections == 3


async def test_a_connection_made_for_a_named_destination_does_not_serve_a_learned_one() -> None:
    async with Peer(answering(reply(b"ok"))) as peer, opened() as http:
        assert await read(http, post(peer.url)) == b"ok"
        with pytest.raises(EgressRefused):
            await read(http, post(peer.url, kind="learned"))


@pytest.mark.usefixtures("no_connection")
async def test_an_address_is_judged_once_more_where_its_socket_is_made() -> None:
    lookup, _ = leading_to("8.8.8.8")
    route = find_route("https://b.example/", "learned", Allowed())
    dialler = Dialler(lookup, None)
    with pytest.raises(EgressRefused):
        await dialler._connect(ip_address("127.0.0.1"), route)  # noqa: SLF001  past the lookup


async def test_a_server_without_tls_is_not_spoken_to_where_https_was_asked_for() -> None:
    async def script(line: Line) -> None:
        await line.say(b"HTTP/1.1 400 Word\r\n\r\n")

    async with Peer(script) as peer, opened() as http:
        with pytest.raises(ProviderUnavailable) as caught:
            await read(http, post(f"https://127.0.0.1:{peer.port}/"))
    assert isinstance(caught.value.__cause__, NotSent)


# ---------------------------------------------------------------------- certificates


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return certificate_of("agent.example", tmp_path_factory.mktemp("tls"))


async def test_a_certificate_is_checked_for_the_name_and_not_for_the_address(
    certificate: Certificate,
) -> None:
    lookup, _ = leading_to("127.0.0.1")
    trusting = certificate.trusting()
    async with (
        Peer(answering(reply(b"ok")), tls=certificate.serving()) as peer,
        opened(lookup=lookup, tls=trusting) as http,
    ):
        assert await read(http, post(f"https://agent.example:{peer.port}/")) == b"ok"
        assert await read(http, post(f"https://agent.example.:{peer.port}/")) == b"ok"
        for other in ("other.example", "127.0.0.1"):
            with pytest.raises(ProviderUnavailable) as caught:
                await read(http, post(f"https://{other}:{peer.port}/"))
            assert isinstance(caught.value.__cause__, NotSent)
    hosts = [request.headers["host"] for request in peer.requests]
    assert hosts == [f"agent.example:{peer.port}", f"agent.example.:{peer.port}"]


async def test_an_encrypted_connection_is_used_again(certificate: Certificate, played: Any) -> None:
    async def scene() -> None:
        lookup, _ = leading_to("127.0.0.1")
        trusting = certificate.trusting()
        async with (
            Peer(answering(reply(b"x" * 300_000)), tls=certificate.serving()) as peer,
            opened(lookup=lookup, tls=trusting) as http,
        ):
            for _ in range(5):
                body = await read(http, post(f"https://agent.example:{peer.port}/"))
                assert len(body) == 300_000
        assert peer.connections == 1

    await played(scene)


async def test_a_certificate_that_nobody_vouches_for_is_refused(certificate: Certificate) -> None:
    lookup, _ = leading_to("127.0.0.1")
    async with (
        Peer(answering(reply(b"ok")), tls=certificate.serving()) as peer,
        opened(lookup=lookup) as http,
    ):
        with pytest.raises(ProviderUnavailable) as caught:
            await read(http, post(f"https://agent.example:{peer.port}/"))
    assert isinstance(caught.value.__cause__, NotSent)
    assert peer.requests == []


async def test_leaving_closes_an_encrypted_connection_as_well(certificate: Certificate) -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.say(stream_head() + chunk(b"one"))
        await line.until_gone()

    lookup, _ = leading_to("127.0.0.1")
    trusting = certificate.trusting()
    async with (
        Peer(script, tls=certificate.serving()) as peer,
        opened(lookup=lookup, tls=trusting) as http,
    ):
        async with http.send(post(f"https://agent.example:{peer.port}/")) as answer:
            await anext(answer.chunks())
        await asyncio.wait_for(peer.gone.wait(), LONG)
