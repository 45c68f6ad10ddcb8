"""`python -m bench` measures and prints.

`profile` says which functions the time goes to, `budget` what each step of a hop costs, `calls` how
many functions a request calls, `walk` through how many files, `held` what an open stream holds,
`engine` what a turn of an agent loop takes beside other packages, `conversation` how many durable
steps of conversations there are in a second, beside another, `owner` what the conversations of a
person take to look at, `consoles` what a hop costs while ten people watch.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import uvloop

from bench import flat, held, tasks
from bench.budget import budget, budget_json, show_budget
from bench.calls import calls, calls_json, show_calls
from bench.clients import clients
from bench.consoles import consoles, consoles_json, show_consoles
from bench.conversation import conversation, show_talks, talks_json
from bench.cpu import Cores, running_on
from bench.engine import engine, loops_json, show_loops
from bench.load import Wrong
from bench.machine import facts
from bench.measures import added_latency, burst, sync_seconds, throughput, trickle
from bench.owner import looks_json, owner, show_looks
from bench.process import allow_files
from bench.profiling import AGENTS, profile, show_profile
from bench.report import show, to_json, write_json
from bench.results import Results
from bench.subjects import (
    A2A_SUBJECTS,
    ROOT,
    SUBJECTS,
    Site,
    Subject,
    carnet_signed,
    gateway,
    samvad_for_long,
    upstream,
)
from bench.turns import in_turns, together
from bench.walk import show_walks, walks, walks_json

STREAMS = "streams"  # the name of the measurements that share one more gateway
FLAT, HELD, SIGNED, CLIENTS, BESIDE = "flat", "held", "signed", "clients", "tasks"
WHAT = (
    *("all", "profile", "budget", "calls", "walk", "engine", "conversation", "owner", "consoles"),
    HELD,
)
BESIDE_SECONDS = 420.0  # the package slows down with every request: then it is left
LEAST_SECONDS, MOST_SECONDS = 1.0, 20.0
LEAST_REQUESTS = 1000  # with fewer, the clock of the CPU time is too coarse for a tenth of them


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command line, or these words."""
    names = [subject.name for subject in SUBJECTS] + [FLAT, SIGNED, CLIENTS]
    names += [STREAMS, HELD, BESIDE]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("what", nargs="?", choices=WHAT, default="all")
    parser.add_argument("--by", choices=("file", "function"), help="where 'calls' and 'walk' lead")
    parser.add_argument("--only", action="append", choices=names, help="measure this one")
    parser.add_argument("--agent", choices=AGENTS, default="up", help="what is profiled")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument(
        "--seconds",
        type=float,
        default=float(os.environ.get("BENCH_SECONDS", "6")),
        help="how long each is measured (BENCH_SECONDS, 6)",
    )
    parser.add_argument(
        "--requests", type=int, default=flat.REQUESTS, help="how many 'flat' sends (200000)"
    )
    parser.add_argument(
        "--signed", type=int, default=flat.SIGNED_REQUESTS, help="how many 'signed' sends (100000)"
    )
    parser.add_argument(
        "--streams", type=int, default=held.STREAMS, help="how many 'held' opens (2000)"
    )
    parser.add_argument(
        "--tasks", type=int, default=tasks.TASKS, help="how many wait beside 'tasks' (10000)"
    )
    given = parser.parse_args(words)
    if min(given.requests, given.signed, given.tasks) < LEAST_REQUESTS or given.streams < 1:
        least = f"--requests, --signed and --tasks must be at least {LEAST_REQUESTS}"
        least += ", --streams at least 1"
        parser.error(least)
    if not LEAST_SECONDS <= given.seconds <= MOST_SECONDS:
        parser.error(f"--seconds must be from {LEAST_SECONDS:g} to {MOST_SECONDS:g}")
    return given


@contextmanager
def site() -> Iterator[Site]:
    """A scratch folder on the disk of the checkout, an upstream, and this process in its place."""
    cores = Cores.choose()
    scratch = ROOT / "build"  # a system's temporary folder may be in memory, and sync for nothing
    scratch.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="bench-", dir=scratch) as folder,
        running_on(cores.load),
        upstream(Path(folder), cores) as port,
    ):
        yield Site(folder=Path(folder), upstream=port, cores=cores)


async def measure(at: Site, given: argparse.Namespace) -> Results:
    """All of it, one after the other."""
    only: list[str] | None = given.only
    results = Results(
        seconds=given.seconds,
        cores=at.cores,
        facts=facts(at.folder, at.cores),
        sync=sync_seconds(at.folder),
        is_whole=only is None,
    )
    wanted = [subject for subject in SUBJECTS if only is None or subject.name in only]
    compared = [subject for subject in wanted if subject.name in A2A_SUBJECTS]
    for subject in wanted:
        if subject not in compared:
            await kept(results, subject.name, measure_subject(results, subject, at))
    if compared:
        names = ", ".join(subject.name for subject in compared)
        await kept(results, names, measure_in_turns(results, compared, at))
    others: dict[str, Callable[[], Awaitable[None]]] = {
        FLAT: lambda: measure_flat(results, at, given.requests),
        SIGNED: lambda: measure_signed(results, at, given.signed),
        CLIENTS: lambda: measure_clients(results, at),
        STREAMS: lambda: measure_streams(results, at),
        HELD: lambda: measure_held(results, at, given.streams),
        BESIDE: lambda: measure_beside(results, at, given.tasks),
    }
    for name, begin in others.items():
        if only is None or name in only:
            await kept(results, name, begin())
    return results


