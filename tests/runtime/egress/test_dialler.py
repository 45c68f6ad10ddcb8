"""Making connections: several addresses, failures, encryption, and nothing left behind."""

import asyncio
import os
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from ipaddress import IPv4Address, ip_address
from typing import Any

import pytest

from carnet.errors import EgressRefused, ProviderUnavailable
from carnet.ports.world.http_client import NotSent
from carnet.runtime.egress.addresses import (
    Allowed,
    EgressRoute,
    IPAddress,
    find_route,
    read_destination,
)
from carnet.runtime.egress.connection import Connection
from carnet.runtime.egress.dialler import Dialler, in_turn
from carnet.testing.wait import until_so
from tests.runtime.peer import LONG, Line, Peer, leading_to, sockets

TRUST = ssl.create_default_context()


async def silent(line: Line) -> None:
    await line.until_gone()


@contextmanager
def stuck(port: int, host: str = "127.0.0.2") -> Iterator[str]:
    """An address that takes no connection and refuses none: its queue is full."""
    with socket.socket() as listener:
        listener.bind((host, port))
        listener.listen(0)
        queued = []
        try:
            for _ in range(4):
                one = socket.socket()
                queued.append(one)
                one.setblocking(False)  # noqa: FBT003
                one.connect_ex((host, port))
            yield host
        finally:
            for one in queued:
                one.close()


def named(port: int, scheme: str = "http") -> EgressRoute:
    return find_route(f"{scheme}://model.example:{port}/", "named", Allowed())


async def dial(addresses: Sequence[str], route: EgressRoute, seconds: float = LONG) -> Connection:
    lookup, _ = leading_to(*addresses)
    return await Dialler(lookup, TRUST).dial(route, seconds)


def test_the_two_families_take_turns() -> None:
    found = [ip_address(text) for text in ("::1", "::2", "::3", "1.1.1.1", "2.2.2.2")]
    assert [str(ip) for ip in in_turn(found)] == ["::1", "1.1.1.1", "::2", "2.2.2.2", "::3"]
    assert in_turn(found[:2]) == found[:2]


async def test_an_address_that_refuses_is_followed_by_the_next() -> None:
    async with Peer(silent) as peer:
        connection = await dial(["127.0.0.3", "127.0.0.2", "127.0.0.1"], named(peer.port))
        assert connection.is_open
        connection.abort()
        await asyncio.wait_for(peer.gone.wait(), LONG)
        assert peer.connections == 1


async def test_an_address_that_hangs_is_overtaken_and_left() -> None:
    async with Peer(silent) as peer:
        with stuck(peer.port) as hanging:
            before = sockets()
            connection = await dial([hanging, "127.0.0.1"], named(peer.port))
            assert connection.is_open
            connection.abort()
            await asyncio.wait_for(peer.gone.wait(), LONG)
            await until_so(lambda: sockets() <= before)


async def test_one_that_hangs_is_awaited_if_the_others_refuse() -> None:
    async with Peer(silent) as peer:
        with stuck(peer.port) as hanging:
            before = sockets()
            with pytest.raises(ProviderUnavailable) as caught:
                await dial([hanging, "127.0.0.3"], named(peer.port), seconds=0.6)
            assert caught.value.detail == "no connection in time"
            await until_so(lambda: sockets() <= before)


async def test_if_all_refuse_the_failure_says_that_nothing_was_sent() -> None:
    async with Peer(silent) as peer:
        with pytest.raises(ProviderUnavailable) as caught:
            await dial(["127.0.0.2", "127.0.0.3"], named(peer.port))
    assert isinstance(caught.value.__cause__, NotSent)
    assert "ConnectionRefusedError" in caught.value.detail


@pytest.mark.parametrize("hosts", [["127.0.0.2"], ["127.0.0.2", "127.0.0.4"]])
async def test_cancelling_leaves_no_socket_while_connecting(hosts: list[str], played: Any) -> None:
    async def scene() -> None:
        async with Peer(silent) as peer:
            with stuck(peer.port), stuck(peer.port, "127.0.0.4"):
                before = sockets()
                task = asyncio.create_task(dial(hosts, named(peer.port)))
                await until_so(lambda: sockets() == before + len(hosts))
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await until_so(lambda: sockets() <= before)

    await played(scene)


