"""A stamp that no file of the package knows: one row, and it is read, enforced and written."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from carnet.core.chain.carnet import Carnet, Mark
from carnet.wire.grammar.headers import Headers
from carnet.wire.stamps import ROWS
from carnet.wire.stamps.stamp import Leaving, Metadata, Reading, Stamp, Written
from tests.support.house import House, housed
from tests.support.signing.signed import Sender, message

SENDER = Sender("agent://client-stamped")
ME = "agent://acme.example"


def read(headers: Headers, metadata: Metadata, /, *, last_depth: int) -> Reading | None:
    del metadata
    depth = headers.read_count("x-relay-count")
    run = headers.visible("x-relay-run", max_bytes=64)
    return Reading(mark=Mark(stamp="relay", depth=depth, last_depth=last_depth, run=run))


def write(carnet: Carnet, leaving: Leaving, /) -> Written:
    del leaving
    return Written(headers={"x-relay-count": str(carnet.depth), "x-relay-run": carnet.run})


RELAY = Stamp(name="relay", prefixes=("x-relay-",), last_depth=2, read=read, write=write)


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with housed(tmp_path, senders=[SENDER], stamps=(*ROWS, RELAY)) as house:
        yield house


async def test_it_is_read_and_bounds_the_chain(house: House) -> None:
    answer = await house.chat("hi", x_relay_count="2", x_relay_run="run-7")
    assert (answer.status, answer.headers["x-tangle-runid"]) == (200, "run-7")
    refused = await house.chat("hi", x_relay_count="3", x_relay_run="run-7")
    assert refused.status == 429
    assert refused.json()["error"]["limit"] == 3
    final = await house.chat("echo", "onward", x_relay_count="2", x_relay_run="run-8")
    text = final.json()["choices"][0]["message"]["content"]
    assert text == "stopped at 3 of 3"


async def test_it_is_merged_with_the_others(house: House) -> None:
    both = {"x_relay_run": "run-7", "x_relay_count": "1", "x_tangle_runid": "run-8"}
    refused = await house.chat("hi", **both)
    assert (refused.status, refused.json()["code"]) == (400, "chain_mismatch")


async def test_what_is_malformed_in_it_is_refused(house: House) -> None:
    refused = await house.chat("hi", x_relay_count="one")
    assert (refused.status, refused.json()["code"]) == (400, "malformed_caller_context")
    fields = {"x_relay_count": "1"}
    alike = await house.ask("POST", "/v1/chat/completions", {}, headers=fields)
    assert (alike.status, alike.json()["error"]["header"]) == (400, "x-relay-*")


async def test_it_must_not_stand_outside_a_signature(house: House) -> None:
    request = message(SENDER, ME)
    refused = await house.signed(request.beside(("x-relay-count", "1")))
    assert (refused.status, refused.headers["carnet-code"]) == (401, "header_not_signed")
    assert b"header_not_signed" not in (await house.signed(request)).body


class Upstream:
    """Somebody else's gateway: it keeps the heads of requests, and answers none of them well."""

    def __init__(self) -> None:
        self.heads: list[str] = []
        self.port = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())
        writer.write(b"HTTP/1.1 503 No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()


@asynccontextmanager
async def upstream() -> AsyncIterator[Upstream]:
    there = Upstream()
    server = await asyncio.start_server(there.answer, "127.0.0.1", 0)
    there.port = server.sockets[0].getsockname()[1]
    async with server:
        yield there


PEERS = """
[limits]
retries = 0

[peers."b.example"]
url = "http://127.0.0.1:{port}"

[agents.away]
kind = "tangle"
url = "http://127.0.0.1:{port}/v1"
token = {{ env = "AWAY" }}
"""


async def test_it_is_written_to_peers_and_covered_by_our_signature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWAY", "ck_somebody")
    async with upstream() as there:
        config = PEERS.format(port=there.port)
        async with housed(tmp_path, config, stamps=(*ROWS, RELAY)) as house:
            headers = {"x_relay_count": "1", "x_relay_run": "run-9"}
            await house.chat("hi", "away", **headers)
            await house.chat("hi", "@echo@b.example", **headers)
    by_token, signed = (head for head in there.heads if head.startswith("post"))
    assert "\r\nx-relay-count: 2\r\n" in by_token
    assert "\r\nx-relay-run: run-9\r\n" in by_token
    covered = next(line for line in signed.splitlines() if line.startswith("signature-input:"))
    assert '"x-relay-count"' in covered
    assert '"x-relay-run"' in covered
