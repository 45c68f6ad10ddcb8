"""Behind real proxies (A49): what a proxy reads as one request is one here, or is refused."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from msgspec import Struct

from tests.edge.behind.framings import HEADS, framings
from tests.edge.behind.proxies import Tap, caddy, envoy
from tests.edge.wire import Wire
from tests.support.organisation import Organisation

RAW = framings()
AT_ONCE = 64
# A proxy gives a request two seconds, and cuts off what it has forwarded of one that takes longer.
# What a busy machine did not come to in that time is asked again, where it is not one of so many.
MOST_ROUNDS = 3
LIMITS = "\n[limits]\nheader_seconds = 1\nbody_seconds = 2\n"  # where no proxy has its own
START = {"caddy": caddy, "envoy": envoy}
# What one of them forwards and our edge refuses: a method that is none, and two hosts made one.
REFUSED = {HEADS[name].replace(b"{path}", b"outer") for name in ("lower", "two hosts")}

Proxy = Callable[[Path, Tap], AbstractContextManager[int]]
pytestmark = pytest.mark.timeout(600)


class Reading(Struct, frozen=True):
    """What was made of all of them: requests by their names."""

    forwarded: Counter[str]  # by the proxy, as requests of their own
    seen: Counter[str]  # by the application

    @property
    def missed(self) -> set[str]:
        """What was forwarded and never came: a proxy may forward again what was cut off."""
        return self.forwarded.keys() - self.seen.keys()


@contextmanager
def gateway(folder: Path, limits: str = "") -> Iterator[Organisation]:
    """A gateway whose log tells which requests its application was asked."""
    acme = Organisation(folder, "acme.example")
    acme.configure(limits)
    acme.start()
    yield acme
    acme.stop()


def ask_all(port: int, asked: Iterable[bytes] = RAW.values()) -> None:
    """Each of them on a connection of its own, until it is closed."""

    def ask(raw: bytes) -> None:
        with Wire(port) as wire:
            wire.send(raw)
            wire.read_to_end()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(ask, asked))


def seen_by(acme: Organisation) -> Counter[str]:
    """What the application was asked: nothing is served at these paths, and it says so."""
    lines = [json.loads(line) for line in acme.log_lines() if '"not_found"' in line]
    return Counter(line["correlation_id"] for line in lines if line["correlation_id"][:1] == "r")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Counter[str]:
    """What our own reader makes of them, with no proxy before it."""
    with gateway(tmp_path_factory.mktemp("alone"), LIMITS) as acme:
        ask_all(acme.port)
    return seen_by(acme)


@pytest.fixture(scope="module", params=START)
def behind(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Reading:
    """What a proxy made of them, and what came of that."""
    start: Proxy = START[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    with gateway(folder / "acme") as acme:
        tap = Tap(acme.port)
        (folder / "proxy").mkdir()
        with start(folder / "proxy", tap) as port:
            ask_all(port)
            for _ in range(MOST_ROUNDS):
                missed = Reading(tap.forwarded(), seen_by(acme)).missed
                ask_all(port, [RAW[name] for name in {each.partition("-")[0] for each in missed}])
        tap.close()
    return Reading(tap.forwarded(), seen_by(acme))


def of(reading: Counter[str], name: str) -> Counter[str]:
    """What was read of one of them."""
    return Counter(
        {each: n for each, n in reading.items() if each.partition("-")[0] == name},
    )


def test_the_application_sees_what_the_proxy_forwarded_and_nothing_else(behind: Reading) -> None:
    assert behind.seen - behind.forwarded == Counter()
    missed = {RAW[name.partition("-")[0]].split(b"x-corr")[0] for name in behind.missed}
    assert missed <= REFUSED


def test_what_a_proxy_reads_as_one_request_is_no_more_than_one_here(
    alone: Counter[str], behind: Reading
) -> None:
    """Had it passed the bytes on as they came. What it refuses comes through it to nobody."""
    read = {name: (of(alone, name), of(behind.forwarded, name)) for name in RAW}
    assert {name: both for name, both in read.items() if both[1] and both[0] - both[1]} == {}


def test_the_proxies_and_our_reader_took_some_and_refused_most(
    alone: Counter[str], behind: Reading
) -> None:
    """So that the two tests before are about something."""
    for reading in (alone, behind.forwarded):
        assert 20 <= len({name.partition("-")[0] for name in reading}) <= len(RAW) // 3
        assert sum(name.endswith("-hidden") for name in reading) >= 5  # it was none of the body's
