"""Connections: which are used again, which are replaced, and that none is left behind."""

import asyncio
import os
import subprocess
import sys
from typing import Any

import pytest

from carnet import faults
from carnet.errors import ProviderUnavailable
from carnet.ports.world.http_client import NotSent, Unanswered
from carnet.runtime.egress.client import EgressClient
from carnet.testing.wait import until_so
from tests.runtime.peer import (
    LONG,
    Line,
    Peer,
    answering,
    chunk,
    opened,
    post,
    read,
    reply,
    stream_head,
)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  no Path: one descriptor is enough


# ---------------------------------------------------------------------- dead connections


def dying_after_one(answer: bytes, *, by_reset: bool = False) -> Any:
    """Answer one request a connection; the second one on it finds nobody."""

    async def script(line: Line) -> None:
        await line.request()
        await line.say(answer)
        if line.number == 1:
            await line.request()
            if by_reset:
                line.reset()
        else:
            await line.until_gone()

    return script


@pytest.mark.parametrize("by_reset", [False, True])
async def test_a_request_on_a_kept_connection_that_dies_is_not_sent_again(
    by_reset: bool,  # noqa: FBT001
) -> None:
    """R56: whoever asked for it counts how often it is sent."""
    async with Peer(dying_after_one(reply(b"ok"), by_reset=by_reset)) as peer, opened() as http:
        assert await read(http, post(peer.url)) == b"ok"
        with pytest.raises(ProviderUnavailable) as caught:
            await read(http, post(peer.url, b"again"))
        assert isinstance(caught.value.__cause__, Unanswered)
        assert [request.body for request in peer.requests] == [b"{}", b"again"]
        assert await read(http, post(peer.url, b"once more")) == b"ok"
    assert peer.connections == 2


async def test_where_one_kept_connection_was_dead_no_other_kept_one_is_used() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.say(reply(b"ok"))
        if line.number <= 2:
            await line.request()
        else:
            await line.until_gone()

    async with Peer(script) as peer, opened() as http:
        await asyncio.gather(read(http, post(peer.url)), read(http, post(peer.url)))
        assert peer.connections == 2
        with pytest.raises(ProviderUnavailable):
            await read(http, post(peer.url, b"again"))
        assert await read(http, post(peer.url, b"once more")) == b"ok"
    assert [request.body for request in peer.requests[2:]] == [b"again", b"once more"]


async def test_a_connection_that_the_peer_closed_while_idle_is_not_used() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.say(reply(b"ok"))

    async with Peer(script) as peer, opened() as http:
        for _ in range(3):
            assert await read(http, post(peer.url, headers={})) == b"ok"
            await asyncio.sleep(0.02)  # its farewell arrives
    assert peer.connections == 3


# ---------------------------------------------------------------------- leaving


async def test_leaving_before_the_end_closes_the_socket() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.say(stream_head() + chunk(b"one"))
        await line.until_gone()

    async with Peer(script) as peer, opened() as http:
        async with http.send(post(peer.url)) as answer:
            assert await anext(answer.chunks()) == b"one"
        await asyncio.wait_for(peer.gone.wait(), LONG)


@pytest.mark.parametrize("beginning", [b"", stream_head(), stream_head() + chunk(b"one")])
async def test_cancelling_closes_the_socket_wherever_it_was(beginning: bytes) -> None:
    reached = asyncio.Event()

    async def script(line: Line) -> None:
        await line.request()
        await line.say(beginning)
        reached.set()
        await line.until_gone()

    async with Peer(script) as peer, opened() as http:
        task = asyncio.create_task(read(http, post(peer.url)))
        await reached.wait()
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(peer.gone.wait(), LONG)


async def test_cancelling_does_not_wait_for_a_peer_that_reads_nothing() -> None:
    connected, cancelled = asyncio.Event(), asyncio.Event()

    async def script(line: Line) -> None:
        connected.set()
        await cancelled.wait()
        await line.until_gone()  # only now is anything read

    body = b"x" * (32 * 2**20)
    async with Peer(script) as peer, opened() as http:
        task = asyncio.create_task(read(http, post(peer.url, body)))
        await connected.wait()
        await asyncio.sleep(0.05)  # as much leaves as the line takes
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        cancelled.set()
        await asyncio.wait_for(peer.gone.wait(), LONG)
    assert peer.unread < len(body)  # what had not left stayed here


