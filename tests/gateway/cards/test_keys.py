"""The set of keys of a real gateway."""

from pathlib import Path

from carnet.wire.crypto.jwks import read_keys
from tests.support.house import House, housed

PATH = "/.well-known/jwks.json"


async def test_a_key_that_was_revoked_is_shown_no_more(tmp_path: Path) -> None:
    async with housed(tmp_path) as house:
        (first,) = await shown(house)
        await house.gateway.store.keys.revoke(first, 1)
        second = await shown(house)
        assert second
        assert first not in second


async def shown(house: House) -> dict[str, bytes]:
    answer = await house.ask("GET", PATH)
    assert answer.headers["cache-control"] == "public, max-age=60"
    return read_keys(answer.body)
