"""The hop counters of other gateways through a whole gateway."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.house import House, housed
from tests.support.signing.signed import Sender, message

SENDER = Sender("agent://client-counted")
ME = "agent://acme.example"
HOPS = ("x-a2a-hop", "x-contextforge-uaid-hop")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with housed(tmp_path, senders=[SENDER]) as house:
        yield house


def named(header: str, value: str) -> dict[str, str]:
    return {header.replace("-", "_"): value}


@pytest.mark.parametrize("header", HOPS)
async def test_a_hop_bounds_the_chain_as_a_depth_does(house: House, header: str) -> None:
    assert (await house.chat("hi", **named(header, "3"))).status == 200
    for value in ("4", "9" * 20):
        refused = await house.chat("hi", **named(header, value))
        assert (refused.status, refused.json()["code"]) == (429, "bridge_depth_exceeded")
    final = await house.chat("echo", "onward", **named(header, "3"))
    assert final.json()["choices"][0]["message"]["content"] == "stopped at 4 of 4"


@pytest.mark.parametrize("header", HOPS)
async def test_the_largest_depth_counts_whichever_header_says_it(house: House, header: str) -> None:
    lower = {"x_tangle_forwarded_depth": "1"} | named(header, "4")
    higher = {"x_tangle_forwarded_depth": "4"} | named(header, "1")
    for fields in (lower, higher):
        refused = await house.chat("hi", **fields)
        assert (refused.status, refused.json()["error"]["observed"]) == (429, 4)


@pytest.mark.parametrize("header", HOPS)
@pytest.mark.parametrize("value", ["-1", "+1", "１", "0, 3", "1.5", "one"])
async def test_a_hop_that_is_none_is_refused(house: House, header: str, value: str) -> None:
    refused = await house.chat("hi", **named(header, value))
    assert (refused.status, refused.json()["code"]) == (400, "malformed_caller_context")
    assert refused.json()["error"]["header"] == header


@pytest.mark.parametrize("header", HOPS)
async def test_a_hop_must_not_stand_outside_a_signature(house: House, header: str) -> None:
    request = message(SENDER, ME)
    refused = await house.signed(request.beside((header, "1")))
    assert (refused.status, refused.headers["carnet-code"]) == (401, "header_not_signed")
    assert b"header_not_signed" not in (await house.signed(request)).body
