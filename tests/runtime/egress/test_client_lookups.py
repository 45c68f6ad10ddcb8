"""Looking names up: one that hangs keeps nobody waiting but those who name such."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from carnet.errors import ProviderUnavailable
from carnet.ports.world.http_client import Bounds
from carnet.runtime.egress.client import LEARNED_LOOKUPS
from carnet.testing.wait import until_so
from tests.runtime.peer import Peer, answering, opened, post, read, reply

IMPATIENT = Bounds(connect_seconds=0.05)


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The names below hangs.example that are being looked up: until the end, nobody answers."""
    over, asked, real = threading.Event(), list[str](), socket.getaddrinfo

    def resolve(host: str, port: int, **more: Any) -> Any:
        if host.endswith(".hangs.example"):
            asked.append(host)
            over.wait(60)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return real("127.0.0.1" if host == "b.example" else host, port, **more)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    yield asked
    over.set()


async def test_names_of_strangers_that_hang_do_not_hold_the_names_of_peers(
    hanging: list[str],
) -> None:
    async with Peer(answering(reply(b"{}"))) as peer, opened() as http:

        async def learned(number: int) -> None:
            url = f"https://n{number}.hangs.example/"
            with pytest.raises(ProviderUnavailable):
                await read(http, post(url, kind="learned", bounds=IMPATIENT))

        await asyncio.gather(*map(learned, range(4 * LEARNED_LOOKUPS)))
        await until_so(lambda: len(hanging) == LEARNED_LOOKUPS)  # and no more than these
        assert await read(http, post(f"http://b.example:{peer.port}/")) == b"{}"
