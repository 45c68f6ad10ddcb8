"""The file of a socket behind a name: for the one destination that was configured so."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from carnet.errors import EgressRefused, ProviderUnavailable
from carnet.ports.world.http_client import NotSent, Outbound
from carnet.runtime.egress.client import EgressClient

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"


async def unknown(host: str, port: int) -> list[str]:
    raise OSError(port, host)


@asynccontextmanager
async def at_file() -> AsyncIterator[tuple[EgressClient, list[bytes]]]:
    """A client that knows a file, and the heads that came there."""
    heads: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                heads.append(await reader.readuntil(b"\r\n\r\n"))
                await reader.readexactly(2)
                writer.write(ANSWER)
        except asyncio.IncompleteReadError:
            writer.close()

    with TemporaryDirectory(prefix="carnet-") as folder:
        file = Path(folder) / "e.sock"
        server = await asyncio.start_unix_server(answer, file)
        client = EgressClient(sockets={"engine.invalid": str(file)}, lookup=unknown)
        try:
            async with server:
                yield client, heads
                await client.close()
        finally:
            await client.close()


def asking(host: str, **more: str) -> Outbound:
    return Outbound(url=f"http://{host}/engine/chat", body=b"{}", headers={}, **more)  # type: ignore[arg-type]  # of its kind


async def test_its_host_is_asked_at_the_file_and_its_connection_is_kept() -> None:
    async with at_file() as (client, heads):
        for _ in range(2):
            async with client.send(asking("engine.invalid")) as answer:
                assert await answer.read() == b"hello"
        assert [head.splitlines()[:2] for head in heads] == [
            [b"POST /engine/chat HTTP/1.1", b"host: engine.invalid"]
        ] * 2


async def test_no_other_name_leads_there_and_none_that_was_learned() -> None:
    async with at_file() as (client, heads):
        with pytest.raises(EgressRefused):
            async with client.send(asking("engine.invalid", kind="learned")):
                pass
        with pytest.raises(EgressRefused):
            await client.judge("https://engine.invalid/")
        with pytest.raises(ProviderUnavailable):
            async with client.send(asking("other.engine.invalid")):
                pass
        assert heads == []


async def test_a_file_that_nobody_listens_at_is_not_there() -> None:
    client = EgressClient(sockets={"engine.invalid": "/nowhere/e.sock"})
    with pytest.raises(ProviderUnavailable) as refused:
        async with client.send(asking("engine.invalid")):
            pass
    assert isinstance(refused.value.__cause__, NotSent)
    await client.close()
