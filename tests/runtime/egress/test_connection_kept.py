"""Kept connections: what spoils one, what may be said after one was lost, and how they end."""

import asyncio
import gc
from collections.abc import Sequence
from typing import Any

import pytest

from carnet.errors import ProviderError, ProviderTimeout, ProviderUnavailable
from carnet.ports.world.http_client import Bounds, NotSent
from carnet.runtime.egress import client
from carnet.runtime.egress.client import EgressClient
from carnet.runtime.egress.connection import MOST_AHEAD
from carnet.testing.wait import until_so
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

EVIL = reply(b"evil", status=500)


# ---------------------------------------------------------------------- what nobody asked for


async def test_an_answer_behind_an_answer_is_nobodys() -> None:
    async with Peer(answering(reply(b"ok") + EVIL)) as peer, opened() as http:
        for _ in range(3):
            async with http.send(post(peer.url)) as answer:
                assert (answer.status, await answer.read()) == (200, b"ok")
    assert peer.connections == 3


async def test_an_answer_before_the_question_is_nobodys(played: Any) -> None:
    async def scene() -> None:
        answered = asyncio.Event()
        go_on = asyncio.Event()

        async def script(line: Line) -> None:
            await line.request()
            await line.say(reply(b"ok"))
            if line.number == 1:
                await go_on.wait()
                await line.say(EVIL)
                answered.set()
            await line.until_gone()

        async with Peer(script) as peer, opened() as http:
            assert await read(http, post(peer.url)) == b"ok"
            go_on.set()
            await answered.wait()
            assert await read(http, post(peer.url)) == b"ok"
        assert peer.connections == 2

    await played(scene)


async def test_an_answer_that_has_no_body_but_a_length_ends_the_connection() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.say(head(204, {"content-length": str(len(EVIL))}))
        await line.request()
        await line.say(EVIL)

    async with Peer(script) as peer, opened() as http:
        for _ in range(2):
            async with http.send(post(peer.url)) as answer:
                assert (answer.status, await answer.read()) == (204, b"")
    assert peer.connections == 2


# ---------------------------------------------------------------------- more than is read at once


async def test_a_large_answer_is_whole_even_if_the_peer_has_gone(played: Any) -> None:
    body = bytes(range(256)) * (16 * 1024)

    async def scene() -> None:
        async def script(line: Line) -> None:
            await line.request()
            await line.say(reply(body))

        async with Peer(script) as peer, opened() as http, http.send(post(peer.url)) as answer:
            pieces = []
            async for piece in answer.chunks():
                pieces.append(piece)
                await asyncio.sleep(0)
        assert b"".join(pieces) == body
        assert len(pieces) > 1

    await played(scene)


async def test_a_connection_that_was_paused_serves_again(played: Any) -> None:
    body = b"x" * (8 * MOST_AHEAD)

    async def scene() -> None:
        async with Peer(answering(reply(body))) as peer, opened() as http:
            for _ in range(3):
                async with http.send(post(peer.url)) as answer:
                    await asyncio.sleep(0.02)  # it piles up
                    assert await answer.read() == body
        assert peer.connections == 1

    await played(scene)


async def test_leaving_a_paused_connection_ends_it(played: Any) -> None:
    async def scene() -> None:
        async def script(line: Line) -> None:
            await line.request()
            await line.say(stream_head())
            try:
                while True:
                    await line.say(chunk(b"x" * 65536))
            finally:
                line_ended.set()

        line_ended = asyncio.Event()
        async with Peer(script) as peer, opened() as http:
            async with http.send(post(peer.url)) as answer:
                (connection,) = http._open  # noqa: SLF001
                await until_so(lambda: connection._is_paused)  # noqa: SLF001
                answer._deadlines.end()  # noqa: SLF001  as when its time is over
                with pytest.raises(ProviderTimeout):
                    await answer.read()
            await asyncio.wait_for(line_ended.wait(), LONG)

    await played(scene)


# ---------------------------------------------------------------------- time