async def test_an_answer_before_the_request_was_taken_ends_the_connection() -> None:
    async def script(line: Line) -> None:
        if line.number == 1:
            await line.say(reply(b"too large", status=413))
            await asyncio.sleep(5)
        else:
            await line.request()
            await line.say(reply(b"ok"))

    async with Peer(script) as peer, opened() as http:
        async with http.send(post(peer.url, b"x" * (32 * 2**20))) as answer:
            assert (answer.status, await answer.read()) == (413, b"too large")
        assert await read(http, post(peer.url, headers={})) == b"ok"
    assert peer.connections == 2


async def test_requests_at_the_same_time_do_not_end_one_another() -> None:
    async def several(http: EgressClient, url: str) -> set[bytes]:
        return {await read(http, post(url)) for _ in range(20)}

    async with Peer(answering(reply(b"ok"))) as peer, opened() as http:
        seen = await asyncio.gather(*(several(http, peer.url) for _ in range(20)))
    assert seen == [{b"ok"}] * 20
    assert len(peer.requests) == 400
    assert peer.connections <= 20


async def test_nothing_leaves_after_the_client_was_closed() -> None:
    async with Peer(answering(reply(b"ok"))) as peer:
        async with opened() as http:
            await read(http, post(peer.url))
        with pytest.raises(ProviderUnavailable) as caught:
            await read(http, post(peer.url))
    assert isinstance(caught.value.__cause__, NotSent)
    assert len(peer.requests) == 1


async def test_many_abandoned_requests_leave_no_socket_behind() -> None:
    async def script(line: Line) -> None:
        await line.request()
        await line.say(stream_head() + chunk(b"one"))
        await line.until_gone()

    async with Peer(script) as peer, opened() as http:
        before = open_files()
        for _ in range(100):
            async with http.send(post(peer.url)) as answer:
                await anext(answer.chunks())
        await until_so(lambda: open_files() <= before + 2)


# ---------------------------------------------------------------------- crash points

SEND_ONE = """
import asyncio, sys, uvloop
from carnet.faults import passed
from carnet.ports.world.http_client import Outbound
from carnet.runtime.egress.client import EgressClient

async def main():
    http = EgressClient()
    async with http.send(Outbound(url=sys.argv[1], body=b"{}", headers={})) as answer:
        await answer.read()
    await http.close()
    print(sorted(passed()))

uvloop.run(main())
"""


async def send_one(url: str, **environment: str) -> "subprocess.CompletedProcess[bytes]":
    return await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", SEND_ONE, url],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        check=False,
    )


async def test_an_exchange_passes_every_point_of_its_way() -> None:
    async with Peer(answering(reply(b"ok"))) as peer:
        done = await send_one(peer.url, CARNET_NOTE_POINTS="1")
    points = ("before_connect", "done", "first_byte", "mid_event", "request_sent")
    assert done.stdout.decode().strip() == str([f"upstream.{name}" for name in points])


async def test_the_point_after_sending_is_passed_once_the_bytes_have_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(faults, "is_armed", True)
    monkeypatch.setattr(faults, "_passed", {})
    async with Peer(answering(reply(b"ok"))) as peer, opened() as http:
        await read(http, post(peer.url))
    assert faults.passed()["upstream.request_sent"] == 1


async def test_a_crash_after_the_request_was_sent_leaves_it_with_the_peer() -> None:
    async with Peer(answering(reply(b"ok"))) as peer:
        done = await send_one(peer.url, CRASH_AT="upstream.request_sent")
        assert done.returncode == -9
        await asyncio.wait_for(peer.asked.wait(), 30)  # they left; it may still be reading
        assert [request.body for request in peer.requests] == [b"{}"]
