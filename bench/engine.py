"""What a turn of an agent loop takes, beside other packages that do the same.

A turn asks a model, uses one tool, and asks again. All ask the same model (`bench.loop_model`),
which answers at once; each has one core, and many turns at once.

Law 1. Ours is a whole gateway: it is called over HTTP with a token, and records the turn, each
       answer of the model and each result of a tool on SQLite before it goes on, streams from the
       model, writes the ledger, and answers. The others are called in their own process and record
       nothing.
Law 2. Time is that on the CPU of the process under test, with all its threads.
"""

import itertools
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.bodies import CHAT_PATH, encode, post
from bench.cpu import running_on
from bench.loop_model import ANSWER, PAGE, QUESTION, SYSTEM, TOOL
from bench.loop_peers import AT_ONCE, PEERS
from bench.machine import LOOPS, facts
from bench.measures import throughput
from bench.process import run
from bench.subjects import CARNET, Site, Target, gateway, importable

NAME = "carnet"
AGENT = "assistant"
WAYS = ("whole", "streamed")
MOST = 1.0  # of the cheapest of the others

_TOOLS = f'''
async def {TOOL}(name: str) -> str:
    "Reads a page of the notebook."
    return "{PAGE}"
'''
_SETTINGS = """
[agents.{agent}]
kind = "engine"
system = "{system}"

[models.m]
url = "http://127.0.0.1:{upstream}/loop/v1"

[engine]
tools = ["tools:{tool}"]
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """What the turns of one loop took."""

    name: str
    does: str
    turns: int
    seconds: float
    cpu_seconds: float

    @property
    def each(self) -> float:
        """Seconds of CPU time."""
        return self.cpu_seconds / self.turns


@dataclass(frozen=True, slots=True, kw_only=True)
class Loops:
    """One run."""

    facts: dict[str, str]
    ours: Turns
    others: list[Turns]

    @property
    def ratio(self) -> float:
        """Ours, as a share of the cheapest of the others."""
        return self.ours.each / min(each.each for each in self.others)


async def engine(site: Site, *, seconds: float) -> Loops:
    """All of them, one after the other."""
    about = facts(site.folder, site.cores, beside=LOOPS)
    print(f"measuring {NAME} ...", file=sys.stderr, flush=True)
    with _carnet(site) as target:
        found = await throughput(target, seconds=seconds, cores=site.cores)
    ours = Turns(
        name=NAME,
        does="HTTP, token, journal and ledger on SQLite, streamed",
        turns=found.window.answered,
        seconds=found.window.seconds,
        cpu_seconds=found.window.cpu_seconds,
    )
    others = [_other(site, name, way, seconds) for name in PEERS for way in WAYS]
    return Loops(facts=about, ours=ours, others=others)


@contextmanager
def _carnet(site: Site) -> Iterator[Target]:
    token: list[str] = []

    def prepare(folder: Path) -> None:
        (folder / "tools.py").write_text(_TOOLS)
        with (folder / "carnet.toml").open("a") as settings:
            written = _SETTINGS.format(
                agent=AGENT, system=SYSTEM, upstream=site.upstream, tool=TOOL
            )
            settings.write(written)
        scopes = ("--scope", "call:*", "--scope", "pay", "--scope", f"tool:{TOOL}")
        command = [CARNET, "--format", "json", "tokens", "create", "loop", *scopes]
        token.append(json.loads(run(command, folder=folder))["token"])

    with gateway(site, prepare=prepare) as running:
        body = encode({"model": AGENT, "messages": [{"role": "user", "content": QUESTION}]})
        request = post(CHAT_PATH, body, {"authorization": f"Bearer {token[0]}"})
        yield Target(
            pid=running.pid,
            port=running.port,
            requests=itertools.repeat(request),
            mark=ANSWER.encode(),
        )


def _other(site: Site, name: str, way: str, seconds: float) -> Turns:
    print(f"measuring {name}, {way} ...", file=sys.stderr, flush=True)
    url = f"http://127.0.0.1:{site.upstream}/loop/v1"
    command = [sys.executable, "-m", "bench.loop_peers", name, way, url, str(seconds)]
    with running_on(site.cores.subject):
        output = run(command, folder=site.folder, env=importable())
    does = f"in its own process, no record, {way}"
    return Turns(name=name, does=does, **json.loads(output))


def show_loops(found: Loops) -> None:
    """Print the rows and the bound."""
    for name, fact in found.facts.items():
        print(f"{name:<9} {fact}")
    print(f"{'method':<9} a model that answers at once, one tool, {AT_ONCE} turns at once\n")
    print(f"{'':<14} {'CPU a turn':>11} {'x ours':>7} {'turns/s':>8}  does")
    for each in (found.ours, *found.others):
        print(
            f"{each.name:<14} {each.each * 1000:>8.2f} ms {each.each / found.ours.each:>7.2f}"
            f" {each.turns / each.seconds:>8,.0f}  {each.does}"
        )
    verdict = "held" if found.ratio <= MOST else "missed"
    print(f"\nours {found.ratio:.2f} of the cheapest of the others, at most {MOST:g}: {verdict}")


def loops_json(found: Loops) -> dict[str, Any]:
    """The same for machines, in seconds."""
    rows = [
        {"name": each.name, "does": each.does, "turns": each.turns, "cpu_seconds": each.each}
        for each in (found.ours, *found.others)
    ]
    return {"machine": found.facts, "turns": rows, "ratio": found.ratio}