async def test_the_total_holds_while_a_connection_is_made() -> None:
    async def endless(host: str, port: int) -> Sequence[str]:  # noqa: ARG001
        await asyncio.sleep(LONG)
        return []

    bounds = Bounds(total_seconds=0.05, connect_seconds=LONG)
    async with opened(lookup=endless) as http:
        with pytest.raises(ProviderUnavailable) as caught:
            await asyncio.wait_for(read(http, post("https://b.example/", bounds=bounds)), LONG / 2)
    assert isinstance(caught.value.__cause__, NotSent)


async def test_nothing_is_sent_if_the_time_was_over_when_the_connection_came() -> None:
    async def stubborn(host: str, port: int) -> Sequence[str]:  # noqa: ARG001
        try:
            await asyncio.sleep(LONG)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
            await asyncio.sleep(0.02)
        return ["127.0.0.1"]

    bounds = Bounds(total_seconds=0.05, connect_seconds=LONG)
    async with Peer(answering(reply(b"ok"))) as peer, opened(lookup=stubborn) as http:
        with pytest.raises(ProviderUnavailable) as caught:
            await read(http, post(f"http://model.example:{peer.port}/", bounds=bounds))
    assert isinstance(caught.value.__cause__, NotSent)
    assert peer.requests == []


# ---------------------------------------------------------------------- lost connections


async def test_a_request_that_may_have_arrived_is_not_called_unsent() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.say(reply(b"ok"))
        await line.request()
        peer.stop_listening()

    async with Peer(script) as peer, opened() as http:
        assert await read(http, post(peer.url)) == b"ok"
        with pytest.raises(ProviderUnavailable) as caught:
            await read(http, post(peer.url))
    assert len(peer.requests) == 2  # the second one arrived
    assert not isinstance(caught.value.__cause__, NotSent)


async def test_an_answer_that_breaks_off_on_a_kept_connection_is_not_asked_for_again() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.say(reply(b"ok"))
        await line.request()
        await line.say(b"HTTP/1.1 200")

    async with Peer(script) as peer, opened() as http:
        assert await read(http, post(peer.url)) == b"ok"
        with pytest.raises(ProviderUnavailable):
            await read(http, post(peer.url))
    assert len(peer.requests) == 2


async def test_an_idle_connection_is_closed_after_a_while() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.say(reply(b"ok"))
        await line.until_gone()

    async with Peer(script) as peer, opened(keepalive_seconds=0.05) as http:
        assert await read(http, post(peer.url)) == b"ok"
        await asyncio.wait_for(peer.gone.wait(), LONG)
        await until_so(lambda: not http._open and not http._idle)  # noqa: SLF001


async def test_a_connection_that_is_used_now_and_then_is_kept() -> None:
    async with Peer(answering(reply(b"ok"))) as peer, opened(keepalive_seconds=LONG) as http:
        for _ in range(2):
            assert await read(http, post(peer.url)) == b"ok"
            http._sweep()  # noqa: SLF001  what its timer does
        assert len(http._open) == 1  # noqa: SLF001
    assert peer.connections == 1


async def test_a_connection_that_is_too_old_is_not_used_even_before_the_sweep() -> None:
    async with Peer(answering(reply(b"ok"))) as peer, opened(keepalive_seconds=LONG) as http:
        assert await read(http, post(peer.url)) == b"ok"
        (waiting,) = http._idle.values()  # noqa: SLF001
        waiting[0].idle_since -= 2 * LONG
        assert await read(http, post(peer.url)) == b"ok"
        assert len(http._open) == 1  # noqa: SLF001
    assert peer.connections == 2


async def test_only_so_many_idle_connections_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_MOST_IDLE", 2)
    all_here = asyncio.Barrier(5)

    async def script(line: Line) -> None:
        await line.request()
        await all_here.wait()
        await line.say(reply(b"ok"))
        await line.until_gone()

    async with Peer(script) as peer, opened() as http:
        await asyncio.gather(*(read(http, post(peer.url)) for _ in range(5)))
        assert len(http._open) == 2  # noqa: SLF001


