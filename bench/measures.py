"""What is measured, and how long.

Law 1. Time on the CPU is that of the process under test alone, read at both ends of a window in
which the load does not stop; the warm-up is before the window.
Law 2. Every measurement ends by itself: it has a length in seconds or in requests.
"""

import itertools
import os
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from bench.bodies import CHAT_PATH, COMPLETION_ID, chat_request, post
from bench.cpu import Cores, busy_seconds, tree_seconds
from bench.load import Clients, Latencies, Wrong, clients_at, events, open_loop, whole
from bench.subjects import CONNECTIONS, Gateway, Target
from bench.upstream import BURST_EVENTS

RATE = 200  # requests a second of the open loop
BURST_ROUNDS = 10  # streams one after the other on each connection: one round is too short a time
BURST_SECONDS = 60.0  # a burst that is not over by then has failed
SYNC_COUNT = 200
SYNC_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The state of a measurement at one moment."""

    at: float
    cpu: float
    core_busy: float
    answered: int
    events: int

    @classmethod
    def now(cls, pid: int, cores: Cores, clients: Clients) -> "Reading":
        return cls(
            at=time.perf_counter(),
            cpu=tree_seconds(pid),
            core_busy=busy_seconds(cores.subject),
            answered=clients.answered,
            events=clients.events,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """What happened between two readings."""

    seconds: float
    cpu_seconds: float
    others_seconds: float  # that other processes took of the same core
    answered: int
    events: int

    @classmethod
    def between(cls, first: Reading, last: Reading) -> "Window":
        cpu = last.cpu - first.cpu
        return cls(
            seconds=last.at - first.at,
            cpu_seconds=cpu,
            others_seconds=max(0.0, last.core_busy - first.core_busy - cpu),
            answered=last.answered - first.answered,
            events=last.events - first.events,
        )

    def large_enough(self) -> "Window":
        """The same, if there is something to divide by."""
        if self.cpu_seconds <= 0:
            raise Wrong("it used no CPU time that could be measured; measure longer")
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    """The figure of a subject."""

    window: Window
    p50: float
    p99: float

    @property
    def per_cpu_second(self) -> float:
        return self.window.answered / self.window.cpu_seconds


async def throughput(target: Target, *, seconds: float, cores: Cores) -> Throughput:
    """Requests for a second of CPU time, with as much load as the connections can make."""
    async with clients_at(
        target.port, target.requests, connections=CONNECTIONS, answer=whole(target.mark)
    ) as clients:
        clients.start()
        await clients.keep_going(target.warm_up)
        clients.latencies.clear()
        first = Reading.now(target.pid, cores, clients)
        await clients.keep_going(seconds)
        window = Window.between(first, Reading.now(target.pid, cores, clients)).large_enough()
        latencies = clients.latencies
        return Throughput(window=window, p50=latencies.quantile(0.5), p99=latencies.quantile(0.99))


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """Latency through the gateway and without it, in seconds, at the same rate."""

    direct: Latencies
    through: Latencies

    def at(self, share: float) -> float:
        """The difference of the two quantiles."""
        return self.through.quantile(share) - self.direct.quantile(share)


async def added_latency(gateway: Gateway, *, upstream: int, seconds: float) -> Added:
    """What a hop adds at a moderate rate."""
    request = post(CHAT_PATH, chat_request("m"))
    direct = await _latencies(upstream, request, COMPLETION_ID.encode(), seconds)
    target = gateway.target("up")
    through = await _latencies(target.port, gateway.request("up"), target.mark, seconds)
    return Added(direct=direct, through=through)


async def _latencies(port: int, request: bytes, mark: bytes, seconds: float) -> Latencies:
    requests = itertools.repeat(request)
    async with clients_at(port, requests, connections=CONNECTIONS, answer=whole(mark)) as clients:
        await open_loop(clients, per_second=RATE, seconds=1.0)
        clients.latencies.clear()
        await open_loop(clients, per_second=RATE, seconds=seconds)
        await clients.keep_going(1.0)  # the last answers
        return clients.latencies


async def burst(gateway: Gateway, *, cores: Cores) -> Window:
    """Streams whose events all come at once; a first round is the warm-up."""
    await _burst(gateway, rounds=1, cores=cores)
    return (await _burst(gateway, rounds=BURST_ROUNDS, cores=cores)).large_enough()


async def _burst(gateway: Gateway, *, rounds: int, cores: Cores) -> Window:
    streams = rounds * CONNECTIONS
    requests = itertools.repeat(gateway.request("burst", stream=True), streams)
    async with clients_at(
        gateway.port, requests, connections=CONNECTIONS, answer=events
    ) as clients:
        first = Reading.now(gateway.pid, cores, clients)
        clients.start()
        if not await clients.keep_going(BURST_SECONDS):
            raise Wrong(f"{streams} streams had not ended after {BURST_SECONDS:.0f} s")
        window = Window.between(first, Reading.now(gateway.pid, cores, clients))
    if window.events < streams * BURST_EVENTS:
        raise Wrong(f"{window.events} of {streams * BURST_EVENTS} events arrived")
    return window


async def trickle(gateway: Gateway, *, seconds: float, cores: Cores) -> Window:
    """Streams whose events come one by one."""
    request = gateway.request("trickle", stream=True)
    async with clients_at(
        gateway.port,
        itertools.repeat(request, CONNECTIONS),
        connections=CONNECTIONS,
        answer=events,
    ) as clients:
        clients.start()
        await clients.keep_going(1.0)
        first = Reading.now(gateway.pid, cores, clients)
        await clients.keep_going(seconds)
        return Window.between(first, Reading.now(gateway.pid, cores, clients)).large_enough()


def sync_seconds(folder: Path) -> float:
    """The median time until 4 KB are on this disk."""
    path = folder / "sync"
    times = []
    handle = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    try:
        for _ in range(SYNC_COUNT):
            os.write(handle, b"\0" * SYNC_BYTES)
            begun = time.perf_counter()
            os.fdatasync(handle)
            times.append(time.perf_counter() - begun)
    finally:
        os.close(handle)
        path.unlink()
    return statistics.median(times)
