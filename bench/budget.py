"""What a hop costs, line by line, beside what it costs as a whole.

The lines are timed one by one in a process of their own (`bench.hop`); the server below and the hop
are measured under load like every subject.
"""

import json
import sys
from dataclasses import dataclass
from typing import Any

from bench.cpu import running_on
from bench.machine import facts
from bench.measures import throughput
from bench.process import run
from bench.subjects import Site, carnet_openai, echo, importable, initialised
from bench.timing import CALLERS

# In the order of a call; what a line is part of is behind it.
LINES = {
    "server": "the server below: uvicorn, a request read and an answer written",
    "headers": "headers and stamps",
    "kind": "the kind of the body",
    "request": "the request: JSON, what is asked, its digest",
    "guards": "the guards: token, chain, agent, rights, payer",
    "document": "the document, with its ids and its time",
    "claim": "the claim of the turn, with its key",
    "store": "the store: claim and end, durable, and the chained ledger entry",
    "outbound": "the request out, and its head",
    "exchange": "the exchange with the upstream",
    "answer": "the answer read",
    "recording": "its events, encoded and summed up",
    "writing": "the answer written",
    "noting": "the line of the log, and the metrics",
    "between": "between them: tasks, timers, wake-ups, smaller batches of the store",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Seconds of CPU time for one request."""

    facts: dict[str, str]
    lines: dict[str, float]  # by their names in LINES
    json: float  # within the request
    hop: float  # measured as a whole

    @property
    def sum(self) -> float:
        return sum(self.lines.values())


async def budget(site: Site, *, seconds: float) -> Budget:
    """Time the steps, then the server and the whole."""
    print("timing the steps ...", file=sys.stderr, flush=True)
    folder = initialised(site, 0)
    with running_on(site.cores.subject):
        command = [sys.executable, "-m", "bench.hop", str(folder)]
        timed = json.loads(run(command, folder=folder, env=importable()))
    print("measuring the server and the hop ...", file=sys.stderr, flush=True)
    with echo(site) as target:
        server = await throughput(target, seconds=seconds, cores=site.cores)
    with carnet_openai(site) as target:
        hop = await throughput(target, seconds=seconds, cores=site.cores)
    timed["server"] = 1 / server.per_cpu_second
    steps = {name: timed[name] for name in LINES if name not in {"server", "between"}}
    timed["between"] = timed["application"] - sum(steps.values())
    return Budget(
        facts=facts(site.folder, site.cores),
        lines={name: timed[name] for name in LINES},
        json=timed["request_json"],
        hop=1 / hop.per_cpu_second,
    )


def show_budget(found: Budget) -> None:
    """Print the lines, their sum and the whole."""
    for name, fact in found.facts.items():
        print(f"{name:<9} {fact}")
    print(f"\n{'us':>7}  of CPU time for one request; {CALLERS} at once where callers share work")
    for name, text in LINES.items():
        _line(found.lines[name], text)
        if name == "request":
            _line(found.json, "   of it JSON: read strictly, written canonically")
    _line(found.sum, "sum of the lines")
    _line(found.hop, "the hop as measured under load")
    _line(found.hop - found.sum, "in no line: the edge's own checks, and caches that calls share")


def _line(seconds: float, text: str) -> None:
    print(f"{seconds * 1_000_000:>7.1f}  {text}")


def budget_json(found: Budget) -> dict[str, Any]:
    """The same for machines, in seconds."""
    return {
        "machine": found.facts,
        "lines": found.lines,
        "json_within_request": found.json,
        "sum": found.sum,
        "hop": found.hop,
    }
