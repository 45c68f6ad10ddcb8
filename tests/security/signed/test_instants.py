"""A nonce at every instant of its life: refused again and again, with no gap at either end (A12).

The whole application runs in this process, on a clock that is moved by hand.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import pytest

from carnet.assembly.gateway import build
from carnet.config import Settings, load
from carnet.http.link import LINE, Line
from carnet.ports.trust.keys import PinnedKey
from carnet.runtime.system import SystemIds
from carnet.stores.open import Store
from carnet.testing.clock import FakeClock
from tests.stores.support.scenes import Place
from tests.support.organisation import Organisation
from tests.support.signing.signed import Sender, Signed, message, rfc3339

ME = "agent://acme.example"
TICK = 0.000_001
US = 1_000_000


class House:
    """The application, the clock it reads, and what it was last asked."""

    def __init__(self, settings: Settings, store: Store, clock: FakeClock, sender: Sender) -> None:
        self.gateway = build(settings, store, clock, SystemIds())
        self.clock = clock
        self.sender = sender
        self._settings = settings

    def start_anew(self) -> None:
        """Another application over the same store, which remembers nothing itself."""
        self.gateway = build(self._settings, self.gateway.store, self.clock, SystemIds())

    def request(self, ahead: float) -> Signed:
        """One whose moment is so many seconds ahead of ours."""
        at = self.clock.wall_us() / US + ahead
        return message(self.sender, ME, timestamp=rfc3339(at), signing={"created": int(at)})

    async def send(self, request: Signed) -> tuple[int, str]:
        """The status, and our own code of a refusal."""
        events: list[dict[str, Any]] = []
        parts = [{"type": "http.request", "body": request.body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if parts:
                return parts.pop()
            await asyncio.Event().wait()
            return {}

        async def send(event: Any) -> None:
            events.append(event)

        await self.gateway.app(scope_of(request), receive, send)
        fields = {name.decode(): value.decode() for name, value in events[0]["headers"]}
        return events[0]["status"], fields.get("carnet-code", "")


def scope_of(request: Signed) -> dict[str, Any]:
    fields = [("host", "127.0.0.1"), *request.headers, ("content-length", str(len(request.body)))]
    return {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": "http",
        "path": request.target,
        "raw_path": request.target.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(name.lower().encode(), value.encode()) for name, value in fields],
        "client": ("127.0.0.1", 5000),
        "server": ("127.0.0.1", 8700),
        LINE: Line(),
    }


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A configuration with the echo agent."""
    return Organisation(tmp_path_factory.mktemp("instants"), "acme.example").folder


@pytest.fixture
async def house(folder: Path, tmp_path: Path) -> AsyncIterator[House]:
    place, sender = Place(tmp_path), Sender("agent://client-instants")
    store = await place.start()
    await store.pinned.pin(PinnedKey(sender=sender.identity, public=sender.public_raw))
    house = House(load(folder / "carnet.toml", {}), store, place.clock, sender)
    try:
        yield house
    finally:
        await house.gateway.close()


async def later(house: House, moments: Iterable[float]) -> AsyncIterator[float]:
    """Let the time pass from one moment to the next; expired nonces are forgotten on the way."""
    begun = house.clock.wall_us()
    for moment in moments:
        house.clock.advance(moment - (house.clock.wall_us() - begun) / US)
        await house.gateway.store.upkeep()
        yield moment


def instants(ahead: float) -> list[float]:
    """Every few seconds, and just before, at and after each moment at which something ends."""
    ends = (300.0, 305.0, 300.0 + ahead, 305.0 + ahead, 360.0, 365.0)
    around = [end + step for end in ends for step in (-1.0, -TICK, 0.0, TICK, 1.0)]
    return sorted(moment for moment in {*range(0, 720, 7), *around} if moment >= 0)


@pytest.mark.parametrize("ahead", [0.0, 30.0, 60.0, -1.0, -299.0, -300.0])
async def test_a_request_is_accepted_once_and_at_no_later_instant(
    house: House, ahead: float
) -> None:
    """A12, I6: whenever it comes again, it is known or out of its time."""
    request = house.request(ahead)
    assert await house.send(request) == (200, "")
    replies = [await house.send(request) async for _ in later(house, instants(ahead))]
    assert {status for status, _ in replies} == {401}
    codes = [code for _, code in replies]
    assert set(codes) == {"nonce_replayed", "timestamp_out_of_window"}
    assert sorted(codes) == codes  # first known, then out of time, and no way back
    assert await house.send(house.request(0.0)) == (200, "")


async def test_the_window_ends_where_it_should(house: House) -> None:
    """A16, F24: to the microsecond."""
    for ahead, code in ((60.0, ""), (60.0 + TICK, "timestamp_out_of_window")):
        assert (await house.send(house.request(ahead)))[1] == code
    for ahead, code in ((-300.0, ""), (-300.0 - TICK, "timestamp_out_of_window")):
        assert (await house.send(house.request(ahead)))[1] == code


@pytest.mark.parametrize("step", [-600.0, -3600.0, 30.0])
async def test_a_clock_that_is_set_gives_no_nonce_back(house: House, step: float) -> None:
    """F23: also when it goes back to before the request was made."""
    request = house.request(0.0)
    assert await house.send(request) == (200, "")
    house.clock.jump(step)
    assert (await house.send(request))[0] == 401
    house.clock.jump(-step)
    assert await house.send(request) == (401, "nonce_replayed")


async def test_the_memory_of_a_process_is_not_what_refuses(house: House) -> None:
    """A11, D4: without it the store says the same."""
    request = house.request(0.0)
    assert await house.send(request) == (200, "")
    house.start_anew()
    assert await house.send(request) == (401, "nonce_replayed")
