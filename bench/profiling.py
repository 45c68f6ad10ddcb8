"""The ten functions of the gateway process that take the most time of their own, under load."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.load import Wrong
from bench.measures import Throughput, throughput
from bench.subjects import Site, Target, carnet_a2a, carnet_signed, carnet_signed_hop, gateway

OTHERS = {"signed": carnet_signed, "signed-hop": carnet_signed_hop, "a2a": carnet_a2a}
AGENTS = ("up", "hop", "echo", *OTHERS)
TOP = 10
KEPT_PARTS = 3  # of a file's path


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One function of a profile."""

    where: str
    own_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A run that was watched."""

    load: Throughput
    lines: list[Line]  # the most expensive first

    @property
    def seconds(self) -> float:
        return sum(line.own_seconds for line in self.lines)


@contextmanager
def _watched(site: Site, agent: str, under: tuple[str, ...]) -> Iterator[Target]:
    if agent in OTHERS:
        with OTHERS[agent](site, under=under) as target:
            yield target
    else:
        with gateway(site, under=under) as running:
            yield running.target(agent)


async def profile(site: Site, *, agent: str, seconds: float) -> Profile:
    """Load a gateway that is watched, stop it, read what was written."""
    out = site.folder / "profile.json"
    under = (sys.executable, "-m", "bench.profiled", str(out))
    with _watched(site, agent, under) as target:
        os.kill(target.pid, signal.SIGUSR1)
        load = await throughput(target, seconds=seconds, cores=site.cores)
    if not out.exists():
        raise Wrong("the gateway wrote no profile when it was stopped")
    lines = [
        Line(where=_name(file, line, function), own_seconds=own)
        for file, line, function, own in json.loads(out.read_text())
    ]
    return Profile(load=load, lines=lines)


def _name(file: str, line: int, function: str) -> str:
    return f"{'/'.join(Path(file).parts[-KEPT_PARTS:])}:{line} {function}"


def show_profile(found: Profile) -> None:
    """Print the ten."""
    print(
        f"{found.load.per_cpu_second:,.0f} requests/CPU-s while watched;"
        f" {found.seconds:.1f} s of CPU seen, the warm-up included\n"
    )
    print(f"{'own time':>9} {'share':>6}  function")
    for line in found.lines[:TOP]:
        share = line.own_seconds / found.seconds
        print(f"{line.own_seconds:>7.2f} s {share:>6.1%}  {line.where}")
