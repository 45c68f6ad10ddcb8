"""Whether calls notice the people who watch them: a hop with and without ten open consoles.

One gateway is asked in windows, with nobody at the console and with ten who have it open: five
look at the list of runs and five at a run that goes on, with fifty words a second. They are once
administrators, who see the same, and once ten people who each see runs of their own alone: five
who call once a second, and look at the list of that; five whose run goes on.

Law 1. Both kinds of window are of one gateway under one load that never stops, short and in turns,
       each first as often as second, so that what the machine does meanwhile falls on both. The run
       that goes on does so in both.
Law 2. A window begins when every console was shown something, and counts only if all stay open.
       It is so long that each is shown something more within it: else it would tell what open
       streams cost, and nothing of what is read for them. Who was shown nothing is counted, and
       with too many of them nothing was measured.
Law 3. The figure is the median of the ratios of neighbours.
Law 4. It takes some minutes, whatever it is asked for, and says how far it is.
"""

import asyncio
import itertools
import json
import math
import statistics
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
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
WINDOWS: Final = 4  # of each kind in so long as others are measured for
USUAL_SECONDS: Final = 6.0  # with fewer there are fewer rounds
ROUNDS_EACH: Final = 2  # of one run that goes on
CALL_SECONDS: Final = 1.0  # between two calls of who looks at a list of her own
MOST_SILENT: Final = 0.1  # of the consoles, in all windows
OWN_RUNS: Final = 60  # of each who sees her own alone: more than a page has
LEAST_RATIO: Final = 0.97
WARM_SECONDS: Final = 3.0
FIRST_SECONDS: Final = 20.0  # until every console was shown something
OF_ALL, OF_HER_OWN = "administrators", "people with runs of their own"
_ROLES: Final = {OF_ALL: ("--role", "admin"), OF_HER_OWN: ("--role", "operator")}
# How many windows of each kind, and how long each is at least: a page rests for up to ten seconds
# (`carnet.console.live`) where ten people have one each, and for some two where they see the same.
_ROUNDS: Final = {OF_ALL: 16, OF_HER_OWN: 8}
_LEAST_SECONDS: Final = {OF_ALL: 4.0, OF_HER_OWN: 13.0}
_CHAT_MARK: Final = b'"chat.completion"'


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What a call costs while nobody watches, and while ten do."""

    who: str
    alone: list[float]  # requests for a CPU second, of each window
    watched: list[float]
    frames: list[int]  # that the consoles were sent, in each window
    silent: list[int]  # consoles that were shown nothing in it

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
    def is_measured(self) -> bool:
        """Whether nearly every console was shown something in every window."""
        return sum(self.silent) <= MOST_SILENT * CONSOLES * len(self.silent)

    @property
    def has_held(self) -> bool:
        return self.is_measured and self.ratio >= LEAST_RATIO


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
            length = max(seconds / WINDOWS, _LEAST_SECONDS[who])
            windows = Windows(running, site.cores, load, length)
            return await _rounds(windows, who, tokens, rounds_of(who, seconds))


def rounds_of(who: str, seconds: float) -> int:
    """How many windows of each kind there are: with fewer seconds than usual fewer."""
    share = min(seconds / USUAL_SECONDS, 1.0)
    return max(round(_ROUNDS[who] * share / ROUNDS_EACH), 1) * ROUNDS_EACH


class Windows:
    """Of one gateway, under one load."""

    def __init__(self, running: Gateway, cores: Cores, load: Clients, seconds: float) -> None:
        self.running = running
        self._cores = cores
        self._load = load
        self.seconds = seconds

    async def measure(self) -> float:
        """Requests for a CPU second."""
        first = Reading.now(self.running.pid, self._cores, self._load)
        await self._load.keep_going(self.seconds)
        last = Reading.now(self.running.pid, self._cores, self._load)
        window = Window.between(first, last).large_enough()
        return window.answered / window.cpu_seconds


async def _rounds(windows: Windows, who: str, tokens: Sequence[str], rounds: int) -> Watched:
    """All pairs of windows; the run that goes on is another one after some of them."""
    found = Watched(who=who, alone=[], watched=[], frames=[], silent=[])
    half = CONSOLES // 2
    of_her_own = who == OF_HER_OWN
    speakers = tokens[half:] if of_her_own else [windows.running.token]
    progress = Progress(who, rounds, windows.seconds)
    for begun in range(0, rounds, ROUNDS_EACH):
        runs = [f"bench-{begun}-{each}" for each in range(len(speakers))]
        paths = ["/console/live/runs"] * half
        paths += [f"/console/live/runs/{runs[each % len(runs)]}" for each in range(half)]
        async with (
            _speaking(windows.running, speakers, runs),
            _calling(windows.running, tokens[:half] if of_her_own else ()),
        ):
            for number in range(ROUNDS_EACH):
                progress.tell(begun + number)
                if number % 2:
                    found.alone.append(await windows.measure())
                await _watched(windows, tokens, paths, found)
                if not number % 2:
                    found.alone.append(await windows.measure())
    return found


async def _watched(
    windows: Windows, tokens: Sequence[str], paths: Sequence[str], found: Watched
) -> None:
    """A window with the consoles open."""
    async with _watching(windows.running, tokens, paths) as watchers:
        found.watched.append(await windows.measure())
        await watchers.keep_going(0)
        frames = [each.frames for each in watchers.readers]
        found.frames.append(sum(frames))
        found.silent.append(frames.count(0))


class Progress:
    """Says how far it is, and how long it may still take."""

    def __init__(self, who: str, rounds: int, seconds: float) -> None:
        self._who = who
        self._rounds = rounds
        self._each = 2 * seconds  # until one was measured
        self._since = time.perf_counter()

    def tell(self, ended: int) -> None:
        if ended:
            self._each = (time.perf_counter() - self._since) / ended
        left = (self._rounds - ended) * self._each
        print(
            f"{self._who}: round {ended + 1} of {self._rounds}, about {left:.0f} s left ...",
            file=sys.stderr,
            flush=True,
        )


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


@asynccontextmanager
async def _calling(running: Gateway, tokens: Sequence[str]) -> AsyncIterator[None]:
    """Each of them calls now and then, so that her list is another one when it is read again."""
    requests = [
        post(CHAT_PATH, chat_request("up"), {"authorization": f"Bearer {token}"})
        for token in tokens
    ]

    async def call(clients: Clients) -> None:
        while requests:
            for _ in requests:
                clients.send_now()
            if await clients.keep_going(CALL_SECONDS):
                return

    async with clients_at(
        running.port, itertools.cycle(requests), connections=len(requests), answer=whole(_CHAT_MARK)
    ) as clients:
        calling = asyncio.create_task(call(clients))
        try:
            yield
        finally:
            calling.cancel()
            with suppress(asyncio.CancelledError):
                await calling


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
        " windows with and without them, in turns"
    )
    for row in found.rows:
        length = max(found.seconds / WINDOWS, _LEAST_SECONDS[row.who])
        print(f"{'':<9} {row.who}: {len(row.alone)} windows of {length:g} s of each kind")
    print()
    print(
        f"{'':<30} {'alone':>9} {'watched':>9} {'ratio':>7} {'rounds':>13} {'error':>7}"
        f" {'frames':>7} {'silent':>7}"
    )
    for row in found.rows:
        alone, watched = (statistics.median(kind) for kind in (row.alone, row.watched))
        spread = f"{min(row.ratios):.3f}-{max(row.ratios):.3f}"
        print(
            f"{row.who:<30} {alone:>9,.0f} {watched:>9,.0f} {row.ratio:>7.3f} {spread:>13}"
            f" {row.error:>7.3f} {sum(row.frames):>7,} {sum(row.silent):>7,}"
        )
    print("\nrequests for a CPU second of the gateway; the ratio is the median of the rounds;")
    print(f"silent: of {CONSOLES} consoles in each window those that were shown nothing in it")
    for row in found.rows:
        print(f"{row.who}: at least {LEAST_RATIO}: {verdict(row)}")


def verdict(row: Watched) -> str:
    """Whether what was promised holds, where that was measured."""
    if not row.is_measured:
        return "NOT MEASURED: too many consoles were shown nothing"
    return "held" if row.has_held else "NOT HELD"


def consoles_json(found: Consoles) -> dict[str, Any]:
    """The same for machines."""
    rows = [
        {
            "who": row.who,
            "ratio": row.ratio,
            "ratios": row.ratios,
            "error": row.error,
            "frames": row.frames,
            "silent": row.silent,
            "alone": row.alone,
            "watched": row.watched,
        }
        for row in found.rows
    ]
    return {"machine": found.facts, "seconds": found.seconds, "consoles": rows}