async def test_only_so_many_routes_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_MOST_ROUTES", 2)
    async with Peer(answering(reply(b"ok"))) as peer, opened() as http:
        for number in range(5):
            assert await read(http, post(f"{peer.url}/{number}")) == b"ok"
        assert len(http._routes) <= 2  # noqa: SLF001
    assert peer.connections == 1


# ---------------------------------------------------------------------- the end of the client


@pytest.mark.parametrize("beginning", [b"", stream_head() + chunk(b"one")])
async def test_closing_the_client_ends_what_is_open_at_once(beginning: bytes) -> None:
    reached = asyncio.Event()

    async def script(line: Line) -> None:
        await line.request()
        await line.say(beginning)
        reached.set()
        await line.until_gone()

    async with Peer(script) as peer:
        http = EgressClient()
        task = asyncio.create_task(read(http, post(peer.url)))
        await reached.wait()
        await http.close()
        with pytest.raises((ProviderUnavailable, ProviderError)) as caught:
            await asyncio.wait_for(task, LONG)
        assert not isinstance(caught.value.__cause__, NotSent)
        await asyncio.wait_for(peer.gone.wait(), LONG)
        await http.close()  # once more does no harm


async def test_a_connection_that_comes_after_the_client_was_closed_is_not_used() -> None:
    looking, found = asyncio.Event(), asyncio.Event()

    async def lookup(host: str, port: int) -> Sequence[str]:  # noqa: ARG001
        looking.set()
        await found.wait()
        return ["127.0.0.1"]

    async def script(line: Line) -> None:
        await line.until_gone()

    async with Peer(script) as peer:
        http = EgressClient(lookup=lookup)
        task = asyncio.create_task(read(http, post(f"http://model.example:{peer.port}/")))
        await looking.wait()
        await http.close()
        found.set()
        with pytest.raises(ProviderUnavailable) as caught:
            await task
        assert isinstance(caught.value.__cause__, NotSent)
        await asyncio.wait_for(peer.gone.wait(), LONG)
    assert peer.unread == 0


async def test_an_answer_is_there_only_within_its_context() -> None:
    async with Peer(answering(reply(b"ok"))) as peer, opened() as http:
        async with http.send(post(peer.url)) as answer:
            pass
        with pytest.raises(RuntimeError, match="context"):
            answer.header("date")


@pytest.mark.parametrize("place", ["lookup", "handshake", "head", "body"])
async def test_cancelling_leaves_nothing_in_the_client(place: str, played: Any) -> None:
    async def scene() -> None:
        reached = asyncio.Event()
        lookup, _ = leading_to("127.0.0.1")

        async def endless(host: str, port: int) -> Sequence[str]:  # noqa: ARG001
            reached.set()
            await asyncio.sleep(LONG)
            return []

        async def script(line: Line) -> None:
            if place != "handshake":
                await line.request()
            if place == "body":
                await line.say(stream_head() + chunk(b"one"))
            reached.set()
            await line.until_gone()

        async with (
            Peer(script) as peer,
            opened(lookup=endless if place == "lookup" else lookup) as http,
        ):
            scheme = "https" if place == "handshake" else "http"
            url = f"{scheme}://model.example:{peer.port}/"
            task = asyncio.create_task(read(http, post(url)))
            await reached.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert not http._open  # noqa: SLF001
            assert not http._idle  # noqa: SLF001
            if place != "lookup":
                await asyncio.wait_for(peer.gone.wait(), LONG)

    await played(scene)


async def test_exchanges_leave_nothing_to_the_collector_of_cycles() -> None:
    broken = b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n"
    async with (
        Peer(answering(reply(b"ok"))) as peer,
        Peer(answering(broken)) as other,
        opened() as http,
    ):
        await read(http, post(peer.url))
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            for _ in range(100):
                await read(http, post(peer.url))
            for _ in range(10):
                with pytest.raises(ProviderError):
                    await read(http, post(other.url))
            gc.collect()
            left = {type(one).__name__ for one in gc.garbage if is_ours(one)}
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
    assert left == set()


def is_ours(one: object) -> bool:
    return type(one).__module__.startswith("carnet")
