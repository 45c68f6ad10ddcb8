"""A stamp that no file of the package knows: one row, and it is read, enforced and protected."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from carnet.core.carnet import Carnet, Mark
from carnet.wire.headers import Headers
from carnet.wire.stamp import Leaving, Metadata, Reading, Stamp, Written
from carnet.wire.stamps import ROWS
from tests.support.house import House, housed
from tests.support.signed import Sender, message

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