async def test_cancelling_at_any_moment_stays_a_cancellation_and_leaves_no_socket(
    played: Any,
) -> None:
    async def scene() -> None:
        async with Peer(silent) as peer:
            await asyncio.sleep(0)
            before = sockets()
            for scheme in ("http", "https"):
                for rounds in range(12):
                    task = asyncio.create_task(dial(["127.0.0.1"], named(peer.port, scheme)))
                    for _ in range(rounds):
                        await asyncio.sleep(0)
                    if task.cancel():
                        with pytest.raises(asyncio.CancelledError):
                            await task
                    else:
                        task.result().abort()
            await until_so(lambda: sockets() <= before)

    await played(scene)


async def test_encryption_that_is_not_agreed_on_in_time_is_given_up() -> None:
    async with Peer(silent) as peer:
        with pytest.raises(ProviderUnavailable) as caught:
            await dial(["127.0.0.1"], named(peer.port, "https"), seconds=0.2)
        assert isinstance(caught.value.__cause__, NotSent)
        await asyncio.wait_for(peer.gone.wait(), LONG)


async def test_a_name_that_no_lookup_can_read_has_no_address() -> None:
    async def lookup(host: str, port: int) -> Sequence[str]:  # noqa: ARG001
        host.encode("idna")
        raise AssertionError

    route = find_route(f"https://{'a' * 70}.example/", "named", Allowed())
    with pytest.raises(ProviderUnavailable, match="cannot be looked up") as caught:
        await Dialler(lookup, None).dial(route, LONG)
    assert isinstance(caught.value.__cause__, NotSent)


async def test_a_refusal_is_not_covered_up_by_another_address() -> None:
    judged: list[IPAddress] = []

    def may_dial(ip: IPAddress) -> bool:
        judged.append(ip)
        return len(judged) <= 2  # both when they were looked up, and neither when dialled

    async with Peer(silent) as peer:
        at = read_destination(f"http://model.example:{peer.port}/")
        with pytest.raises(EgressRefused):
            await dial(["127.0.0.1", "127.0.0.2"], EgressRoute(at, may_dial, reuse=False))
        assert peer.connections == 0


async def test_the_other_of_two_that_connect_at_once_is_closed() -> None:
    class Together(Dialler):
        """Holds every connection until two are there."""

        def __init__(self, addresses: Sequence[str]) -> None:
            super().__init__(leading_to(*addresses)[0], None)
            self.made: list[Connection] = []
            self._both = asyncio.Event()

        async def _connect(self, ip: IPAddress, route: EgressRoute) -> Connection:  # noqa: ARG002
            connection = await super()._connect(IPv4Address("127.0.0.1"), route)
            self.made.append(connection)
            if len(self.made) == 2:
                self._both.set()
            await self._both.wait()
            return connection

    async with Peer(silent) as peer:
        dialler = Together(["127.0.0.1", "127.0.0.2"])
        connection = await dialler.dial(named(peer.port), LONG)
        await until_so(lambda: sum(one.is_open for one in dialler.made) == 1)
        assert connection.is_open
        connection.abort()


async def test_small_requests_are_not_held_back_by_the_kernel(played: Any) -> None:
    async def scene() -> None:
        async with Peer(silent) as peer:
            connection = await dial(["127.0.0.1"], named(peer.port))
            sock = connection._transport.get_extra_info("socket")  # type: ignore[union-attr]  # noqa: SLF001
            with socket.socket(fileno=os.dup(sock.fileno())) as same:
                assert same.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            connection.abort()

    await played(scene)


async def test_a_scope_is_part_of_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the loop is sent, on a machine without IPv6 as well: the connection goes elsewhere."""
    loop = asyncio.get_running_loop()
    connect = loop.create_connection
    dialled: list[Any] = []

    async def elsewhere(made: Any, host: str, port: int, **given: Any) -> Any:
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        dialled.extend(sockaddr for *_, sockaddr in found)
        return await connect(made, "127.0.0.1", port, **given)

    monkeypatch.setattr(loop, "create_connection", elsewhere)
    async with Peer(silent) as peer:
        for address in ("::1", "::1%1"):
            (await dial([address], named(peer.port))).abort()
    assert dialled == [("::1", peer.port, 0, 0), ("::1", peer.port, 0, 1)]
