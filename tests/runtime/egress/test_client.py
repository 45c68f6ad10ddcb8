"""The HTTP client, against real sockets on loopback: what leaves, and what comes back."""

import asyncio
from collections.abc import Sequence

import pytest

from carnet.core.people.identity import Secret
from carnet.errors import ProviderError, ProviderTimeout, ProviderUnavailable
from carnet.ports.world.http_client import Bounds, NotSent, Outbound
from carnet.runtime.egress.client import EgressClient
from tests.runtime.loop_clock import LoopClock
from tests.runtime.peer import (
    LONG,
    Line,
    Peer,
    answering,
    chunk,
    head,
    leading_to,
    opened,
    post,
    read,
    reply,
    stream_head,
)


async def listen(http: EgressClient, request: Outbound, received: asyncio.Event) -> None:
    async with http.send(request) as answer:
        async for _ in answer.chunks():
            received.set()


# ---------------------------------------------------------------------- what leaves


async def test_a_request_leaves_byte_for_byte_as_it_was_given() -> None:
    async with Peer(answering(reply(b"ok"))) as peer, opened() as http:
        request = Outbound(
            url=f"http://127.0.0.1:{peer.port}/a%2Fb/c?q=1%20",
            body=b'{"a":1}',
            headers={"content-type": "application/json", "x-one": "1"},
            secrets={"authorization": Secret("Bearer sk-x")},
        )
        async with http.send(request) as answer:
            assert answer.status == 200
            assert answer.header("Content-Type") == "application/json"
            assert answer.header("x-none") is None
            assert await answer.read() == b"ok"
    assert peer.requests[0].lines == [
        "POST /a%2Fb/c?q=1%20 HTTP/1.1",
        f"host: 127.0.0.1:{peer.port}",
        "user-agent: carnet",
        "accept: */*",
        "accept-encoding: identity",
        "content-type: application/json",
        "x-one: 1",
        "authorization: Bearer sk-x",
        "content-length: 7",
    ]
    assert peer.requests[0].body == b'{"a":1}'


async def test_a_request_without_a_body_has_no_length() -> None:
    async with Peer(answering(reply(b"ok"))) as peer, opened() as http:
        assert await read(http, Outbound(url=peer.url, body=b"", headers={}, method="GET")) == b"ok"
    assert peer.requests[0].lines[0] == "GET /v1/chat/completions HTTP/1.1"
    assert "content-length" not in peer.requests[0].headers


async def test_a_large_body_arrives_whole() -> None:
    body = bytes(range(256)) * (3 * 4096)
    async with Peer(answering(reply(b"ok"))) as peer, opened() as http:
        assert await read(http, post(peer.url, body)) == b"ok"
    assert peer.requests[0].body == body


async def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with Peer(answering(reply(b"ok"))) as peer, opened() as http:
        assert await read(http, post(peer.url)) == b"ok"


async def test_a_cookie_is_not_kept() -> None:
    answer = reply(b"ok", headers={"set-cookie": "a=b"})
    lookup, _ = leading_to("127.0.0.1")
    async with Peer(answering(answer)) as peer, opened(lookup=lookup) as http:
        for _ in range(2):
            await read(http, post(f"http://model.example:{peer.port}/"))
    assert "cookie" not in {name.lower() for name in peer.requests[1].headers}


@pytest.mark.parametrize("value", ["a\r\nx-evil: 1", "a\nb", "a\0b"])
async def test_a_header_that_would_end_its_line_does_not_leave(value: str) -> None:
    async with Peer(answering(reply(b"ok"))) as peer, opened() as http:
        with pytest.raises(ValueError, match="header"):
            await read(http, post(peer.url, headers={"x-one": value}))
    assert peer.requests == []


@pytest.mark.parametrize("method", ["HEAD", "CONNECT"])
async def test_a_method_whose_answers_end_elsewhere_does_not_leave(method: str) -> None:
    async with Peer(answering(reply(b"ok"))) as peer, opened() as http:
        with pytest.raises(ValueError, match="method"):
            await read(http, post(peer.url, method=method))
    assert peer.connections == 0


