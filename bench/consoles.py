"""Whether calls notice the people who watch them: a hop with and without ten open consoles.

One gateway is asked in windows, with nobody at the console and with ten who have it open: five
look at the list of runs and five at a run that goes on, with fifty words a second. They are once
administrators, who see the same, and once ten people who each see runs of their own alone.

Law 1. Both kinds of window are of one gateway under one load that never stops, short and in turns,
       each first as often as second, so that what the machine does meanwhile falls on both. The run
       that goes on does so in both.
Law 2. A window begins when every console was shown something, and counts only if all stay open.
Law 3. The figure is the median of the ratios of neighbours.
"""

import json
import math
import statistics
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.bodies import CHAT_PATH, chat_request, post
from bench.cpu import Cores
from bench.load import Answer, Clients, Wrong, clients_at, events, whole
from bench.machine import facts
from bench.measures import Reading, Window
from bench.process import run
from bench.subjects import CARNET, CONNECTIONS, Gateway, Site, gateway

CONSOLES: Final = 10
ROUNDS: Final = 24  # windows of each kind
WINDOWS: Final = 4  # of each kind in so long as others are measured for
OWN_RUNS: Final = 60  # of each who sees her own alone: more than a page has
LEAST_RATIO: Final = 0.97
WARM_SECONDS: Final = 3.0
FIRST_SECONDS: Final = 20.0  # until every console was shown something
OF_ALL, OF_HER_OWN = "administrators", "people with runs of their own"
_ROLES: Final = {OF_ALL: ("--role", "admin"), OF_HER_OWN: ("--role", "operator")}
_CHAT_MARK: Final = b'"chat.completion"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What a call costs while nobody watches, and while ten do."""

    who: str
    alone: list[float]  # requests for a CPU second, of each window
    watched: list[float]
    frames: list[int]  # that the consoles were sent, in each window

    @property
    def ratios(self) -> list[float]:
        """Requests for a CPU second, against those with nobody watching, of each round."""
        return [watched / alone for alone, watched in zip(self.alone, self.watched, strict=True)]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ratios)

    @property
    def error(self) -> float:
        """The standard error of their mean."""
        return statistics.stdev(self.ratios) / math.sqrt(len(self.ratios))

    @property
    def has_held(self) -> bool:
        return self.ratio >= LEAST_RATIO


@dataclass(frozen=True, slots=True, kw_only=True)
class Consoles:
    """One run."""

    facts: dict[str, str]
    seconds: float
    rows: list[Watched]


async def consoles(site: Site, *, seconds: float) -> Consoles:
    """Both kinds of people, one after the other, each at a gateway of its own."""
    rows = [await _of(site, who, seconds) for who in _ROLES]
    return Consoles(facts=facts(site.folder, site.cores), seconds=seconds, rows=rows)


async def _of(site: Site, who: str, seconds: float) -> Watched:
    tokens: list[str] = []
    with gateway(site, prepare=lambda folder: tokens.extend(_people(folder, who))) as running:
        if who == OF_HER_OWN:
            await _have_runs(running, tokens)
        target = running.target("up")
        async with clients_at(
            target.port, target.requests, connections=CONNECTIONS, answer=whole(target.mark)
        ) as load:
            load.start()
            await load.keep_going(WARM_SECONDS)
            windows = Windows(running, site.cores, load, seconds / WINDOWS)
            return await _rounds(windows, who, tokens)


class Windows:
    """Of one gateway, under one load."""

    def __init__(self, running: Gateway, cores: Cores, load: Clients, seconds: float) -> None:
        self.running = running
        self._cores = cores
        self._load = load
        self._seconds = seconds

    async def measure(self) -> float:
        """Requests for a CPU second."""
        first = Reading.now(self.running.pid, self._cores, self._load)
        await self._load.keep_going(self._seconds)
        last = Reading.now(self.running.pid, self._cores, self._load)
        window = Window.between(first, last).large_enough()
        return window.answered / window.cpu_seconds


async def _rounds(windows: Windows, who: str, tokens: Sequence[str]) -> Watched:
    """All pairs of windows; the run that goes on is another one after some of them."""
    found = Watched(who=who, alone=[], watched=[], frames=[])
    half = CONSOLES // 2
    speakers = tokens[half:] if who == OF_HER_OWN else [windows.running.token]
    for begun in range(0, ROUNDS, WINDOWS):
        runs = [f"bench-{begun}-{each}" for each in range(len(speakers))]
        paths = ["/console/live/runs"] * half
        paths += [f"/console/live/runs/{runs[each % len(runs)]}" for each in range(half)]
        async with _speaking(windows.running, speakers, runs):
            for number in range(WINDOWS):
                if number % 2:
                    found.alone.append(await windows.measure())
                async with _watching(windows.running, tokens, paths) as watchers:
                    found.watched.append(await windows.measure())
                    await watchers.keep_going(0)
                    found.frames.append(sum(each.frames for each in watchers.readers))
                if not number % 2:
                    found.alone.append(await windows.measure())
    return found


