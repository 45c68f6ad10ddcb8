"""Durable steps of conversations for each second, beside another package that does the same.

A conversation has ten turns of two who answer at once. A step is one turn: its end is in the
database before the next one begins. Each has one core, and many conversations at once; both use the
same kind of database, equally durable, with its files on the same disk.

Law 1. Ours is a whole gateway: it is called over HTTP with a token, and records the call and its
       end beside the steps. `functions` speak in the turn of the conversation, as the steps of the
       other do; `agents` are called by it, each with a record, a ledger and an end of its own.
Law 2. The other is called in its own process.
Law 3. The figure is steps for each second of the clock; that of the CPU stands beside it.
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
from bench.machine import STEPS, facts
from bench.measures import throughput
from bench.postgres import Database, database, extension
from bench.process import run
from bench.step_words import AT_ONCE, SEED, TURNS
from bench.subjects import Site, Target, gateway, importable

NAME, OTHER = "carnet", "dbos"
LEAST = 5.0  # times the steps of the other, on each store
STORES = ("sqlite", "postgres")
WAYS = ("functions", "agents")

_AGENTS = """

from bench.step_words import spoken


async def a(visit):
    return spoken("a", len(visit.messages))


async def b(visit):
    return spoken("b", len(visit.messages))


functions = carnet.Conversation("functions", [a, b], max_turns={turns})
"""
_SETTINGS = """
[agents.a]
target = "agents:a"

[agents.b]
target = "agents:b"

[agents.functions]
kind = "conversation"
target = "agents:functions"

[agents.agents]
kind = "conversation"
participants = ["a", "b"]
max_turns = {turns}

[limits]
run_calls = 1000
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """What the steps of one of them took."""

    name: str
    store: str
    steps: int
    seconds: float
    cpu_seconds: float

    @property
    def rate(self) -> float:
        """Steps for each second of the clock."""
        return self.steps / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Talks:
    """One run."""

    facts: dict[str, str]
    rows: list[Steps]

    def ratio(self, store: str) -> float:
        """Steps of our functions, by those of the other on the same store."""
        rates = {each.name: each.rate for each in self.rows if each.store == store}
        return rates[f"{NAME}, {WAYS[0]}"] / rates[OTHER]


async def conversation(site: Site, *, seconds: float) -> Talks:
    """All of them, one after the other."""
    about = facts(site.folder, site.cores, beside=STEPS)
    rows = [await _ours(site, way, None, seconds) for way in WAYS]
    file = site.folder / "steps.db"
    rows.append(_other(site, f"sqlite:///{file}", {}, STORES[0], seconds))
    for way in WAYS:
        with database() as store:
            rows.append(await _ours(site, way, store, seconds))
    with database() as store, extension(store, "uuid-ossp"):  # its layout asks for it, in vain
        about |= {"server": store.about}
        url = store.url.replace("postgresql://", "postgresql+psycopg://", 1)
        rows.append(_other(site, url, dict(store.env), STORES[1], seconds))
    return Talks(facts=about, rows=rows)


async def _ours(site: Site, way: str, store: Database | None, seconds: float) -> Steps:
    name, where = f"{NAME}, {way}", STORES[store is not None]
    print(f"measuring {name} on {where} ...", file=sys.stderr, flush=True)
    with _carnet(site, way, store) as target:
        found = await throughput(target, seconds=seconds, cores=site.cores)
    return _shown(
        Steps(
            name=name,
            store=where,
            steps=found.window.answered * TURNS,
            seconds=found.window.seconds,
            cpu_seconds=found.window.cpu_seconds,
        )
    )


def _shown(found: Steps) -> Steps:
    """Say it as it is found: the rest takes minutes."""
    print(f"  {found.rate:,.0f} steps/s", file=sys.stderr, flush=True)
    return found


@contextmanager
def _carnet(site: Site, way: str, store: Database | None) -> Iterator[Target]:
    def prepare(folder: Path) -> None:
        with (folder / "agents.py").open("a") as agents:
            agents.write(_AGENTS.format(turns=TURNS))
        with (folder / "carnet.toml").open("a") as settings:
            settings.write(_SETTINGS.format(turns=TURNS))

    with gateway(site, store=store, prepare=prepare) as running:
        body = encode({"model": way, "messages": [{"role": "user", "content": SEED}]})
        request = post(CHAT_PATH, body, {"authorization": f"Bearer {running.token}"})
        yield Target(
            pid=running.pid,
            port=running.port,
            requests=itertools.repeat(request),
            mark=f"b after {TURNS} messages".encode(),
        )


def _other(site: Site, url: str, env: dict[str, str], store: str, seconds: float) -> Steps:
    print(f"measuring {OTHER} on {store} ...", file=sys.stderr, flush=True)
    command = [sys.executable, "-m", "bench.step_peer", url, str(seconds)]
    with running_on(site.cores.subject):
        output = run(command, folder=site.folder, env={**importable(), **env})
    return _shown(Steps(name=OTHER, store=store, **json.loads(output.splitlines()[-1])))


def show_talks(found: Talks) -> None:
    """Print the rows and the bound."""
    for name, fact in found.facts.items():
        print(f"{name:<9} {fact}")
    print(f"{'method':<9} {AT_ONCE} conversations of {TURNS} turns at once; a turn is a step\n")
    print(f"{'':<20} {'store':<9} {'steps/s':>9} {'CPU a step':>11}")
    for each in found.rows:
        cpu = each.cpu_seconds / each.steps * 1000
        print(f"{each.name:<20} {each.store:<9} {each.rate:>9,.0f} {cpu:>8.3f} ms")
    print()
    for store in STORES:
        ratio = found.ratio(store)
        verdict = "held" if ratio >= LEAST else "missed"
        print(f"{store}: {ratio:.1f} times the steps of {OTHER}, at least {LEAST:g}: {verdict}")


def talks_json(found: Talks) -> dict[str, Any]:
    """The same for machines."""
    rows = [
        {
            "name": each.name,
            "store": each.store,
            "steps_per_second": each.rate,
            "cpu_seconds": each.cpu_seconds / each.steps,
        }
        for each in found.rows
    ]
    ratios = {store: found.ratio(store) for store in STORES}
    return {"machine": found.facts, "steps": rows, "ratios": ratios}