# ---------------------------------------------------------------------- what comes back


async def test_connections_are_used_again() -> None:
    async with Peer(answering(reply(b"one"), reply(b"two"))) as peer, opened() as http:
        assert [await read(http, post(peer.url)) for _ in range(3)] == [b"one", b"two", b"two"]
    assert peer.connections == 1


async def test_a_redirect_is_an_answer_and_is_not_followed() -> None:
    async with Peer(answering(reply(b"here"))) as other, opened() as http:
        redirect = reply(status=302, headers={"location": other.url})
        async with Peer(answering(redirect)) as peer, http.send(post(peer.url)) as answer:
            assert answer.status == 302
    assert other.connections == 0


@pytest.mark.parametrize("encoding", ["gzip", "br", "deflate, identity", "GZIP"])
async def test_an_encoded_answer_is_refused_and_not_decoded(encoding: str) -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.say(head(200, {"content-encoding": encoding, "content-length": "10000"}))
        await line.until_gone()

    async with Peer(script) as peer, opened() as http:
        with pytest.raises(ProviderError, match="encoded"):
            await read(http, post(peer.url))
        await asyncio.wait_for(peer.gone.wait(), LONG)


async def test_an_answer_in_identity_encoding_is_read() -> None:
    answer = reply(b"ok", headers={"content-encoding": "identity"})
    async with Peer(answering(answer)) as peer, opened() as http:
        assert await read(http, post(peer.url)) == b"ok"


async def test_chunks_are_given_as_they_come() -> None:
    go_on = asyncio.Event()

    async def script(line: Line) -> None:
        await line.request()
        await line.say(stream_head() + chunk(b"one"))
        await go_on.wait()
        await line.say(chunk(b"two") + chunk(b""))
        await line.until_gone()

    async with Peer(script) as peer, opened() as http, http.send(post(peer.url)) as answer:
        seen = []
        async for piece in answer.chunks():
            seen.append(piece)
            go_on.set()
    assert seen == [b"one", b"two"]


async def test_an_answer_in_pieces_is_read_whole() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.say(head(200, {"content-length": "9"}))
        for piece in (b"one", b"two", b"six"):
            await line.say(piece)
            await asyncio.sleep(0.01)
        await line.until_gone()

    async with Peer(script) as peer, opened() as http:
        assert await read(http, post(peer.url)) == b"onetwosix"


async def test_an_answer_beyond_its_limit_is_cut() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.say(stream_head())
        while True:
            await line.say(chunk(b"x" * 1000))

    async with Peer(script) as peer, opened() as http:
        with pytest.raises(ProviderError, match="larger than 5000"):
            await read(http, post(peer.url, bounds=Bounds(max_bytes=5000)))


# ---------------------------------------------------------------------- what goes wrong


async def test_a_refused_connection_says_that_nothing_was_sent() -> None:
    async with Peer(answering(b"")) as peer:
        url = peer.url
    async with opened() as http:
        with pytest.raises(ProviderUnavailable) as caught:
            await read(http, post(url))
    assert isinstance(caught.value.__cause__, NotSent)


async def test_a_name_without_an_address_says_that_nothing_was_sent() -> None:
    async def unknown(host: str, port: int) -> Sequence[str]:
        raise OSError(host, port)

    nothing, _ = leading_to()
    for lookup in (unknown, nothing):
        async with opened(lookup=lookup) as http:
            with pytest.raises(ProviderUnavailable) as caught:
                await read(http, post("https://b.example/"))
        assert isinstance(caught.value.__cause__, NotSent)


async def test_connecting_has_its_own_time() -> None:
    async def endless(host: str, port: int) -> Sequence[str]:  # noqa: ARG001
        await asyncio.sleep(60)
        return []

    async with opened(lookup=endless) as http:
        with pytest.raises(ProviderUnavailable) as caught:
            await read(http, post("https://b.example/", bounds=Bounds(connect_seconds=0.05)))
    assert isinstance(caught.value.__cause__, NotSent)