def _people(folder: Path, who: str) -> Iterator[str]:
    """Ten of them, each with a token that may what she may."""
    for number in range(CONSOLES):
        name = f"watcher{number}"
        run([CARNET, "people", "add", name, *_ROLES[who]], folder=folder)
        scope = ("--scope", "*") if who == OF_ALL else ()
        words = ["--format", "json", "tokens", "create", name, "--person", name, *scope]
        yield str(json.loads(run([CARNET, *words], folder=folder))["token"])


async def _have_runs(running: Gateway, tokens: Sequence[str]) -> None:
    for token in tokens:
        request = post(CHAT_PATH, chat_request("up"), {"authorization": f"Bearer {token}"})
        async with clients_at(
            running.port, iter([request] * OWN_RUNS), connections=1, answer=whole(_CHAT_MARK)
        ) as clients:
            clients.start()
            if not await clients.keep_going(FIRST_SECONDS):
                raise Wrong(f"{clients.answered} of {OWN_RUNS} runs had ended in time")


@asynccontextmanager
async def _speaking(
    running: Gateway, tokens: Sequence[str], runs: Sequence[str]
) -> AsyncIterator[None]:
    """Runs that go on, word by word."""
    body = chat_request("trickle", stream=True)
    requests = [
        post(CHAT_PATH, body, {"authorization": f"Bearer {token}", "x-tangle-runid": name})
        for token, name in zip(tokens, runs, strict=True)
    ]
    async with clients_at(
        running.port, iter(requests), connections=len(requests), answer=events
    ) as clients:
        clients.start()
        while clients.events < len(requests):
            await clients.keep_going(0.1)
        yield


class Shown:
    """What one console is sent."""

    def __init__(self) -> None:
        self.frames = 0

    @property
    def shown(self) -> bool:
        return self.frames > 0

    def feed(self, piece: bytes) -> None:
        self.frames += piece.count(b"\n\n")

    def is_right(self) -> bool:
        return False  # it ends when nobody looks any more

    def excerpt(self) -> str:
        return f"{self.frames} frames, and then its end"


class Watchers(Clients):
    """The consoles."""

    def __init__(self, requests: Iterator[bytes]) -> None:
        super().__init__(requests)
        self.readers: list[Shown] = []

    def reader(self, _: Clients) -> Answer:
        self.readers.append(Shown())
        return self.readers[-1]


@asynccontextmanager
async def _watching(
    running: Gateway, tokens: Sequence[str], paths: Sequence[str]
) -> AsyncIterator[Watchers]:
    """Consoles that are open, each of somebody else."""
    watchers = Watchers(
        f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n\r\n".encode()
        for token, path in zip(tokens, paths, strict=True)
    )
    try:
        await watchers.connect(running.port, len(paths), watchers.reader)
        watchers.start()
        waited = 0.0
        while not all(each.shown for each in watchers.readers):
            await watchers.keep_going(0.1)
            waited += 0.1
            if waited > FIRST_SECONDS:
                raise Wrong("a console was shown nothing")
        for each in watchers.readers:
            each.frames = 0
        yield watchers
    finally:
        watchers.close()


def show_consoles(found: Consoles) -> None:
    """Print the figures, and whether what was promised holds."""
    for name, fact in found.facts.items():
        print(f"{name:<9} {fact}")
    print(
        f"{'method':<9} {CONSOLES} consoles, half at the list and half at a run that goes on;"
        f" {ROUNDS} windows of {found.seconds / WINDOWS:g} s with and without them, in turns\n"
    )
    print(f"{'':<30} {'alone':>9} {'watched':>9} {'ratio':>7} {'rounds':>13} {'error':>7}  frames")
    for row in found.rows:
        alone, watched = (statistics.median(kind) for kind in (row.alone, row.watched))
        spread = f"{min(row.ratios):.3f}-{max(row.ratios):.3f}"
        print(
            f"{row.who:<30} {alone:>9,.0f} {watched:>9,.0f} {row.ratio:>7.3f} {spread:>13}"
            f" {row.error:>7.3f} {sum(row.frames):>7,}"
        )
    print("\nrequests for a CPU second of the gateway; the ratio is the median of the rounds")
    for row in found.rows:
        print(f"{row.who}: at least {LEAST_RATIO}: {'held' if row.has_held else 'NOT HELD'}")


def consoles_json(found: Consoles) -> dict[str, Any]:
    """The same for machines."""
    rows = [
        {
            "who": row.who,
            "ratio": row.ratio,
            "ratios": row.ratios,
            "error": row.error,
            "frames": row.frames,
            "alone": row.alone,
            "watched": row.watched,
        }
        for row in found.rows
    ]
    return {"machine": found.facts, "seconds": found.seconds, "consoles": rows}
