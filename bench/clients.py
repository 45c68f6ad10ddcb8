"""What a client makes of one connection: calls a second, one after the other."""

import json
import sys
from dataclasses import dataclass

from bench.cpu import running_on
from bench.process import run
from bench.subjects import Site, importable


@dataclass(frozen=True, slots=True, kw_only=True)
class Calls:
    """What one client did."""

    calls: int
    seconds: float
    cpu_seconds: float

    @property
    def per_second(self) -> float:
        return self.calls / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Ours beside that of the package, against the same server."""

    carnet: Calls
    samvad: Calls

    @property
    def ratio(self) -> float:
        return self.carnet.per_second / self.samvad.per_second


def clients(at: Site, *, seconds: float) -> Clients:
    """Both, one after the other, on the core of the subjects."""
    return Clients(carnet=_calls(at, "carnet", seconds), samvad=_calls(at, "samvad", seconds))


def _calls(at: Site, name: str, seconds: float) -> Calls:
    folder = at.folder / f"client-{name}"
    folder.mkdir()
    url = f"http://127.0.0.1:{at.upstream}"
    command = [sys.executable, "-m", "bench.client_loop", name, url, str(seconds), str(folder)]
    with running_on(at.cores.subject):
        output = run(command, folder=folder, env=importable())
    return Calls(**json.loads(output))