async def test_a_peer_that_accepts_and_hangs_is_left_at_the_first_byte_bound() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.until_gone()

    async with Peer(script) as peer, opened() as http:
        with pytest.raises(ProviderTimeout):
            await read(http, post(peer.url, bounds=Bounds(first_byte_seconds=0.1)))
        await asyncio.wait_for(peer.gone.wait(), LONG)
        task = asyncio.current_task()
        assert task is not None
        assert not task.cancelling()


async def test_silence_within_an_answer_is_bounded() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.say(stream_head() + chunk(b"one"))
        await line.until_gone()

    async with Peer(script) as peer, opened() as http:
        with pytest.raises(ProviderTimeout):
            await read(http, post(peer.url, bounds=Bounds(idle_seconds=0.1)))
        await asyncio.wait_for(peer.gone.wait(), LONG)


async def test_a_slow_drip_is_bounded_by_the_total() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.say(stream_head())
        while True:
            await line.say(chunk(b"."))
            await asyncio.sleep(0.02)

    clock, received = LoopClock(), asyncio.Event()
    bounds = Bounds(idle_seconds=60, total_seconds=20)
    async with Peer(script) as peer, opened() as http:
        listening = asyncio.create_task(listen(http, post(peer.url, bounds=bounds), received))
        await asyncio.wait_for(received.wait(), LONG)
        await clock.sleep(30)
        with pytest.raises(ProviderTimeout):
            await asyncio.wait_for(listening, LONG)


async def test_a_reader_that_takes_its_time_is_not_taken_for_silence() -> None:
    go_on = asyncio.Event()

    async def script(line: Line) -> None:
        await line.request()
        await line.say(stream_head())
        for word in (b"one", b"two", b""):  # each is waited for
            await go_on.wait()
            go_on.clear()
            await line.say(chunk(word))
        await line.until_gone()

    clock, seen = LoopClock(), []
    bounds = Bounds(idle_seconds=60)
    async with (
        Peer(script) as peer,
        opened() as http,
        http.send(post(peer.url, bounds=bounds)) as answer,
    ):
        go_on.set()
        async for piece in answer.chunks():
            seen.append(piece)
            await clock.sleep(100)
            go_on.set()
    assert seen == [b"one", b"two"]


@pytest.mark.parametrize(
    "answer",
    [
        b"garbage\r\n\r\n",
        b"HTTP/1.1 abc Word\r\n\r\n",
        b"HTTP/1.1 200 Word\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 Word\r\nx-long: " + b"a" * 20000 + b"\r\n\r\n",
        b"HTTP/1.1 200 Word\r\n" + b"x-many: 1\r\n" * 1000 + b"\r\n",
        b"HTTP/1.1 200 Word\r\ncontent-length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 Word\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        stream_head() + b"zz\r\nnot a length\r\n",
        stream_head() + chunk(b"one") + b"5\r\ncut",
    ],
)
async def test_an_answer_in_broken_framing_is_no_answer(answer: bytes) -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.say(answer)

    async with Peer(script) as peer, opened() as http:
        with pytest.raises(ProviderError):
            await read(http, post(peer.url))
    assert len(peer.requests) == 1


async def test_a_reset_within_the_answer_is_no_answer() -> None:
    received = asyncio.Event()

    async def script(line: Line) -> None:
        await line.request()
        await line.say(stream_head() + chunk(b"one"))
        await received.wait()
        line.reset()

    async with Peer(script) as peer, opened() as http:
        with pytest.raises(ProviderError):
            await listen(http, post(peer.url), received)


@pytest.mark.parametrize("by_reset", [False, True])
async def test_a_new_connection_that_dies_before_the_answer_is_not_tried_again(
    by_reset: bool,  # noqa: FBT001
) -> None:
    async def script(line: Line) -> None:
        await line.request()
        if by_reset:
            line.reset()

    async with Peer(script) as peer, opened() as http:
        with pytest.raises(ProviderUnavailable) as caught:
            await read(http, post(peer.url))
    assert not isinstance(caught.value.__cause__, NotSent)
    assert len(peer.requests) == 1