async def kept(results: Results, name: str, measurement: Awaitable[None]) -> None:
    """One that fails leaves its reason, and the others their figures."""
    print(f"measuring {name} ...", file=sys.stderr, flush=True)
    try:
        await measurement
    except (Wrong, OSError) as error:
        results.failures[name] = str(error) or type(error).__name__


async def measure_subject(results: Results, subject: Subject, at: Site) -> None:
    """One row of the table."""
    with subject.run(at) as target:
        results.throughputs[subject.name] = await throughput(
            target, seconds=results.seconds, cores=at.cores
        )
        if target.about:
            results.facts["database"] = target.about


async def measure_in_turns(results: Results, subjects: list[Subject], at: Site) -> None:
    """Rows of the table that are held against one another."""
    with ExitStack() as running:
        targets = {each.name: running.enter_context(each.run(at)) for each in subjects}
        results.turns = await in_turns(targets, seconds=results.seconds, cores=at.cores)
    results.throughputs |= {name: together(rounds) for name, rounds in results.turns.items()}


async def measure_flat(results: Results, at: Site, requests: int) -> None:
    """Many requests to one gateway."""
    with gateway(at) as running:
        results.flat = await flat.flat(running.target("up"), requests=requests, cores=at.cores)


async def measure_signed(results: Results, at: Site, requests: int) -> None:
    """Many signed requests to one gateway, and the same to the package of that dialect."""
    with carnet_signed(at) as target:
        results.signed = await flat.flat(target, requests=requests, cores=at.cores)
    with samvad_for_long(at) as target:
        results.signed_beside = await flat.flat(
            target, requests=requests, cores=at.cores, patience=BESIDE_SECONDS
        )


async def measure_clients(results: Results, at: Site) -> None:
    """Both clients of the signed dialect, one call after the other."""
    results.clients = clients(at, seconds=results.seconds)


async def measure_held(results: Results, at: Site, streams: int) -> None:
    """Many open streams at one gateway, which has done nothing before."""
    held.check_files(streams)
    with gateway(at, env=held.limits(streams)) as running:
        results.held = await held.held(running, streams=streams)


async def measure_beside(results: Results, at: Site, waiting: int) -> None:
    """A hop beside tasks that wait and webhook deliveries that fail."""
    results.beside = await tasks.beside(at, tasks=waiting, seconds=results.seconds)


async def measure_streams(results: Results, at: Site) -> None:
    """What needs a gateway that is not saturated."""
    with gateway(at) as running:
        results.added = await added_latency(
            running, upstream=at.upstream, seconds=2 * results.seconds
        )
        results.burst = await burst(running, cores=at.cores)
        results.trickle = await trickle(running, seconds=results.seconds, cores=at.cores)


async def measured(at: Site, given: argparse.Namespace) -> tuple[dict[str, Any], int]:
    """The figures of what was asked for, shown, and the exit code."""
    match given.what:
        case "budget":
            found = await budget(at, seconds=given.seconds)
            show_budget(found)
            return budget_json(found), 0
        case "engine":
            loops = await engine(at, seconds=given.seconds)
            show_loops(loops)
            return loops_json(loops), 0
        case "conversation":
            talks = await conversation(at, seconds=given.seconds)
            show_talks(talks)
            return talks_json(talks), 0
        case "owner" | "consoles":
            return await looked_at(at, given)
    results = await measure(at, given)
    show(results)
    return to_json(results), 1 if results.failures else 0


async def looked_at(at: Site, given: argparse.Namespace) -> tuple[dict[str, Any], int]:
    """What people look at: the same, of the two that must hold something."""
    if given.what == "owner":
        looks = owner(at)
        show_looks(looks)
        return looks_json(looks), 1 if list(looks.failures()) else 0
    watched = await consoles(at, seconds=given.seconds)
    show_consoles(watched)
    return consoles_json(watched), 0 if all(row.has_held for row in watched.rows) else 1


async def run(given: argparse.Namespace) -> int:
    """What was asked for; everything that was started is stopped and removed."""
    allow_files(held.files_for(given.streams))  # also for the upstream, which is started next
    if given.what in {"calls", "walk"}:
        return run_counted(given)
    if given.what == HELD:
        given.only = [HELD]
    with site() as at:
        if given.what == "profile":
            show_profile(await profile(at, agent=given.agent, seconds=given.seconds))
            return 0
        figures, code = await measured(at, given)
    if given.json is not None:
        write_json(figures, given.json)
    return code


def run_counted(given: argparse.Namespace) -> int:
    """Count, show, and write the figures where that was asked for."""
    figures: dict[str, Any]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        if given.what == "walk":
            way = walks(Path(folder))
            show_walks(way, by=given.by)
            figures = walks_json(way)
        else:
            found = calls(Path(folder))
            show_calls(found, by=given.by)
            figures = calls_json(found)
    if given.json is not None:
        write_json(figures, given.json)
    return 0


def main() -> int:
    """The exit code: 1 if a figure is missing."""
    given = arguments()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(run(given))
    except Wrong as error:
        print(f"no figures: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
