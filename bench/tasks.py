"""Whether calls that somebody waits for notice the work that waits beside them.

Two gateways, each with a store of its own, are asked in turns. One has nothing else to do. The
other has tasks that wait for an agent which is slow, and webhooks for a receiver that is down.

Law 1. Both get the same load in windows of the same length, in turns, each first as often as
       second, so that what the machine does meanwhile falls on both. Who is not asked is paused.
Law 2. The tasks are there before the first window and are still there after the last.
"""

import itertools
import json
import statistics
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.bodies import encode, post
from bench.cpu import Cores
from bench.load import Wrong, clients_at, whole
from bench.measures import Throughput, Window, throughput
from bench.subjects import CONNECTIONS, Gateway, Site, gateway
from bench.turns import paused
from carnet.testing.address import Address

TASKS = 10_000
DELIVERIES = 1000
ROUNDS = 4  # windows of each gateway
WARM_SECONDS = 1.0
RUNNING = 4  # tasks of one agent at once: four of the slow ones end in a second
SLOW, QUICK = "slow", "echo"
ACCEPTED = b'"accepted"'
MOST_SECONDS = 120.0  # until what is sent before the windows is taken on
LOOK_SECONDS = 0.2

_AGENT = """

import asyncio


@carnet.agent("slow")
async def slow(visit):
    await asyncio.sleep(1)
    return visit.text
"""
_SETTINGS = """
[agents.slow]
kind = "python"
target = "agents:slow"

[egress]
allow = ["127.0.0.1:{down}"]

[limits]
tasks_per_agent = {running}
tasks_per_sender = {tasks}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """What a call costs with nothing beside it, and beside tasks and deliveries."""

    alone: list[Throughput]
    laden: list[Throughput]
    tasks: int  # that waited at the last window's end
    deliveries: int  # that had been written when the first one began

    @property
    def ratio(self) -> float:
        """Requests for a CPU second, against those of the gateway without tasks."""
        return per_cpu_second(self.laden) / per_cpu_second(self.alone)

    @property
    def p50_ratio(self) -> float:
        """The same of the median latency under full load."""
        return p50(self.laden) / p50(self.alone)

    @property
    def windows(self) -> list[Window]:
        return [each.window for each in (*self.alone, *self.laden)]


def per_cpu_second(rounds: list[Throughput]) -> float:
    """Over all windows."""
    answered = sum(each.window.answered for each in rounds)
    return answered / sum(each.window.cpu_seconds for each in rounds)


def p50(rounds: list[Throughput]) -> float:
    """The middle of the medians."""
    return statistics.median(each.p50 for each in rounds)


async def beside(site: Site, *, tasks: int, seconds: float) -> Beside:
    """Fill one of two gateways, then ask them in turns."""
    nobody = Address()  # listens there
    down = nobody.port
    with nobody, gateway(site) as alone, laden_gateway(site, down, tasks) as laden:
        await _have_accepted(laden, QUICK, DELIVERIES, down)
        _wait_until_idle(laden)
        await _have_accepted(laden, SLOW, tasks, down)
        await _round(alone, laden, WARM_SECONDS, site.cores)  # both have had such calls before
        rounds = []
        for number in range(ROUNDS):
            pair = (alone, laden) if number % 2 else (laden, alone)
            found = await _round(*pair, seconds, site.cores)
            rounds.append(found if number % 2 else found[::-1])
        waiting = queued(laden)
    if waiting < tasks / 2:
        raise Wrong(f"only {waiting} of {tasks} tasks were still waiting at the end")
    return Beside(
        alone=[first for first, _ in rounds],
        laden=[second for _, second in rounds],
        tasks=waiting,
        deliveries=DELIVERIES,
    )


@contextmanager
def laden_gateway(site: Site, down: int, tasks: int) -> Iterator[Gateway]:
    """A gateway that takes so many tasks on and may try to reach a receiver that is down."""

    def prepare(folder: Path) -> None:
        room = tasks + DELIVERIES
        with (folder / "carnet.toml").open("a") as settings:
            settings.write(_SETTINGS.format(down=down, running=RUNNING, tasks=room))
        with (folder / "agents.py").open("a") as agents:
            agents.write(_AGENT)

    with gateway(site, prepare=prepare) as running:
        yield running


async def _have_accepted(laden: Gateway, agent: str, count: int, down: int) -> None:
    """Ask for so many tasks, each with a callback."""
    message = {"role": "user", "content": "hello"}
    callback = f"http://127.0.0.1:{down}/hook"
    body = encode({"model": agent, "messages": [message], "callback": callback})
    request = post("/tasks", body, {"authorization": f"Bearer {laden.token}"})
    requests = itertools.repeat(request, count)
    async with clients_at(
        laden.port, requests, connections=CONNECTIONS, answer=whole(ACCEPTED)
    ) as clients:
        clients.start()
        if not await clients.keep_going(MOST_SECONDS):
            raise Wrong(f"{clients.answered} of {count} tasks were accepted")


async def _round(
    one: Gateway, other: Gateway, seconds: float, cores: Cores
) -> tuple[Throughput, Throughput]:
    with paused([other.pid]):
        first = await throughput(one.target("up"), seconds=seconds, cores=cores)
    with paused([one.pid]):
        return first, await throughput(other.target("up"), seconds=seconds, cores=cores)


def queued(at: Gateway) -> int:
    """How many tasks wait, by the word of the gateway."""
    url = f"http://127.0.0.1:{at.port}/agent/health"
    with urllib.request.urlopen(url, timeout=10) as answer:
        return int(json.load(answer)["load"]["queuedTasks"])


def _wait_until_idle(at: Gateway) -> None:
    deadline = time.monotonic() + MOST_SECONDS
    time.sleep(2 * LOOK_SECONDS)
    while queued(at):
        if time.monotonic() > deadline:
            raise Wrong("the first tasks had not ended in time")
        time.sleep(LOOK_SECONDS)
