"""What streams cost that are open and silent: the memory of the gateway process.

Law 1. A stream counts as open when its first event has arrived at its reader.
Law 2. Idle is the process before its first request: whatever it needs for its first is counted.
"""

import asyncio
import itertools
import time
from dataclasses import dataclass

from bench.cpu import open_files, resident_bytes
from bench.load import Clients, Wrong, clients_at, events
from bench.process import allow_files
from bench.subjects import Gateway

STREAMS = 2000
SETTLE_SECONDS = 2.0
MOST_SECONDS = 40.0  # to open them or to close them; the gateway waits 60 s for a silent model
LOOK_SECONDS = 0.02
AT_A_TIME = 50  # streams that are being opened: a listener's queue is short
FILES_BESIDE = 100  # what a process of the run has open beside the streams


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """The resident size of the gateway, in bytes."""

    streams: int
    idle: int
    open: int
    closed: int

    @property
    def above_idle(self) -> int:
        return self.open - self.idle


def files_for(streams: int) -> int:
    """What the gateway needs: a connection in and one out for each."""
    return 2 * streams + FILES_BESIDE


def check_files(streams: int) -> None:
    """Refuse what the system has no room for."""
    needed = files_for(streams)
    allowed = allow_files(needed)
    if allowed < needed:
        raise Wrong(f"a process may open {allowed} files here (ulimit -Hn), {needed} are needed")


def limits(streams: int) -> dict[str, str]:
    """The environment of a gateway that one caller may open so many streams at."""
    calls = str(streams + FILES_BESIDE)
    names = ("STREAMS_PER_CALLER", "CALLS_PER_CALLER", "CALLS", "REQUESTS")
    files = {"CARNET__LIMITS__CONNECTIONS": str(files_for(streams))}
    return files | {f"CARNET__LIMITS__{name}": calls for name in names}


async def held(gateway: Gateway, *, streams: int) -> Held:
    """Open them, wait, look, close them, look again."""
    await asyncio.sleep(SETTLE_SECONDS)
    idle, files = resident_bytes(gateway.pid), open_files(gateway.pid)
    requests = itertools.repeat(gateway.request("hold", stream=True), streams)
    async with clients_at(gateway.port, requests, connections=0, answer=events) as clients:
        deadline = time.perf_counter() + MOST_SECONDS
        while clients.events < streams:
            number = min(AT_A_TIME, streams - clients.events)
            await _open(clients, gateway.port, number, deadline)
        await clients.keep_going(SETTLE_SECONDS)
        opened = resident_bytes(gateway.pid)
    await _until_closed(gateway.pid, files + FILES_BESIDE)
    await asyncio.sleep(SETTLE_SECONDS)
    return Held(streams=streams, idle=idle, open=opened, closed=resident_bytes(gateway.pid))


async def _open(clients: Clients, port: int, number: int, deadline: float) -> None:
    """Open some more, and wait for the first event of each."""
    before = clients.events
    await clients.connect(port, number, events)
    clients.start()
    while clients.events < before + number:
        if time.perf_counter() > deadline:
            raise Wrong(f"{clients.events} streams were open after {MOST_SECONDS:.0f} s")
        await clients.keep_going(LOOK_SECONDS)


async def _until_closed(pid: int, files: int) -> None:
    deadline = time.perf_counter() + MOST_SECONDS
    while open_files(pid) > files:
        if time.perf_counter() > deadline:
            raise Wrong(f"the gateway kept its connections for {MOST_SECONDS:.0f} s")
        await asyncio.sleep(LOOK_SECONDS)
