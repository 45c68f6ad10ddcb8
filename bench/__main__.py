"""`python -m bench` measures and prints; `python -m bench profile` says where the time goes."""

import argparse
import asyncio
import os
import sys
import tempfile
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from pathlib import Path

import uvloop

from bench.cpu import Cores, running_on
from bench.load import Wrong
from bench.machine import facts
from bench.measures import added_latency, burst, sync_seconds, throughput, trickle
from bench.profiling import profile, show_profile
from bench.report import Results, show, write_json
from bench.subjects import ROOT, SUBJECTS, Site, Subject, gateway, upstream

STREAMS = "streams"  # the name of the measurements that share one more gateway
LEAST_SECONDS, MOST_SECONDS = 1.0, 20.0  # the longest setting still ends within five minutes


def arguments() -> argparse.Namespace:
    """The command line."""
    names = [subject.name for subject in SUBJECTS] + [STREAMS]
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("all", "profile"), default="all")
    parser.add_argument("--only", action="append", choices=names, help="measure this one")
    parser.add_argument("--agent", choices=("up", "hop"), default="up", help="what is profiled")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there too")
    parser.add_argument(
        "--seconds",
        type=float,
        default=float(os.environ.get("BENCH_SECONDS", "6")),
        help="how long each is measured (BENCH_SECONDS, 6)",
    )
    given = parser.parse_args()
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


async def measure(at: Site, *, seconds: float, only: list[str] | None) -> Results:
    """All of it, one after the other."""
    results = Results(
        seconds=seconds,
        cores=at.cores,
        facts=facts(at.folder, at.cores),
        sync=sync_seconds(at.folder),
    )
    for subject in SUBJECTS:
        if only is None or subject.name in only:
            await kept(results, subject.name, measure_subject(results, subject, at))
    if only is None or STREAMS in only:
        await kept(results, STREAMS, measure_streams(results, at))
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


async def measure_streams(results: Results, at: Site) -> None:
    """What needs a gateway that is not saturated."""
    with gateway(at) as running:
        results.added = await added_latency(
            running, upstream=at.upstream, seconds=2 * results.seconds
        )
        results.burst = await burst(running, cores=at.cores)
        results.trickle = await trickle(running, seconds=results.seconds, cores=at.cores)


async def run(given: argparse.Namespace) -> int:
    """What was asked for, with everything stopped and removed before it is printed."""
    with site() as at:
        if given.what == "profile":
            show_profile(await profile(at, agent=given.agent, seconds=given.seconds))
            return 0
        results = await measure(at, seconds=given.seconds, only=given.only)
    show(results)
    if given.json is not None:
        write_json(results, given.json)
    return 1 if results.failures else 0


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
